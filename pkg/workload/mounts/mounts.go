// Package mounts restarts k3s where its kubelet does not mount volumes that are attached
// (docs/wire.md, "MountRecovery").
//
//	reads:  app pods, volumes and VolumeAttachments of this node, nodes, the drain lock, whatever makes this node go down
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
	"github.com/zedkube/zedkube/pkg/base/span"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// DefaultDevices is where Longhorn has its devices.
const DefaultDevices = "/dev/longhorn"

const (
	period      = time.Minute      // without a gap in what lasts
	callTimeout = 90 * time.Second // the looks at all nodes included
	pauseAfter  = 2 * time.Minute  // a try that failed
	marker      = "MOUNT-WEDGE-RECOVERY: "
)

// Kube is what the component does to the cluster. Every verb ends when its context does.
type Kube interface {
	// FreshNodes lists the nodes with the renewals of their kubelets, Storage the volumes
	// of Longhorn and what is attached to the node.
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
	Parts            pubsub.Reader[types.KubeClusterUpdateStatus]
	Version          pubsub.Reader[types.K3sVersionStatus]
	Kube             Kube
	K3s              K3s
	Operations       types.OperationLog

	Devices string // directory of Longhorn's devices
	File    string // of Recovery
	BootID  string
	Uptime  func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Recovery pubsub.Writer[types.MountRecovery]

	spans   map[string]span.Span
	tried   time.Duration
	pause   time.Duration
	failed  string
	looked  string
	pods    pubsub.Pick[types.Pod]
	calling loop.Call[error]
}

// Run steps until ctx is done and returns after the call under way has ended.
func (c *Component) Run(ctx context.Context) {
	defer c.calling.End()
	loop.Run(ctx, c.Log, c.Pulse, period, loop.Throttled(c.Step, 0), c.Info, c.Nodes, &c.pods, c.Attachments, c.Volumes, c.Leases, c.Tables,
		c.API, c.DeviceOp, c.Update, c.Operator, c.Drain, c.Membership, c.Parts, c.Version, &c.calling)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	if err, ok := c.calling.Take(); ok && err != nil {
		c.pause, c.failed, c.looked = c.Uptime()+pauseAfter, phrase.Cut(err.Error(), 300), ""
		c.Log.WithError(err).Warn(marker + "k3s was not restarted, or the drain lock not released")
	}
	f := c.look()
	a := decide(f)
	c.spans = a.spans
	if f.busy {
		return nil // the call has something to publish
	}
	if err := c.Recovery.Publish(types.Global, a.status); err != nil {
		return fmt.Errorf("publish MountRecovery: %w", err) // nothing is done that would not be counted
	}
	if a.status.Reason != "" && a.status.Reason != f.published.Reason {
		c.Log.WithField("phase", a.status.Phase).Warn(marker + a.status.Reason)
	}
	switch t := a.restart; {
	case t != nil:
		c.calling.Begin(types.Because(ctx, "", t.status.Reason), callTimeout, func(ctx context.Context) error { return c.restart(ctx, *t) })
	case a.release:
		c.looked, c.tried = f.lock.Version, f.uptime
		c.calling.Begin(types.Because(ctx, "", "k3s has restarted"), callTimeout, func(ctx context.Context) error { return c.release(ctx, f.self) })
	}
	return loop.Again(a.again)
}

func (c *Component) look() facts {
	f := facts{
		now: time.Now().UTC().Round(0), uptime: c.Uptime(), boot: c.BootID, busy: c.calling.Busy(), spans: c.spans,
		tried: c.tried, pause: c.pause, failed: c.failed, looked: c.looked,
	}
	var ok bool
	if f.published, ok = c.Recovery.Get(types.Global); !ok {
		_, err := os.Lstat(c.File)
		f.damaged = !errors.Is(err, os.ErrNotExist)
	}
	api, ok := c.API.Get(types.Global)
	info, named := c.Info.Get(types.Global)
	nodes := c.Nodes.All()
	own, there := types.OwnNode(nodes, info)
	f.self, f.known = own.Name, ok && api.Answers() && api.Synced && named && there
	f.nodes = slices.SortedFunc(maps.Values(nodes), func(a, b types.Node) int { return cmp.Compare(a.Name, b.Name) })
	pods := c.pods.Of(c.AppPods, f.self, func(p types.Pod) bool { return p.NodeName == own.Name && there && waitsForVolumes(p) })
	f.pods = slices.SortedFunc(maps.Values(pods), func(a, b types.Pod) int { return cmp.Compare(a.Key(), b.Key()) })
	attachments, _ := c.Tables.Get(types.TableOwnAttachments)
	volumes, _ := c.Tables.Get(types.TableOwnVolumes)
	f.complete = attachments.Complete && volumes.Complete
	f.volumes, f.attached, f.devices = map[string]types.Volume{}, map[string]bool{}, map[string]bool{}
	for _, a := range c.Attachments.All() {
		f.attached[a.Volume] = true
	}
	for _, v := range c.Volumes.All() {
		_, err := os.Stat(filepath.Join(c.Devices, filepath.Base(v.Name)))
		f.volumes[v.Claim], f.devices[v.Name] = v, err == nil
	}
	f.lock, _ = c.Leases.Get(types.DrainLockName)
	f.gate = cmp.Or(c.goesDown(), drainsUnlocked(f.nodes, f.self))
	if len(f.pods) > 0 {
		var err error
		if f.process, err = c.K3s.Find(); err != nil {
			f.noRestart = err.Error()
		}
	}
	return f
}

// goesDown says what this node does, or is about to do, that a restart of k3s must not meet,
// "" for nothing. It may be called from any goroutine.
func (c *Component) goesDown() string {
	_, device := c.DeviceOp.Get(types.Global)
	_, update := c.Update.Get(types.Global)
	_, operator := c.Operator.Get(types.Global)
	drain, _ := c.Drain.Get(types.Global)
	member, _ := c.Membership.Get(types.Global)
	parts, _ := c.Parts.Get(types.Global)
	version, _ := c.Version.Get(types.Global)
	switch {
	case device || update || operator || drain.Phase != "" && drain.Phase != types.PhaseIdle:
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
	return ""
}

// restart restarts k3s under the drain lock, and keeps that. What was true at the decision
// is looked at again under the lock, and what changes any moment right before.
func (c *Component) restart(ctx context.Context, t task) error {
	nodes, err := c.lock(ctx, t.self)
	if err != nil {
		return err
	}
	s, err := c.Kube.Storage(ctx, t.self.Name)
	if err == nil {
		err = t.refuses(nodes, s)
	}
	if err != nil {
		return err
	}
	if why := c.goesDown(); why != "" {
		return errors.New(why)
	}
	t.status.Attempts++
	t.status.Last = c.Uptime()
	if err := c.Recovery.Publish(types.Global, t.status); err != nil {
		return fmt.Errorf("publish MountRecovery: %w", err)
	}
	err = c.K3s.Restart(ctx, t.process)
	types.Did(ctx, c.Operations, "restart k3s", "node/"+t.self.Name, err)
	return err
}

// lock takes the drain lock, and returns the nodes as they are after it.
func (c *Component) lock(ctx context.Context, self types.Node) ([]types.Node, error) {
	lock, err := c.Kube.DrainLock(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := c.Kube.FreshNodes(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(nodes, func(n types.Node) bool { return n.Name == lock.Holder }) {
		return nil, fmt.Errorf("node %s holds the drain lock", lock.Holder)
	}
	_, err = c.Kube.SetDrainLock(ctx, types.DrainLock{
		Holder: self.Name, BootID: self.BootID, Since: time.Now().UTC(), Task: types.TaskK3s, Version: lock.Version,
	})
	if err != nil {
		return nil, err
	}
	return c.alive(ctx, self.Name, nodes)
}

// alive lists the nodes that are. Of a list without this node nothing is concluded.
func (c *Component) alive(ctx context.Context, self string, before []types.Node) ([]types.Node, error) {
	nodes, err := alive.Nodes(ctx, c.Kube.FreshNodes, before)
	if err == nil && !slices.ContainsFunc(nodes, func(n types.Node) bool { return n.Name == self && n.Ready == types.ConditionTrue }) {
		err = errors.New("this node is not Ready")
	}
	return nodes, err
}

// release frees the drain lock if it is held for a restart, and the kubelet of this node is
// back.
func (c *Component) release(ctx context.Context, self string) error {
	lock, err := c.Kube.DrainLock(ctx)
	if err != nil || lock.Holder != self || lock.Task != types.TaskK3s {
		return err
	}
	nodes, err := c.Kube.FreshNodes(ctx)
	if err != nil {
		return err
	}
	if _, err = c.alive(ctx, self, nodes); err == nil {
		err = c.Kube.FreeDrainLock(ctx, lock)
	}
	return err
}
