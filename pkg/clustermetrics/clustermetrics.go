// Package clustermetrics tells what the kubelets of all nodes measure, on the
// node that reports for the cluster (docs/wire.md, "KubeClusterMetrics").
//
//	reads:  KubeLeaderElectInfo, EdgeNodeInfo, nodes, app pods, the API's health, KubeNodeMetrics
//	writes: KubeClusterMetrics
//	acts:   asks the kubelets of the other nodes through the API server
package clustermetrics

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Kube is what the component asks of the cluster. The verb ends when its
// context does.
type Kube interface {
	// NodeStats asks a node's kubelet through the API server, for CPU and memory
	// only.
	NodeStats(ctx context.Context, node string) (types.KubeletStats, error)
}

// Component tells what is measured. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Leader  pubsub.Reader[types.KubeLeaderElectInfo]
	Info    pubsub.Reader[types.EdgeNodeInfo]
	Nodes   pubsub.Reader[types.Node]
	AppPods pubsub.Reader[types.Pod]
	API     pubsub.Reader[types.APIStatus]
	Own     pubsub.Reader[types.KubeNodeMetrics]
	Kube    Kube

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anybody sets

	Metrics pubsub.Writer[types.KubeClusterMetrics]
}

// Run steps until ctx is done and returns after what is under way has ended.
func (c *Component) Run(ctx context.Context) { <-ctx.Done() }

// Step looks, decides and acts once.
func (c *Component) Step(context.Context) error { return nil }
