// Package nodemetrics tells what the kubelet of this node measures of the node,
// its pods and their containers (docs/wire.md, "KubeNodeMetrics").
//
//	reads:  EdgeNodeInfo, nodes, MetricsLook
//	writes: KubeNodeMetrics
//	acts:   asks the own kubelet, often only while somebody watches
package nodemetrics

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
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

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anybody sets

	Metrics pubsub.Writer[types.KubeNodeMetrics]
}

// Run steps until ctx is done and returns after what is under way has ended.
func (c *Component) Run(ctx context.Context) { <-ctx.Done() }

// Step looks, decides and acts once.
func (c *Component) Step(context.Context) error { return nil }
