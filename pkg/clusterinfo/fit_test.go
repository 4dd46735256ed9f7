package clusterinfo

import (
	"context"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

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
	uncut := types.KubeClusterInfo{Nodes: nodes(whole.nodes)}
	if err := topic.Publish(types.Global, uncut); err == nil {
		t.Error("a report that was not cut is accepted: the bound is too careful")
	}
}
