package player

import (
	"context"
	"io"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Watch is what anybody on a device sees of zedkube: its topics, through the
// sockets other agents use.
type Watch struct {
	ClusterStatus pubsub.Source[types.EdgeNodeClusterStatus]
	Apps          pubsub.Source[types.ENClusterAppStatus]
	Drain         pubsub.Source[types.NodeDrainStatus]
	Report        pubsub.Source[types.KubeClusterInfo]
	Leader        pubsub.Source[types.KubeLeaderElectInfo]
	Progress      pubsub.Source[types.NodeDrainProgress]
	Members       pubsub.Source[types.ClusterMembers]
	KubeConfig    pubsub.Source[types.KubeConfig]
	CipherMetrics pubsub.Source[types.CipherMetrics]

	bus *pubsub.Bus
}

// NewWatch watches the device under root. Run must be called.
func NewWatch(root string) (*Watch, error) {
	bus := pubsub.NewBus(root, quiet())
	w := &Watch{
		ClusterStatus: pubsub.NewSubscription[types.EdgeNodeClusterStatus](bus, "zedkube"),
		Apps:          pubsub.NewSubscription[types.ENClusterAppStatus](bus, "zedkube"),
		Drain:         pubsub.NewSubscription[types.NodeDrainStatus](bus, "zedkube"),
		Report:        pubsub.NewSubscription[types.KubeClusterInfo](bus, "zedkube"),
		Leader:        pubsub.NewSubscription[types.KubeLeaderElectInfo](bus, "zedkube"),
		Progress:      pubsub.NewSubscription[types.NodeDrainProgress](bus, "zedkube"),
		Members:       pubsub.NewSubscription[types.ClusterMembers](bus, "zedkube"),
		KubeConfig:    pubsub.NewSubscription[types.KubeConfig](bus, "zedkube", pubsub.Persistent()),
		CipherMetrics: pubsub.NewSubscription[types.CipherMetrics](bus, "zedkube"),
		bus:           bus,
	}
	return w, bus.Open()
}

// Run watches until ctx is done.
func (w *Watch) Run(ctx context.Context) { w.bus.Run(ctx) }

// Notify rings bell at every change of what zedkube says.
func (w *Watch) Notify(bell chan<- struct{}) {
	w.ClusterStatus.Notify(bell)
	w.Apps.Notify(bell)
	w.Drain.Notify(bell)
	w.Report.Notify(bell)
	w.Leader.Notify(bell)
	w.Progress.Notify(bell)
	w.Members.Notify(bell)
	w.KubeConfig.Notify(bell)
	w.CipherMetrics.Notify(bell)
}

// quiet keeps the logs of the played agents away: what they see is told by Say.
func quiet() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}
