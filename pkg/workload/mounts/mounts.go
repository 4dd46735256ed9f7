// Package mounts restarts k3s where its kubelet does not mount volumes that are attached
// (docs/wire.md, "MountRecovery").
//
//	reads:  app pods, volumes and VolumeAttachments of this node, nodes, the drain lock, KubeLifecycle, whatever makes this node go down
//	writes: MountRecovery
//	acts:   under the drain lock: restarts k3s
package mounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/alive"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// DefaultDevices is where Longhorn has its devices.
const DefaultDevices = "/dev/longhorn"

const (
	period      = time.Minute      // without a gap in what lasts
	callTimeout = 90 * time.Second // the looks at all nodes included
	freeTimeout = 10 * time.Second
	marker      = "MOUNT-WEDGE-RECOVERY: "
)

// Kube is what the component does to the cluster. Every verb ends when its context does.
type Kube interface {
	// FreshNodes lists the nodes with the renewals of their kubelets, Storage the volumes
	// of Longhorn with their replicas, and what is attached to the node.
	FreshNodes(ctx context.Context) ([]types.Node, error)
	Storage(ctx context.Context, node string) (types.Storage, error)
	// SetDrainLock and FreeDrainLock change the lock of that Version, or fail with an
	// error that wraps types.ErrConflict.
	DrainLock(ctx context.Context) (types.DrainLock, error)
	SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error)
	FreeDrainLock(ctx context.Context, lock types.DrainLock) error
}

// K3s is the k3s of this device.
type K3s interface {
	Find() (k3sprocess.Process, error)
	Restart(ctx context.Context, found k3sprocess.Process) error
}

// Component is the recovery of mounts. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Info             pubsub.Reader[types.EdgeNodeInfo]
	Nodes            pubsub.Reader[types.Node]
	AppPods          pubsub.Reader[types.Pod]
	Attachments      pubsub.Reader[types.Attachment]
	Volumes          pubsub.Reader[types.Volume]
	Leases           pubsub.Reader[types.Lease]
	Tables           pubsub.Reader[types.TableStatus]
	API              pubsub.Reader[types.APIStatus]
	DeviceOp, Update pubsub.Source[types.NodeDrainRequest]
	Operator         pubsub.Reader[types.NodeDrainRequest]
	Drain            pubsub.Reader[types.NodeDrainProgress]
	Membership       pubsub.Reader[types.ClusterMembership]
	Parts            pubsub.Reader[types.KubeClusterUpdateStatus] // as reported in this boot
	Version          pubsub.Reader[types.K3sVersionStatus]
	Lifecycle        pubsub.Reader[types.KubeLifecycle]
	Kube             Kube
	K3s              K3s
	Operations       types.OperationLog

	Devices string // directory of Longhorn's devices
	File    string // of Recovery
	BootID  string
	Uptime  func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Recovery pubsub.Writer[types.MountRecovery]

	memory
	witnesses types.Witnesses
	pods      pubsub.Pick[types.Pod]
	calling   loop.Call[result]
}

// Run steps until ctx is done and returns after the call under way has ended.
func (c *Component) Run(ctx context.Context) {
	defer c.calling.End()
	loop.Run(ctx, c.Log, c.Pulse, period, loop.Throttled(c.Step, loop.Sparing), c.Info, c.Nodes, &c.pods, c.Attachments, c.Volumes, c.Leases, c.Tables,
		c.API, c.DeviceOp, c.Update, c.Operator, c.Drain, c.Membership, c.Parts, c.Version, c.Lifecycle, &c.calling)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	if r, ok := c.calling.Take(); ok {
		c.note(r, c.Uptime())
		if r.err != nil {
			c.Log.WithError(r.err).Warn(marker + "k3s was not restarted, or the drain lock not released")
		}
	}
	answers := c.answers()
	c.witnesses = c.witnesses.Hear(c.Nodes.All(), answers, c.Uptime()) // each time: of a word that is heard late nobody knows how old it is
	if c.calling.Busy() {
		return nil // the call has something to publish
	}
	f := c.look()
	a := decide(f)
	c.memory = a.memory
	if s := &a.status; s.Phase != f.published.Phase || s.Reason != f.published.Reason {
		s.Since = time.Now().UTC().Round(0)
	}
	err := c.publish(a.status)
	if err == nil && a.status.Reason != "" && a.status.Reason != f.published.Reason {
		c.Log.WithField("phase", a.status.Phase).Warn(marker + a.status.Reason)
	}
	switch {
	case a.restart && err == nil: // what cannot be counted is not done
		c.calling.Begin(types.Because(ctx, "", a.status.Reason), callTimeout, func(ctx context.Context) result { return result{err: c.restart(ctx, f, a)} })
	case a.release:
		c.tried = f.uptime
		c.calling.Begin(types.Because(ctx, "", "the restart of k3s is over"), callTimeout, func(ctx context.Context) result { return result{c.release(ctx, f, a), true} })
	}
	return errors.Join(err, loop.Again(a.again))
}

func (c *Component) publish(s types.MountRecovery) error {
	if err := c.Recovery.Publish(types.Global, s); err != nil {
		return fmt.Errorf("publish MountRecovery: %w", err)
	}
	return nil
}

// answers reports that the API server answers and the tables are complete. They are read after it, and can only be
// more complete than it says.
func (c *Component) answers() bool {
	api, known := c.API.Get(types.Global)
	return known && api.Answers() && api.Synced
}

func (c *Component) look() facts {
	f := facts{uptime: c.Uptime(), boot: c.BootID, memory: c.memory, volumes: map[string]volume{}}
	var there bool
	if f.published, there = c.Recovery.Get(types.Global); !there {
		_, err := os.Lstat(c.File)
		f.damaged = !errors.Is(err, os.ErrNotExist)
	}
	answers := c.answers()
	info, named := c.Info.Get(types.Global)
	nodes := c.Nodes.All()
	f.own, there = types.OwnNode(nodes, info)
	f.known = answers && named && there
	f.nodes = types.NodesByName(nodes)
	pods := c.pods.Of(c.AppPods, f.own.Name, func(p types.Pod) bool { return p.NodeName == f.own.Name && p.WaitsForVolumes() })
	f.pods = slices.SortedFunc(maps.Values(pods), func(a, b types.Pod) int { return cmp.Compare(a.Key(), b.Key()) })
	attachments, _ := c.Tables.Get(types.TableOwnAttachments)
	volumes, _ := c.Tables.Get(types.TableOwnVolumes)
	f.complete = attachments.Complete && volumes.Complete
	attached := map[string]bool{}
	for _, a := range c.Attachments.All() {
		attached[a.Volume] = true
	}
	for _, v := range c.Volumes.All() {
		_, err := os.Stat(filepath.Join(c.Devices, filepath.Base(v.Name)))
		f.volumes[v.Claim] = volume{v, v.State == "attached" && attached[v.Name] && err == nil}
	}
	f.lock, _ = c.Leases.Get(types.DrainLockName)
	f.change, _ = c.Lifecycle.Get(types.Global)
	drain, _ := c.Drain.Get(types.Global)
	f.drained = isDrainedForK3s(drain)
	if holder := nodes[f.lock.Holder]; f.known && holder.Name != "" && holder.Name != f.own.Name {
		now := time.Now()
		if off, _ := types.Gone(holder, nodes, c.witnesses.Seen(now, f.uptime), now); off {
			f.off = holder.Name
		}
	}
	if member, _ := c.Membership.Get(types.Global); member.Config != nil {
		f.tie = member.Config.TieBreaker()
	}
	f.gate = c.goesDown(f.own.Name, f.shares())
	if len(f.pods) > 0 || f.lock.Holder == f.own.Name {
		var err error
		if f.process, err = c.K3s.Find(); err != nil {
			f.noRestart = err.Error()
		}
	}
	return f
}

// goesDown says what this node does or is about to do, or another server, that a restart of
// k3s must not meet, "" for nothing. shared says that the drain lock of this node's change of k3s is shared: a drain
// for that alone, which is complete, ends with the change. It may be called from any goroutine.
func (c *Component) goesDown(own string, shared bool) string {
	_, device := c.DeviceOp.Get(types.Global)
	_, update := c.Update.Get(types.Global)
	_, operator := c.Operator.Get(types.Global)
	drain, _ := c.Drain.Get(types.Global)
	member, _ := c.Membership.Get(types.Global)
	parts, _ := c.Parts.Get(types.Global)
	version, _ := c.Version.Get(types.Global)
	switch {
	case device || update || operator || !drain.Over() && !(shared && isDrainedForK3s(drain)):
		return "a drain of this node is requested or not over"
	case !c.DeviceOp.Synced() || !c.Update.Synced():
		return "it is not known yet whether a drain of this node is requested"
	case member.State == types.MembershipLeaving:
		return "this node leaves its cluster"
	case parts.Status == types.KubeCompUpdateDownload || parts.Status == types.KubeCompUpdateInProgress:
		return "a component of Kubernetes is updated on this node"
	case version.Version != "" && version.Running != "" && version.Version != version.Running:
		return "a restart would update k3s from " + version.Running + " to " + version.Version
	}
	for _, n := range c.Nodes.All() {
		switch {
		case n.Name == own:
		case n.MayDrainUnlocked():
			return "node " + n.Name + " is cordoned and may be draining, because its agent does not use the drain lock"
		case n.Ready == types.ConditionTrue && n.MayReboot(): // one that is off may be so for good
			return n.NotRebooted()
		}
	}
	return ""
}

// restart restarts k3s under the drain lock, and keeps that; after an error k3s goes on as
// before. What was true at the decision is looked at again under the lock, and what changes
// any moment right before. The lock of this node's change of k3s is shared: it stays as it is, and is the change's to free,
// or that of the drain for it.
func (c *Component) restart(ctx context.Context, f facts, a action) error {
	lock, nodes, err := c.lockAndNodes(ctx)
	if err != nil {
		return err
	}
	shared := c.shares(lock, f.own.Name)
	if !shared && isNeeded(lock, f.off, f.tie, nodes) {
		return fmt.Errorf("%w: node %s holds the drain lock", types.ErrConflict, lock.Holder)
	}
	if err := c.rebuilt(ctx, lock, f.off, nodes); err != nil {
		return err
	}
	mine := lock
	if !shared {
		if mine, err = c.Kube.SetDrainLock(ctx, types.DrainLock{
			Holder: f.own.Name, BootID: f.own.BootID, Since: time.Now().UTC(), Task: types.TaskK3s, Version: lock.Version,
		}); err != nil {
			return err
		}
	}
	if err = c.stillAllowed(ctx, f, a, mine, nodes); err == nil {
		before := a.status
		a.status.Attempts++
		a.status.Last = c.Uptime()
		err = c.publish(a.status)
		if err == nil {
			err = c.tell(ctx, f, mine)
			if !errors.Is(err, k3sprocess.ErrNothingDone) && !errors.Is(err, errChange) {
				if err != nil {
					c.Log.WithError(err).Warn(marker + "it is not known whether k3s restarts")
				}
				return nil // it counts unless it certainly was none
			}
			err = errors.Join(err, c.publish(before))
		}
	}
	if shared {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeTimeout) // that of the call may have ended
	defer cancel()
	if failed := c.Kube.FreeDrainLock(ctx, mine); failed != nil && !errors.Is(failed, types.ErrConflict) {
		err = errors.Join(err, failed)
	}
	return err
}

// errChange is that this node's change of k3s does not share its lock any more. Nothing was done then.
var errChange = fmt.Errorf("%w: this node changes k3s", types.ErrConflict)

// shares reports whether the drain lock is that of a change of k3s on this node that is Stuck because pods do not run.
func (c *Component) shares(lock types.DrainLock, own string) bool {
	change, _ := c.Lifecycle.Get(types.Global)
	drain, _ := c.Drain.Get(types.Global)
	return lock.Holder == own && !lock.Ended && serves(lock.Task, lock.BootID == c.BootID && isDrainedForK3s(drain)) && change.LacksPods()
}

// tell has k3s restarted. A change whose lock is shared looks at MountRecovery before it ends, or stops k3s itself, and
// after it has published that: as that has the restart already, one of the two sees the other.
func (c *Component) tell(ctx context.Context, f facts, mine types.DrainLock) error {
	if mine.Task != types.TaskK3s && !c.shares(mine, f.own.Name) {
		return errChange
	}
	err := c.K3s.Restart(ctx, f.process)
	types.Did(ctx, c.Operations, "restart k3s", "node/"+f.own.Name, err)
	return err
}

// rebuilt says which volumes the lock of a change of k3s that is over is kept for. It would be
// freed after the restart, and its volumes forgotten.
func (c *Component) rebuilt(ctx context.Context, lock types.DrainLock, off string, nodes []types.Node) error {
	if !isKept(lock, off, nodes) {
		return nil
	}
	s, err := c.Kube.Storage(ctx, lock.Holder)
	if err != nil {
		return err
	}
	if worse := lock.Degraded(s); len(worse) > 0 {
		return fmt.Errorf("%w: the drain lock is kept until volumes on node %s are rebuilt: %s", types.ErrConflict, lock.Holder, phrase.Few(worse, 3))
	}
	return nil
}

// stillAllowed says why k3s is not to be restarted under the lock that is now ours.
func (c *Component) stillAllowed(ctx context.Context, f facts, a action, mine types.DrainLock, nodes []types.Node) error {
	nodes, err := c.alive(ctx, f.own.Name, nodes)
	if err != nil {
		return err
	}
	s, err := c.Kube.Storage(ctx, f.own.Name)
	if err != nil {
		return err
	}
	if err := a.refuses(f.own.Name, nodes, s); err != nil {
		return err
	}
	switch lock, err := c.Kube.DrainLock(ctx); {
	case err != nil:
		return err
	case lock.Version != mine.Version:
		return errors.New("the drain lock was taken away meanwhile")
	case mine.Task != types.TaskK3s && !c.shares(lock, f.own.Name):
		return errChange
	}
	if why := c.goesDown(f.own.Name, mine.Task != types.TaskK3s); why != "" {
		return errors.New(why)
	}
	return nil
}

func (c *Component) lockAndNodes(ctx context.Context) (types.DrainLock, []types.Node, error) {
	lock, err := c.Kube.DrainLock(ctx)
	if err != nil {
		return lock, nil, err
	}
	nodes, err := c.Kube.FreshNodes(ctx)
	return lock, nodes, err
}

// alive lists the nodes that are. Of a list without this node nothing is concluded.
func (c *Component) alive(ctx context.Context, self string, before []types.Node) ([]types.Node, error) {
	nodes, err := alive.Nodes(ctx, c.Kube.FreshNodes, before)
	if err == nil && !slices.ContainsFunc(nodes, func(n types.Node) bool { return n.Name == self && n.Ready == types.ConditionTrue }) {
		err = errors.New("this node is not Ready")
	}
	return nodes, err
}

// release frees the drain lock that is held for a restart, once the kubelet of this node is
// back, or where k3s was not restarted since the boot in which the lock was taken.
func (c *Component) release(ctx context.Context, f facts, a action) error {
	lock, nodes, err := c.lockAndNodes(ctx)
	if err != nil || lock.Version != f.lock.Version {
		return err
	}
	if a.status.Last > 0 || lock.BootID != f.boot {
		_, err = c.alive(ctx, f.own.Name, nodes)
	}
	if err == nil {
		err = c.Kube.FreeDrainLock(ctx, lock)
	}
	return err
}
