// Package drain empties this node when another agent asks for it, says all the
// while how far it is, and gives the node back when the request is withdrawn.
//
//	reads:  NodeDrainRequest of zedagent and of baseosmgr, EdgeNodeClusterConfig,
//	        ConfigItemValueMap, EdgeNodeInfo, nodes, this node's pods, the API's health,
//	        the force file and the fault marker
//	writes: NodeDrainStatus
//	acts:   cordons, uncordons and lists the node's pods, evicts them
//
// A step never waits for Kubernetes: the one call that is under way runs beside
// it, so that a withdrawn request is answered at once even when the API hangs.
package drain

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// The usual places of the files of docs/wire.md, "Files".
const (
	DefaultForceFile   = "/tmp/force-NodeDrainStatus-global.json"
	DefaultFaultMarker = "/tmp/DrainStatus_FaultInjection_Wait"
)

// period is in case an event was missed. A drain under way looks every second.
const period = 10 * time.Second

// Kube is what the drain does to the cluster. Every verb ends when its context does.
type Kube interface {
	// Cordon makes the node unschedulable in the name of by; a foreign cordon
	// is left as it is and is no error.
	Cordon(ctx context.Context, node string, by types.Cordon) error
	// Uncordon undoes a cordon of zedkube's; any other stays and is no error.
	Uncordon(ctx context.Context, node string) error
	// PodsToEvict lists afresh the pods that have to leave the node.
	PodsToEvict(ctx context.Context, node string) ([]types.Pod, error)
	// Evict asks for the pod's eviction; nil also when it is gone. The error
	// wraps types.ErrDisruptionBudget when a budget refuses.
	Evict(ctx context.Context, pod types.Pod) error
}

// Component is the drain. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	DeviceOp pubsub.Source[types.NodeDrainRequest] // of zedagent
	Update   pubsub.Source[types.NodeDrainRequest] // of baseosmgr
	Config   pubsub.Reader[types.EdgeNodeClusterConfig]
	Settings pubsub.Reader[types.ConfigItemValueMap]
	Info     pubsub.Reader[types.EdgeNodeInfo]
	Nodes    pubsub.Reader[types.Node]
	NodePods pubsub.Reader[types.Pod] // of this node, every namespace
	API      pubsub.Reader[types.APIStatus]
	Kube     Kube

	ForceFile   string // an operator's NodeDrainStatus, which wins
	FaultMarker string // while it exists, COMPLETE is held back

	Status pubsub.Writer[types.NodeDrainStatus]

	// What this process remembers. Losing it costs time, never correctness: the
	// published status, the requests and the cordon's annotation say the rest.
	mem     memory
	running *call                 // the call to Kubernetes under way, nil for none
	mail    pubsub.Table[outcome] // where that call leaves its result, and rings
	calls   sync.WaitGroup
	lastErr error // of the last call; nil once one of its kind has worked
}

// Run steps until ctx is done and returns after the call under way has ended.
func (c *Component) Run(ctx context.Context) {
	var watch sync.WaitGroup
	defer watch.Wait()
	files := &doorbell{}
	watch.Go(func() { watchFiles(ctx, c.Log, files.ring, c.ForceFile, c.FaultMarker) })
	c.run(ctx, files)
}

// run is Run with somebody else to ring when the operator's files change.
func (c *Component) run(ctx context.Context, files loop.Input) {
	defer c.calls.Wait()
	defer c.cancel()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, files,
		c.DeviceOp, c.Update, c.Config, c.Settings, c.Info, c.Nodes, c.NodePods, c.API, &c.mail)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	c.collect()
	f := c.look()
	return c.apply(ctx, f, decide(f))
}
