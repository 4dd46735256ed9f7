package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	firstRetry = time.Second
	lastRetry  = 15 * time.Second
	// steady is how long a view must have gone well for the next retry to be
	// a first one again: a server that cuts every watch is not asked each second.
	steady = time.Minute
	// wholeWithin bounds the way to a whole list, whether it is streamed, comes
	// in pages or in one answer.
	wholeWithin = time.Minute
	// worthSaying is how many failures in a row are logged: after fewer a
	// probe has not yet shown that this is an outage, which is logged as such.
	worthSaying = 4
	// hasty and hastyWatches are how soon after one another, and how often, a
	// Reflector may ask for a watch until it is told to stop: it repeats some of
	// them at once and for ever. An expired version takes two, a server
	// without streamed lists one more.
	hasty        = 2 * time.Second
	hastyWatches = 3
)

var (
	errNotWhole = errors.New("no whole list within " + wholeWithin.String())
	errHasty    = errors.New("watches end as soon as they begin")
	errCrowded  = errors.New("turned away by an overloaded server")
)

// view lists and watches one kind of object into one table.
//
// It drives a client-go Reflector by itself instead of through a shared
// informer (docs/decisions/0010-reflectors.md): the table is the cache, and
// the retries are ours, so that a silent server is left alone and one that
// answers again is listed at once.
type view struct {
	name    string
	log     logrus.FieldLogger
	silence *silence
	status  *status

	failed int  // how many lists in a row
	calm   pace // of the watches since the last retry
}

// run keeps the table until ctx is done.
//
// The table counts as whole from a whole list on until the server is found
// dead or a list fails. The end of a watch is no such thing: watches end every
// few minutes, and where nothing changed meanwhile the version to go on from
// has often expired by then.
func (v *view) run(ctx context.Context, lw *cache.ListWatch, rows rowStore) {
	defer v.status.holds(v.name, false)
	paced := *lw
	paced.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if !v.calm.allows() {
			return nil, errHasty
		}
		w, err := lw.WatchFuncWithContext(ctx, o)
		return w, unretried(err)
	}
	reflector := cache.NewReflectorWithOptions(&paced, rows.example(), rows, cache.ReflectorOptions{
		Name: "zedkube " + v.name,
		// Inside the Reflector only short waits: some of them outlast ctx.
		Backoff: &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1, Jitter: 0.5, Steps: 1 << 30},
	})
	retry := firstRetry
	for {
		alive, ok := v.await(ctx)
		if !ok {
			return
		}
		started := time.Now()
		v.calm = pace{}
		whole, err := v.keep(ctx, alive, reflector, rows)
		if !whole || alive.Err() != nil {
			v.status.holds(v.name, false)
		}
		if err != nil && alive.Err() == nil && ctx.Err() == nil {
			v.complain(err, whole)
		}
		if time.Since(started) > steady || alive.Err() != nil {
			retry = firstRetry
		}
		if !pause(ctx, alive, retry/2+rand.N(retry)) {
			return
		}
		retry = min(2*retry, lastRetry)
	}
}

// await returns once the server may be listed, with the context that ends when
// it is found dead; false when ctx is done. A table that has to wait for that
// is not kept.
func (v *view) await(ctx context.Context) (alive context.Context, ok bool) {
	alive, open := v.silence.gates()
	select {
	case <-open:
		return alive, ctx.Err() == nil
	default:
	}
	v.status.holds(v.name, false)
	select {
	case <-ctx.Done():
		return nil, false
	case <-open:
	}
	alive, _ = v.silence.gates()
	return alive, true
}

// keep lists and watches. It returns at an error, at the end of a watch that
// cannot be taken up again, when no list comes, and when the server is found
// dead: what hangs on a connection to a dead server may go on hanging after its
// return. whole says that there was a whole list.
func (v *view) keep(ctx, alive context.Context, reflector *cache.Reflector, rows rowStore) (whole bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(alive, func() { cancel(nil) })()
	limit := time.AfterFunc(wholeWithin, func() { cancel(errNotWhole) })
	defer limit.Stop()
	rows.onReplaced(func() {
		limit.Stop()
		if v.failed >= worthSaying {
			v.log.WithField("table", v.name).Info("table is kept again")
		}
		whole, v.failed = true, 0
		v.status.holds(v.name, true)
	})
	err = reflector.ListAndWatchWithContext(ctx)
	if errors.Is(context.Cause(ctx), errNotWhole) {
		err = errNotWhole
	}
	return whole, err
}

// complain logs a failure to list that lasts.
func (v *view) complain(err error, whole bool) {
	if apierrors.IsTooManyRequests(err) || errors.Is(err, errCrowded) {
		v.silence.turnedAway()
	}
	if whole {
		return
	}
	if v.failed++; v.failed == worthSaying {
		v.log.WithError(err).WithField("table", v.name).Warn("table cannot be kept")
	}
}

// pause waits for d, but not beyond the time the server was found dead, since
// there is another wait for its return; false when ctx is done.
func pause(ctx, alive context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-alive.Done():
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// unretried hides from the Reflector those errors that it would retry inside,
// deaf to its context.
func unretried(err error) error {
	switch {
	case apierrors.IsTooManyRequests(err):
		return fmt.Errorf("%w: %s", errCrowded, err.Error())
	case utilnet.IsConnectionRefused(err):
		return errors.New(err.Error())
	}
	return err
}

// pace counts watches that follow one another in haste.
type pace struct {
	last time.Time
	n    int
}

func (p *pace) allows() bool {
	if time.Since(p.last) > hasty {
		p.n = 0
	}
	p.last = time.Now()
	p.n++
	return p.n <= hastyWatches
}
