package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

const (
	firstRetry = time.Second
	lastRetry  = 15 * time.Second
	// steady is how long a view must have gone well for the next retry to be
	// a first one again: a server that cuts every watch is not asked each second.
	steady = time.Minute
	// worthSaying is how many failures in a row are logged: after fewer a
	// probe has not yet shown that this is an outage, which is logged as such.
	worthSaying = 4
)

// view lists and watches one kind of object into one table.
//
// It drives a client-go Reflector by itself instead of through a shared
// informer: the table is the cache, so that each object is held once and a
// relist replaces rows in place; and the retries are ours, so that a silent
// server is left alone and one that answers again is listed at once.
type view struct {
	name    string
	log     logrus.FieldLogger
	silence *silence
	status  *status
}

// run keeps the table until ctx is done.
func (v *view) run(ctx context.Context, lw *cache.ListWatch, rows rowStore) {
	failed := 0 // times in a row
	rows.onReplaced(func() {
		if failed >= worthSaying {
			v.log.WithField("table", v.name).Info("table is kept again")
		}
		failed = 0
		v.status.holds(v.name, true)
	})
	reflector := cache.NewReflectorWithOptions(lw, rows.example(), rows, cache.ReflectorOptions{
		Name: "zedkube " + v.name,
		// Inside the Reflector only short waits: some of them outlast ctx.
		Backoff: &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1, Jitter: 0.5, Steps: 1 << 30},
	})
	retry := firstRetry
	for {
		alive, open := v.silence.gates()
		select {
		case <-ctx.Done():
			return
		case <-open:
		}
		started := time.Now()
		err := listAndWatch(ctx, alive, reflector)
		v.status.holds(v.name, false)
		if time.Since(started) > steady || alive.Err() != nil {
			retry = firstRetry
		}
		if err != nil && alive.Err() == nil && ctx.Err() == nil {
			failed++
			v.complain(err, failed)
		}
		if !pause(ctx, alive, retry/2+rand.N(retry)) {
			return
		}
		retry = min(2*retry, lastRetry)
	}
}

// complain logs a failure that lasts.
func (v *view) complain(err error, failed int) {
	if apierrors.IsTooManyRequests(err) {
		v.silence.turnedAway()
	}
	if failed == worthSaying {
		v.log.WithError(err).WithField("table", v.name).Warn("table cannot be kept")
	}
}

// listAndWatch returns at an error, at the end of a watch that cannot be taken
// up again, and when the server is found dead: what hangs on a connection to a
// dead server may go on hanging after its return.
func listAndWatch(ctx, alive context.Context, reflector *cache.Reflector) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(alive, cancel)()
	return reflector.ListAndWatchWithContext(ctx)
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
	if err != nil && (utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)) {
		return errors.New(err.Error())
	}
	return err
}

// rowStore is what a view writes into.
type rowStore interface {
	cache.ReflectorStore
	cache.TransformingStore
	example() any
	onReplaced(func())
}

// rows writes the objects that a Reflector sees into a table.
type rows[O, T any] struct {
	table Writer[T]
	row   func(O) T
	key   func(T) string
	slim  func(O) O

	replaced func()
}

func (r *rows[O, T]) example() any           { var o O; return o }
func (r *rows[O, T]) onReplaced(done func()) { r.replaced = done }

// Add implements cache.ReflectorStore.
func (r *rows[O, T]) Add(obj any) error { return r.Update(obj) }

// Update implements cache.ReflectorStore.
func (r *rows[O, T]) Update(obj any) error {
	o, ok := obj.(O)
	if !ok {
		return fmt.Errorf("store object: unexpected %T", obj)
	}
	row := r.row(o)
	return r.table.Publish(r.key(row), row)
}

// Delete implements cache.ReflectorStore.
func (r *rows[O, T]) Delete(obj any) error {
	o, ok := obj.(O)
	if !ok {
		return fmt.Errorf("delete object: unexpected %T", obj)
	}
	return r.table.Unpublish(r.key(r.row(o)))
}

// Replace implements cache.ReflectorStore: it takes over a whole list and only
// then drops the rows that are not in it.
func (r *rows[O, T]) Replace(list []any, _ string) error {
	var errs []error
	listed := make(map[string]bool, len(list))
	for _, obj := range list {
		errs = append(errs, r.Update(obj))
		if o, ok := obj.(O); ok {
			listed[r.key(r.row(o))] = true
		}
	}
	for key := range r.table.All() {
		if !listed[key] {
			errs = append(errs, r.table.Unpublish(key))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if r.replaced != nil {
		r.replaced()
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (r *rows[O, T]) Resync() error { return nil }

// Transformer implements cache.TransformingStore: a list on its way in is held
// in slim form.
func (r *rows[O, T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(O); ok {
			return r.slim(o), nil
		}
		return obj, nil
	}
}
