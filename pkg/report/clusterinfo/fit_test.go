package clusterinfo

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestPodsArriveThroughTheSocketByFile(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	root := t.TempDir()
	zedkube, zedagent := pubsub.NewBus(root, log), pubsub.NewBus(root, log)
	topic := pubsub.NewPublication[types.KubeClusterInfo](zedkube, "zedkube")
	reader := pubsub.NewSubscription[types.KubeClusterInfo](zedagent, "zedkube")
	bell := make(chan struct{}, 1)
	reader.Notify(bell)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, bus := range []*pubsub.Bus{zedkube, zedagent} {
		if err := bus.Open(); err != nil {
			t.Fatal(err)
		}
		running.Go(func() { bus.Run(ctx) })
	}
	for !reader.Synced() { // it has the socket: what follows comes that way
		time.Sleep(time.Millisecond)
	}
	want := *decide(huge()).publish
	if err := topic.Publish(types.Global, want); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-bell:
		case <-time.After(2 * time.Minute):
			t.Fatal("the report does not arrive")
		}
		if got, ok := reader.Get(types.Global); ok {
			if !reflect.DeepEqual(want, got) { // cmp takes seconds for so much
				t.Errorf("sent %d nodes and %d pods, got %d and %d, or others", len(want.Nodes), len(want.AppPods), len(got.Nodes), len(got.AppPods))
			}
			break
		}
	}
	large, err := os.ReadDir(filepath.Join(root, "persist/pubsub-large/zedkube/KubeClusterInfo"))
	if err != nil {
		t.Error(err) // it went by file
	}
	if len(large) != 0 {
		t.Errorf("%d files were read and not unlinked", len(large))
	}
}

func TestCutReportIsAcceptedByTheRealTopic(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	bus := pubsub.NewBus(t.TempDir(), log)
	topic := pubsub.NewPublication[types.KubeClusterInfo](bus, "zedkube")
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); bus.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if err := topic.Publish(types.Global, *decide(huge()).publish); err != nil {
		t.Error(err)
	}
	whole := huge()
	uncut := types.KubeClusterInfo{Nodes: nodes(whole)}
	if err := topic.Publish(types.Global, uncut); err == nil {
		t.Error("a report that was not cut is accepted: the bound is too careful")
	}
}
