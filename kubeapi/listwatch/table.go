package listwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

const (
	// wholeWithin bounds the way to a whole list, whether it is streamed, comes
	// in pages or in one answer.
	wholeWithin = time.Minute
	// provenAfter is how long a whole list must have been watched on for the
	// try to be a success, from the server's answer to the watch on: a watch may
	// fail soon after it began.
	provenAfter = 500 * time.Millisecond
	// worthSaying is how many failures in a row are logged: after fewer a
	// probe has not yet shown that this is an outage, which is logged as such.
	worthSaying = 4
)

var errNotWhole = errors.New("no whole list within " + wholeWithin.String())

// Table lists and watches one kind of object into one table.
//
// It drives a client-go Reflector by itself instead of through a shared
// informer (docs/decisions/0010-reflectors.md): the table is the cache, and
// the retries are ours, so that a silent server is left alone and one that
// answers again is listed at once.
type Table struct {
	Name     string
	Log      logrus.FieldLogger
	Liveness *access.Liveness
	Holds    func(view string, whole bool) // called when the table becomes complete or no longer is; nil for nobody
	Status   *Status
	Backoff  *SharedBackoff
	Strict   bool // the table is not whole either after a watch that cannot be taken up again

	limiter listWatchLimiter
	failed  atomic.Int32 // how many tries in a row
}

// Run keeps the table until ctx is done.
//
// The table counts as whole from a whole list on until the server is found
// dead or a list fails. The end of a watch is no such thing: watches end every
// few minutes, and where nothing changed meanwhile the version to go on from
// has often expired by then. But the list that follows has to come soon, or the
// table is said not to be whole.
func (v *Table) Run(ctx context.Context, lw *cache.ListWatch, rows access.Store) {
	if v.Holds == nil {
		v.Holds = func(string, bool) {}
	}
	defer v.Holds(v.Name, false)
	v.Status.begin()
	v.limiter.lw = lw
	reflector := cache.NewReflectorWithOptions(v.limiter.listWatch(), rows.Example(), rows, cache.ReflectorOptions{
		Name: "zedkube " + v.Name,
		// Inside the Reflector only short waits: some of them outlast ctx.
		Backoff: &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1, Jitter: 0.5, Steps: 1 << 30},
	})
	for {
		alive, ok := v.await(ctx)
		if !ok {
			return
		}
		v.limiter.begin()
		since, err := v.keep(ctx, alive, reflector, rows)
		if ctx.Err() != nil {
			return
		}
		v.ended(err, !since.IsZero(), alive)
		well := time.Duration(0)
		if !since.IsZero() {
			well = time.Since(since)
		}
		if !v.Backoff.wait(ctx, alive, well) {
			return
		}
	}
}

// ended judges a try that is over: err may be nil. whole says that there was a
// whole list.
func (v *Table) ended(err error, whole bool, alive context.Context) {
	switch {
	case alive.Err() != nil:
		v.limiter.another()
		reason, _ := v.Liveness.Dead()
		v.Status.fails(silent(reason))
	case !whole:
		v.Status.fails(sentence(err))
		if err != nil {
			v.complain(err)
		}
	case v.Strict:
		v.Status.fails(errEnded.Error())
	case err != nil:
		v.Status.lapses(sentence(err))
		return
	default:
		v.Status.lapses(errEnded.Error())
		return
	}
	v.Holds(v.Name, false)
}

// await returns once the server may be listed, with the context that ends when
// it is found dead; false when ctx is done. A table that has to wait for that
// is not kept.
func (v *Table) await(ctx context.Context) (alive context.Context, ok bool) {
	alive, open := v.Liveness.Gates()
	select {
	case <-open:
		return alive, ctx.Err() == nil
	default:
	}
	v.Holds(v.Name, false)
	if reason, dead := v.Liveness.Dead(); dead {
		v.Status.fails(silent(reason))
	}
	select {
	case <-ctx.Done():
		return nil, false
	case <-open:
	}
	alive, _ = v.Liveness.Gates()
	return alive, true
}

// keep lists and watches. It returns at an error, at the end of a watch that
// cannot be taken up again, when no list comes, and when the server is found
// dead: what hangs on a connection to a dead server may go on hanging after its
// return. since is when there was a whole list first, zero for none.
func (v *Table) keep(ctx, alive context.Context, reflector *cache.Reflector, rows access.Store) (since time.Time, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(alive, func() { cancel(nil) })()
	limit := time.AfterFunc(wholeWithin, func() { cancel(errNotWhole) })
	defer limit.Stop()
	var once sync.Once // a try has one success, however many watches
	proven := time.AfterFunc(wholeWithin, func() { once.Do(v.succeed) })
	proven.Stop()
	defer proven.Stop()
	v.limiter.onWatch = func() { proven.Reset(provenAfter) }
	rows.OnReplaced(func(version string) {
		limit.Stop()
		v.limiter.replaced()
		if since.IsZero() {
			since = time.Now()
		}
		v.Status.Complete(version == noVersion)
		v.Holds(v.Name, true)
	})
	err = reflector.ListAndWatchWithContext(ctx)
	if errors.Is(context.Cause(ctx), errNotWhole) {
		v.limiter.stalled()
		err = errNotWhole
	}
	return since, err
}

// complain logs a failure to list that lasts.
func (v *Table) complain(err error) {
	if v.failed.Add(1) == worthSaying {
		v.Log.WithError(err).WithField("table", v.Name).Warn("table cannot be kept")
	}
}

// succeed is called once a whole list has been watched on for a while.
func (v *Table) succeed() {
	if v.failed.Swap(0) >= worthSaying {
		v.Log.WithField("table", v.Name).Info("table is kept again")
	}
	v.limiter.succeeded()
	v.Backoff.success()
}

const (
	// HandOver is how long the views of a new connection may take for their
	// first lists, and any view for the list after a watch that has ended,
	// without their tables being said not to be whole: those keep their rows
	// meanwhile, and mostly nothing has changed.
	HandOver = access.AnswerWithin
	// WhyText bounds what a server says of itself in a row.
	WhyText = 300
)

var (
	errNoList = errors.New("no list has been received yet")
	errEnded  = errors.New("the watch has ended")
)

// Status says how the table of one view is, in that view's row of the table
// of types.TableStatus.
type Status struct {
	Log   logrus.FieldLogger
	Table access.Writer[types.TableStatus]
	Name  string

	mu    sync.Mutex
	over  bool              // the view has ended: another one speaks
	late  *time.Timer       // rings when a list that is due has not come; nil for none
	row   types.TableStatus // what it was found, doubts left out
	doubt string            // why a table that is kept is not right nevertheless; "" while it is
}

// begin takes over the row as another connection left it, for so long as that
// can be true, and makes it if there is none. The caller calls end in the end.
func (s *Status) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.Table.Get(s.Name)
	if s.row = row; !ok {
		s.set(types.TableStatus{Why: errNoList.Error()})
	}
	s.await(errNoList.Error())
}

// lapses notes that the table is no longer watched, why, and to be listed again:
// it stands for so long as that may take.
func (s *Status) lapses(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.await(why)
}

// await is called with mu held.
func (s *Status) await(why string) {
	s.heard()
	var late *time.Timer
	late = time.AfterFunc(HandOver, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.late == late {
			s.set(types.TableStatus{Why: why})
		}
	})
	s.late = late
}

// heard is called with mu held.
func (s *Status) heard() {
	if s.late != nil {
		s.late.Stop()
		s.late = nil
	}
}

// Complete notes that the table holds a complete list; absent: as there is no such
// kind of object.
func (s *Status) Complete(absent bool) {
	s.found(types.TableStatus{Complete: true, Absent: absent})
}

// fails notes why the table cannot be kept.
func (s *Status) fails(why string) { s.found(types.TableStatus{Why: why}) }

// found notes what has come of the list that was due.
func (s *Status) found(row types.TableStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard()
	s.set(row)
}

// Doubts notes why a table that is kept is not right, "" for that it is.
func (s *Status) Doubts(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt = access.Cut(why, WhyText)
	s.set(s.row)
}

// set is called with mu held.
func (s *Status) set(next types.TableStatus) {
	if s.row = next; s.over {
		return
	}
	if next.Complete && s.doubt != "" {
		next = types.TableStatus{Why: s.doubt, InDoubt: true}
	}
	last, ok := s.Table.Get(s.Name)
	next.Since = last.Since
	if !ok || last.Complete != next.Complete {
		next.Since = time.Now()
	}
	if err := s.Table.Publish(s.Name, next); err != nil {
		s.Log.WithError(err).WithField("table", s.Name).Error("publish the status of a table")
	}
}

// End lets nothing be said any more, and removes the row unless another view
// goes on with the table.
func (s *Status) End(goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard()
	if s.over = true; goesOn {
		return
	}
	if err := s.Table.Unpublish(s.Name); err != nil {
		s.Log.WithError(err).WithField("table", s.Name).Error("withdraw the status of a table")
	}
}

// sentence says for people why a list did not come, err, which may be nil.
func sentence(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "the list broke off"
	case errors.As(err, &status) && status.Status().Code != 0:
		return access.Cut(fmt.Sprintf("the API server answers %d: %s", status.Status().Code, status.Status().Message), WhyText)
	case errors.Is(err, context.Canceled):
		return "the API server was given up"
	}
	if inner := errors.Unwrap(err); inner != nil { // without the Reflector's words
		err = inner
	}
	return access.Cut(access.ReasonOf(err), WhyText)
}

// silent says for people that the API server is silent.
func silent(reason string) string {
	if reason == "" {
		return "the API server did not answer"
	}
	return access.Cut("the API server does not answer: "+reason, WhyText)
}
