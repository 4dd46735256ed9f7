// Package audit records what zedkube does to the cluster and to the device:
// who asked, why, and what came of it.
//
//	reads:  NodeDrainRequest of zedagent, of baseosmgr and of an operator,
//	        ClusterLeaveRequest, AppDetachRequest, EdgeNodeInfo, and what the
//	        others say of their operations
//	writes: lines in /persist/zedkube/audit (docs/wire.md, "Audit")
//
// An operation never waits for the disk and never fails because of it: a
// line is handed to the kernel, where it outlives the program, and a step puts
// it on the disk.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// The usual place and bounds of the lines: some ten thousand operations.
const (
	DefaultDir      = "/persist/zedkube/audit"
	DefaultSegment  = 512 << 10 // bytes
	DefaultSegments = 8
)

// period is in case someone has removed the files.
const period = time.Hour

// Component keeps a Record within its bounds and on the disk, and notes in it
// what the device is asked for. Every exported field is required.
type Component struct {
	Log    logrus.FieldLogger
	Pulse  *loop.Pulse
	Record *Record

	DeviceOp pubsub.Source[types.NodeDrainRequest] // of zedagent
	Update   pubsub.Source[types.NodeDrainRequest] // of baseosmgr
	Operator pubsub.Source[types.NodeDrainRequest]
	Leave    pubsub.Source[types.ClusterLeaveRequest]
	Detach   pubsub.Source[types.AppDetachRequest]

	Segments int // files that are kept

	asked map[string]types.Operation // what stood at the last look, by ID
}

// Run steps until ctx is done, and then puts all on the disk.
func (c *Component) Run(ctx context.Context) {
	defer func() { _ = c.apply(action{write: true, counts: true, all: true, sync: true}) }()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step,
		c.Record, c.DeviceOp, c.Update, c.Operator, c.Leave, c.Detach)
}

// Step looks, decides and acts once.
func (c *Component) Step(context.Context) error { return c.apply(decide(c.look())) }

func (c *Component) look() facts {
	f := c.Record.look()
	f.keep, f.asked = c.Segments, c.asked
	f.asks, f.silent = c.asks()
	f.segments, f.err = segments(c.Record.Dir)
	return f
}

// apply does what was decided. What has to be put on the disk is the last: it
// takes as long as that does.
func (c *Component) apply(a action) error {
	errs := []error{a.err}
	for _, s := range a.remove {
		if err := os.Remove(filepath.Join(c.Record.Dir, s.name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove old audit file: %w", err))
		}
	}
	for _, o := range a.heard {
		c.Record.note(o)
	}
	if a.asked != nil {
		c.asked = a.asked
	}
	if a.counts {
		c.Record.writeCounts(a.all)
	}
	if a.write {
		c.Record.writeWaiting()
	}
	if a.sync {
		errs = append(errs, c.Record.sync())
	}
	c.Record.lookAfter()
	if a.again > 0 {
		errs = append(errs, loop.After(a.again))
	}
	return errors.Join(errs...)
}

const (
	// syncEvery is what a power cut may cost while much is done.
	syncEvery = time.Second
	// writeAgain is the pause between tries on a full disk, if nothing is done.
	writeAgain = 10 * time.Second
)

// facts is what the decision rests on.
type facts struct {
	now      time.Time
	dirty    bool        // something is written and not on the disk
	synced   time.Time   // when it last was put there
	waiting  int         // lines that could not be written
	counts   []time.Time // when each that is behind is to be written
	segments []segment   // the files, oldest first
	keep     int         // how many may stay
	err      error       // why they could not be listed

	asks   map[string]types.Operation // what the device is asked for, by ID
	asked  map[string]types.Operation // the same, at the last look
	silent map[string]bool            // by operation and requester: whose topic has not been heard of yet
}

// segment is one file of lines.
type segment struct {
	name string
	n    int
}

// action is what to do about it.
type action struct {
	sync   bool
	write  bool // what waits
	counts bool // how often what is tried again and again was tried
	all    bool // also those that are not due
	remove []segment
	heard  []types.Operation          // what the device was asked for since the last look
	asked  map[string]types.Operation // what it is asked for now
	again  time.Duration
	err    error
}

// decide says what to put on the disk, what to try again, what goes, and what was
// asked for.
func decide(f facts) action {
	a := action{err: f.err, write: f.waiting > 0, heard: requestsMade(f), asked: f.asks}
	for id, o := range f.asked {
		if _, stands := f.asks[id]; !stands && f.silent[o.Op+" "+o.By] {
			a.asked[id] = o
		}
	}
	if f.dirty {
		if rest := syncEvery - f.now.Sub(f.synced); rest > 0 && rest <= syncEvery {
			a.wait(rest)
		} else {
			a.sync = true
		}
	}
	if a.write {
		a.wait(writeAgain)
	}
	for _, due := range f.counts {
		if rest := due.Sub(f.now); rest > 0 {
			a.wait(rest)
		} else {
			a.counts = true
		}
	}
	if f.err == nil && len(f.segments) > f.keep {
		oldest := slices.SortedFunc(slices.Values(f.segments), func(x, y segment) int { return cmp.Compare(x.n, y.n) })
		a.remove = oldest[:len(oldest)-f.keep]
	}
	return a
}

// wait asks to be called again within d.
func (a *action) wait(d time.Duration) {
	if a.again == 0 || d < a.again {
		a.again = d
	}
}

const (
	// within is how soon after one try the next one has to come to be counted
	// with it.
	within = 10 * time.Minute
	// countEvery and countAtMost are how often a count is written: a drain may
	// ask for the same eviction every few seconds for days.
	countEvery  = time.Minute
	countAtMost = time.Hour
)

// nextCount is when a count that is not written yet is to be: the older the
// first try, the later.
func nextCount(first, written time.Time) time.Time {
	return written.Add(min(max(countEvery, written.Sub(first)/10), countAtMost))
}
