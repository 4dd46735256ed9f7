// Package drain empties this node when somebody asks for it, one node of the
// cluster at a time; says all the while how far it is and what is in the way;
// and gives the node back when the request is withdrawn or the device has
// rebooted.
//
//	reads:  NodeDrainRequest of zedagent, of baseosmgr and of an operator,
//	        KubeLifecycle, ClusterMembership, EdgeNodeClusterConfig, ConfigItemValueMap,
//	        EdgeNodeInfo, NodeAgentStatus, nodes and their clocks, this node's pods, the drain
//	        lock, the API's health, the force files, the fault marker and the
//	        markers of a device that goes down
//	writes: NodeDrainStatus, NodeDrainProgress, NodeDrainJournal
//	acts:   takes and frees the drain lock, cordons and uncordons the node,
//	        evicts its pods, deletes it when it leaves the cluster, sets its
//	        drain conditions, writes Events
//
// A step never waits for Kubernetes: the calls that are under way run beside
// it, so that a withdrawn request is answered at once even when the API hangs.
// What a restart must not lose is in a record that is written down before
// anything is done about it (docs/wire.md, "NodeDrainJournal").
package drain

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/filewatch"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// The usual places of the files of docs/wire.md, "Files".
const (
	RebootReason      = "/persist/reboot-reason"
	BootReason        = "/persist/boot-reason"
	ScheduledShutdown = "/run/systemd/shutdown/scheduled"
)

// period is in case an event was missed. A drain under way looks every second.
const period = 10 * time.Second

// Kube is what the drain does to the cluster and asks of it. Every verb ends
// when its context does.
type Kube interface {
	// Cordon makes the node unschedulable in the name of by; a foreign cordon
	// is left as it is and is no error.
	Cordon(ctx context.Context, node string, by types.Cordon) error
	// Uncordon undoes a cordon of zedkube's that no operator keeps; any other
	// stays and is no error.
	Uncordon(ctx context.Context, node string) error
	// UncordonLegacy undoes a cordon of EVE's own zedkube: one without our
	// annotation, older than before, on a Node without our stamp.
	UncordonLegacy(ctx context.Context, node string, before time.Time) error
	// Unkeep forgets that an operator keeps the node's cordon.
	Unkeep(ctx context.Context, node string) error
	// PodsToEvict lists the pods, from the API server, that have to leave the node.
	PodsToEvict(ctx context.Context, node string) ([]types.Pod, error)
	// Evict asks for the pod's eviction; nil also when it is gone. The error
	// wraps types.ErrDisruptionBudget when a budget refuses.
	Evict(ctx context.Context, pod types.Pod) error
	// FreshNodes lists the nodes and when their kubelets last renewed.
	FreshNodes(ctx context.Context) ([]types.Node, error)
	// Storage lists the volumes, and what is attached to node.
	Storage(ctx context.Context, node string) (types.Storage, error)
	// VolumeUsers lists the pods on node that use volumes, by PersistentVolume.
	VolumeUsers(ctx context.Context, node string) (map[string][]types.Pod, error)
	// Situations says why the pods do not move.
	Situations(ctx context.Context, node string, pods []types.Pod) ([]types.PodSituation, error)
	// DrainLock, SetDrainLock and FreeDrainLock read and write the lock; a
	// write wraps types.ErrConflict when somebody else was faster.
	DrainLock(ctx context.Context) (types.DrainLock, error)
	SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error)
	FreeDrainLock(ctx context.Context, lock types.DrainLock) error
	// DeleteNode deletes this very Node, not a namesake.
	DeleteNode(ctx context.Context, node types.Node) error
	SetDrainConditions(ctx context.Context, node string, conditions types.DrainConditions) error
	Event(ctx context.Context, event types.Event) error
}

// Component is the drain. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	DeviceOp   requestTopic                       // of zedagent
	Update     requestTopic                       // of baseosmgr
	Operator   requestTopic                       // of a person at the device
	Lifecycle  pubsub.Reader[types.KubeLifecycle] // of this agent, which may ask for a drain
	Config     pubsub.Reader[types.EdgeNodeClusterConfig]
	Membership pubsub.Reader[types.ClusterMembership]
	Settings   pubsub.Reader[types.ConfigItemValueMap]
	Info       pubsub.Reader[types.EdgeNodeInfo]
	Nodes      pubsub.Reader[types.Node]
	NodePods   pubsub.Reader[types.Pod] // of this node, every namespace
	API        pubsub.Reader[types.APIStatus]
	Clocks     pubsub.Reader[types.NodeClock] // of other nodes, by name
	Leases     pubsub.Reader[types.Lease]     // of eve-kube-app, by name
	Agent      pubsub.Reader[types.NodeAgentStatus]
	Kube       Kube
	Operations types.OperationLog

	ForceFiles  []string             // an operator's NodeDrainStatus; the first that speaks wins
	FaultMarker string               // while it exists, COMPLETE is held back
	Markers     []string             // one that gets content after COMPLETE says that the device is going down
	BootID      string               // of this boot
	Uptime      func() time.Duration // since the boot, suspended time included
	Hour        time.Duration        // an hour, but in tests

	Status   pubsub.Writer[types.NodeDrainStatus]
	Progress pubsub.Writer[types.NodeDrainProgress]
	Journal  pubsub.Writer[types.NodeDrainJournal]

	state
	running [lanes]*runningCall
	calls   [lanes]loop.Call[outcome]

	renewals  map[string]renewal // of the acting lane's calls, one of which runs at a time
	witnesses types.Witnesses
	stamps    types.HeardK3sStamps
}

// Run steps until ctx is done and returns after the calls under way have ended.
func (c *Component) Run(ctx context.Context) {
	var watch sync.WaitGroup
	defer watch.Wait()
	files := &pubsub.Bells{}
	watch.Go(func() {
		watchFiles(ctx, c.Log, files.Ring, append(slices.Clone(c.ForceFiles), c.FaultMarker)...)
	})
	c.run(ctx, files)
}

// run is Run with somebody else to ring when the operator's files change.
func (c *Component) run(ctx context.Context, files loop.Input) {
	defer c.calls[acting].End()
	defer c.calls[reporting].End()
	defer c.calls[acting].Cancel()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, files,
		c.DeviceOp, c.Update, c.Operator, c.Lifecycle, c.Config, c.Membership, c.Settings, c.Info, c.Agent,
		c.Nodes, c.NodePods, c.API, c.Leases, &c.calls[acting], &c.calls[reporting])
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	f := c.update(c.look())
	return c.apply(ctx, f, decide(f))
}

// watchFiles rings when something happens to one of the files, until ctx is done. Where
// nothing can be watched that is reported: the drain's period has to do then.
func watchFiles(ctx context.Context, log logrus.FieldLogger, ring func(), files ...string) {
	watch, err := filewatch.New()
	if err != nil {
		log.WithError(err).Warn("cannot watch for the NodeDrainStatus force file, it will be seen late")
		return
	}
	if err := watch.Run(ctx, ring, files...); err != nil {
		log.WithError(err).Warn("the watch for the NodeDrainStatus force file has ended, it will be seen late")
	}
}
