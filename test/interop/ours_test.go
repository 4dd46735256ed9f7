package interop

import (
	"context"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pubsub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Probe is the topic of these tests.
type Probe struct {
	Name  string
	Count int64
	List  []string
	Blob  []byte `json:"pubsub-large-Blob"`
	Parts []Part
}

// Part is an object below a topic that has a large field too.
type Part struct {
	ID   string
	Text string `json:"pubsub-large-Text"`
}

// start runs our side until the test ends or stop is called.
func start(tb testing.TB, bus *pubsub.Bus) (stop func()) {
	tb.Helper()
	must(tb, bus.Open())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); bus.Run(ctx) }()
	stop = func() { cancel(); <-done }
	tb.Cleanup(stop)
	return stop
}

func newBus(root string) (*pubsub.Bus, *logtest.Hook) {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	return pubsub.NewBus(root, log), hook
}

func publication(tb testing.TB, root string, opts ...pubsub.Option) *pubsub.Publication[Probe] {
	tb.Helper()
	bus, _ := newBus(root)
	pub := pubsub.NewPublication[Probe](bus, "peer", opts...)
	start(tb, bus)
	return pub
}

func subscription(tb testing.TB, root string) *pubsub.Subscription[Probe] {
	tb.Helper()
	bus, _ := newBus(root)
	sub := pubsub.NewSubscription[Probe](bus, "peer")
	start(tb, bus)
	return sub
}

func holds(sub *pubsub.Subscription[Probe], key string, count int64) func() bool {
	return func() bool { v, ok := sub.Get(key); return ok && v.Count == count }
}

// closeBus gives up the sockets of a bus that was opened and not run.
func closeBus(bus *pubsub.Bus) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	bus.Run(ctx)
}
