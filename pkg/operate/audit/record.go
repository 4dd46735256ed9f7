package audit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Record is a types.OperationLog that writes lines. It is ready at once, with or
// without a Component: without one nothing is put on the disk before the kernel
// does it, and no file is removed. Several processes may write to one
// directory. Every exported field but From is required.
type Record struct {
	Log     logrus.FieldLogger
	Info    pubsub.Reader[types.EdgeNodeInfo] // who this device is
	Dir     string                            // where the lines are
	Segment int64                             // bytes after which a new file is begun
	From    string                            // types.Operation.From of all that this process does, "" where nobody asked

	mu     sync.Mutex
	bell   chan<- struct{}
	source string // of IDs: no other process has it
	count  int
	last   map[operationKey]*chain
	latest map[string]*chain // by target
	store  store
	dirty  bool      // something is written and not on the disk
	synced time.Time // when it last was put there
	report string    // what was last logged of a write that failed
}

// Notify rings when lines were written or could not be.
func (r *Record) Notify(bell chan<- struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bell = bell
}

// look says how it stands.
func (r *Record) look() facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := facts{now: time.Now(), dirty: r.dirty, synced: r.synced, waiting: len(r.store.waiting)}
	for _, l := range r.last {
		if l.behind {
			f.counts = append(f.counts, l.due())
		}
	}
	return f
}

// put writes a line, or keeps it until it can be written. It is called with mu
// held.
func (r *Record) put(v any) {
	r.store.add(v)
	r.flush()
	r.dirty = true
	select {
	case r.bell <- struct{}{}: // a nil bell never takes it
	default:
	}
}

// flush writes what waits. That it cannot be written is logged when it begins.
// It is called with mu held.
func (r *Record) flush() {
	err := r.store.flush(r.Dir, r.Segment)
	switch {
	case err == nil:
		if r.report != "" {
			r.Log.Info("operations are audited again")
		}
		r.report = ""
	case err.Error() != r.report:
		r.report = err.Error()
		r.Log.WithError(err).Warn("operations cannot be audited on disk, the latest are kept in memory")
	}
}

// writeWaiting tries again to write what could not be written.
func (r *Record) writeWaiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
}

// note writes an operation that is complete.
func (r *Record) note(o types.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	id, at := o.ID, o.At
	o = r.complete(o, now)
	if id != "" {
		o.ID = id
	}
	if !at.IsZero() {
		o.At = at.UTC().Round(time.Millisecond)
	}
	r.put(o)
}

// sync puts all that is written on the disk. It holds nobody up meanwhile.
func (r *Record) sync() error {
	r.mu.Lock()
	r.dirty, r.synced = false, time.Now()
	files, full := r.store.unsynced()
	r.mu.Unlock()
	var errs []error
	for _, f := range files {
		if err := f.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, fmt.Errorf("sync audit file: %w", err))
		}
	}
	for _, f := range full {
		_ = f.Close()
	}
	return errors.Join(errs...)
}

// lookAfter forgets what is over, and a file that is not there any more.
func (r *Record) lookAfter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(time.Now(), within)
	r.store.lookAfter()
}
