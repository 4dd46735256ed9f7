// Package nodemetrics tells what the kubelet of this node measures of the node,
// its pods and their containers (docs/wire.md, "KubeNodeMetrics").
//
//	reads:  EdgeNodeInfo, nodes, MetricsLook
//	writes: KubeNodeMetrics, the last samples in memory
//	serves: these samples on the socket
//	acts:   asks the own kubelet, often only while someone watches
package nodemetrics

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/samples"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// period is in case an event was missed; what is due earlier is asked for.
	period = time.Minute
	// askTimeout is for both questions.
	askTimeout = 25 * time.Second
)

// Kube is what the component asks of the own kubelet. The verbs end when their
// context does.
type Kube interface {
	// KubeletStats asks a node's kubelet at the node's own address.
	KubeletStats(ctx context.Context, node types.Node) (types.KubeletStats, error)
	// KubeletContainers asks it for what the answer to KubeletStats leaves out of
	// containers; of a pod it has the network.
	KubeletContainers(ctx context.Context, node types.Node) (map[types.ContainerID]types.ContainerSample, error)
}

// Component tells what is measured. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Info  pubsub.Reader[types.EdgeNodeInfo]
	Nodes pubsub.Reader[types.Node]
	Looks pubsub.Reader[types.MetricsLook] // of zedkube-cli
	Kube  Kube

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Metrics pubsub.Writer[types.KubeNodeMetrics]
	Kept    pubsub.Writer[types.KubeNodeMetrics] // in memory: the last eight samples of everything

	// What this process remembers. Without it a look is early, or a watcher is
	// taken for one of now.
	lookers samples.Lookers
	asked   *time.Duration // when the last look began, nil for never
	told    *time.Duration // when the look began that was published last, nil for none
	fails   int            // looks in a row
	partial bool           // the last look went without KubeletContainers
	asking  loop.Call[answer]
}

// Run steps until ctx is done and returns after what is under way has ended.
func (c *Component) Run(ctx context.Context) {
	defer c.asking.End()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Looks, &c.asking)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	f := c.look()
	return c.apply(ctx, f, decide(f))
}

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{now: time.Now(), uptime: c.Uptime(), looks: c.Looks.All(), lookers: c.lookers, asked: c.asked, told: c.told, fails: c.fails}
	info, _ := c.Info.Get(types.Global)
	f.node, f.known = types.OwnNode(c.Nodes.All(), info)
	kept := false
	if f.kept, kept = c.Kept.Get(types.Global); !kept {
		f.kept, _ = c.Metrics.Get(types.Global) // of a former process of ours
	}
	if got, ok := c.asking.Take(); ok {
		f.answer = &got
	}
	f.asking = c.asking.Busy()
	return f
}

func (c *Component) apply(ctx context.Context, f facts, a action) error {
	if f.answer != nil {
		c.tell(*f.answer, f.fails)
	}
	c.lookers, c.fails = a.lookers, a.fails
	if a.ask {
		asked := f.uptime // a copy, which does not keep all facts of this step in memory
		c.asked = &asked
		watched, node := a.watched, f.node
		c.asking.Begin(ctx, askTimeout, func(ctx context.Context) answer { return c.ask(ctx, node, watched) })
	}
	if a.keep != nil {
		if err := c.Kept.Publish(types.Global, *a.keep); err != nil {
			return err
		}
	}
	if a.publish != nil {
		if err := c.Metrics.Publish(types.Global, *a.publish); err != nil {
			return err
		}
		c.told = f.asked
	}
	return loop.After(a.again)
}

// ask is one look.
func (c *Component) ask(ctx context.Context, node types.Node, watched bool) answer {
	a := answer{node: node.Name, watched: watched}
	a.stats, a.err = c.Kube.KubeletStats(ctx, node)
	if a.err == nil {
		a.containers, a.partial = c.Kube.KubeletContainers(ctx, node)
	}
	return a
}

// tell logs where looks begin to fail and where they work again.
func (c *Component) tell(a answer, fails int) {
	switch {
	case a.err != nil && fails == 0:
		c.Log.WithError(a.err).Warn("this node's kubelet does not return metrics")
	case a.err == nil && fails > 0:
		c.Log.Info("this node's kubelet returns metrics again")
	}
	if a.partial != nil && !c.partial {
		c.Log.WithError(a.partial).Warn("this node's kubelet does not return container metrics")
	}
	if a.err == nil {
		c.partial = a.partial != nil
	}
}
