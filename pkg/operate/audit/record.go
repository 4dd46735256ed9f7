package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/peer"
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

// OfCommand is where a command records what it does to the cluster itself, on the device that own names.
func OfCommand(own types.EdgeNodeInfo, dir string) *Record {
	info := &pubsub.Table[types.EdgeNodeInfo]{}
	_ = info.Publish(types.Global, own)
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	return &Record{Log: silent, Info: info, Dir: dir, Segment: DefaultSegment, From: peer.Self().Who()}
}

// Notify rings when lines were written or could not be.
func (r *Record) Notify(bell chan<- struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bell = bell
}

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
	pubsub.Ring(r.bell)
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

func (r *Record) writeWaiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
}

func (r *Record) note(o types.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(r.complete(o, time.Now()))
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

// The requesters of a drain, as NodeDrainProgress names them.
const (
	byDeviceOp = "DEVICEOP"
	byUpdate   = "UPDATE"
	byOperator = "OPERATOR"
)

// asks is what the device is asked for now, by ID, and the kinds of requests whose
// topic has not been heard of yet. An ID is made of the request, so that the one
// line of a request that stands over a restart replaces the other.
func (c *Component) asks() (pending map[string]types.Operation, silent map[string]bool) {
	pending, silent = map[string]types.Operation{}, map[string]bool{}
	info, _ := c.Record.Info.Get(types.Global)
	node := "node/" + info.NodeName()
	for by, topic := range map[string]pubsub.Source[types.NodeDrainRequest]{byDeviceOp: c.DeviceOp, byUpdate: c.Update, byOperator: c.Operator} {
		silent[requestDrain+" "+by] = !topic.Synced() // before Get, or what comes in between is taken for withdrawn
		if r, ok := topic.Get(types.Global); ok {
			stand(pending, types.Operation{At: r.RequestedAt, Component: "drain", Op: requestDrain, Target: node, By: by, Why: r.Context})
		}
	}
	silent[requestLeave+" "+byOperator] = !c.Leave.Synced()
	if r, ok := c.Leave.Get(types.Global); ok {
		stand(pending, types.Operation{At: r.RequestedAt, Component: "membership", Op: requestLeave, Target: node, By: byOperator, Why: leaveWhy(r)})
	}
	for app, r := range c.Detach.All() {
		if r.ID == uuid.Nil { // of no command of ours
			continue
		}
		why := "node " + r.Node + " is gone"
		if r.Force {
			why += ", even if its storage is not proved to be redundant"
		}
		stand(pending, types.Operation{ID: requestDetach + " " + r.ID.String(), At: r.Asked, Component: "apps", Op: requestDetach, Target: "app/" + app, By: byOperator, Why: why})
	}
	return pending, silent
}

// leaveWhy is what is asked for besides the leave itself.
func leaveWhy(r types.ClusterLeaveRequest) string {
	var why []string
	if r.Context != "" {
		why = append(why, r.Context)
	}
	if r.Undo {
		why = append(why, "a decided leave without the cluster is withdrawn")
	}
	if w := r.WithoutCluster; w != nil {
		why = append(why, "without the cluster, of which these are named as off: "+strings.Join(w.Dead, " "))
	}
	if c := r.Consent; c != nil {
		why = append(why, "data may be lost, digest "+c.Digest())
	}
	return strings.Join(why, "; ")
}

func stand(pending map[string]types.Operation, o types.Operation) {
	o.Outcome = types.OperationOK
	switch {
	case o.ID != "": // of a command that renews the time
	case o.At.IsZero():
		o.ID = o.Op + " " + o.By
	default:
		o.ID = o.Op + " " + o.By + " " + strconv.FormatInt(o.At.UnixNano(), 36)
	}
	pending[o.ID] = o
}

// What the device is asked for, and what takes it back.
const (
	requestDrain  = "request drain"
	requestLeave  = "request leave"
	requestDetach = "request detach"
)

// withdrawals name the end of a request. That for a failover by hand is not taken
// back, it runs out.
var withdrawals = map[string]string{requestDrain: "withdraw drain", requestLeave: "withdraw leave"}

func requestsMade(f facts) []types.Operation {
	var heard []types.Operation
	for id, o := range f.asks {
		if _, known := f.asked[id]; !known {
			heard = append(heard, o)
		}
	}
	for id, o := range f.asked {
		fulfilled := o.Op == requestLeave && f.life.membership.State == types.MembershipLeft // not withdrawn
		if _, stands := f.asks[id]; stands || fulfilled || f.silent[o.Op+" "+o.By] {
			continue
		}
		if op, ok := withdrawals[o.Op]; ok {
			o.ID, o.Op, o.Why, o.At = "", op, "", time.Time{}
			heard = append(heard, o)
		}
	}
	slices.SortFunc(heard, func(a, b types.Operation) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Op, b.Op)) })
	return heard
}
