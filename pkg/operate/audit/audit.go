// Package audit records what zedkube does to the cluster and to the device:
// who asked, why, and what came of it.
//
//	reads:  NodeDrainRequest of zedagent, of baseosmgr and of an operator,
//	        ClusterLeaveRequest, AppDetachRequest, EdgeNodeInfo, KubeLifecycle, K3sVersionStatus,
//	        ClusterMembership, ClusterObject, KubeClusterUpdateStatus, and what the
//	        others say of their operations
//	writes: lines in /persist/zedkube/audit (docs/wire.md, "Audit")
//
// An operation never waits for the disk and never fails because of it: a
// line is handed to the kernel, where it outlives the program, and a step puts
// it on the disk.
package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
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

const period = time.Hour // in case someone has removed the files

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

	Lifecycle  pubsub.Reader[types.KubeLifecycle]
	Version    pubsub.Reader[types.K3sVersionStatus]
	Membership pubsub.Reader[types.ClusterMembership]
	Object     pubsub.Reader[types.ClusterObject]
	Parts      pubsub.Reader[types.KubeClusterUpdateStatus]

	Segments int // files that are kept

	asked  map[string]types.Operation // what stood at the last look, by ID
	stands map[subject]standing       // nil until the lines of former runs have been read
}

// Run steps until ctx is done, and then puts all on the disk.
func (c *Component) Run(ctx context.Context) {
	defer func() { _ = c.apply(action{write: true, counts: true, all: true, sync: true}) }()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step,
		c.Record, c.DeviceOp, c.Update, c.Operator, c.Leave, c.Detach,
		c.Lifecycle, c.Version, c.Membership, c.Object, c.Parts)
}

// Step looks, decides and acts once.
func (c *Component) Step(context.Context) error { return c.apply(decide(c.look())) }

func (c *Component) look() facts {
	f := c.Record.look()
	f.keep, f.asked = c.Segments, c.asked
	f.asks, f.silent = c.asks()
	f.segments, f.err = segments(c.Record.Dir)
	if c.stands == nil {
		c.stands = map[subject]standing{}
		former, _, _ := Read(c.Record.Dir) // what cannot be read is recorded once more
		for _, o := range former {
			follow(c.stands, o)
		}
	}
	f.stands = c.stands
	info, _ := c.Record.Info.Get(types.Global)
	f.life.node = info.NodeName()
	version, heard := c.Version.Get(types.Global)
	f.life.wanted, f.life.running, f.life.heard = version.Wanted, version.Running, heard
	f.life.change, _ = c.Lifecycle.Get(types.Global)
	f.life.membership, _ = c.Membership.Get(types.Global)
	object, _ := c.Object.Get(types.Global)
	if m := f.life.membership.Config; m != nil && object.Metadata.UID == m.ClusterID.UUID.String() {
		f.life.joined = object.Status.Of(types.ClusterJoined).Status == types.ConditionTrue
	}
	f.life.update, _ = c.Parts.Get(types.Global)
	return f
}

// apply does what was decided. What has to be put on the disk is the last: it
// takes as long as that does.
func (c *Component) apply(a action) error {
	errs := []error{a.err}
	for _, s := range a.remove {
		path := filepath.Join(c.Record.Dir, s.name)
		if err := failpoint.Do("remove", path, func() error { return os.Remove(path) }); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove old audit file: %w", err))
		}
	}
	for _, o := range a.heard {
		c.Record.note(o)
		follow(c.stands, o)
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
	return errors.Join(append(errs, loop.Again(a.again))...)
}
