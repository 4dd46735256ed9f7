package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestARequestEmptiesTheNode(t *testing.T) {
	story(t, 30, func(s *stage) {
		defer s.run()()
		start := time.Now()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(3 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("2345" + "79")
		s.cordoned(true, true)
		if d := s.kube.Calls("evict")[0].At.Sub(start); d > 100*time.Millisecond {
			t.Errorf("first eviction after %s", d)
		}
		if d := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp}); d < edge || d > edge+100*time.Millisecond {
			t.Errorf("COMPLETE after %s, want the two seconds nodeagent needs", d)
		}
		if n := len(s.kube.Calls("evict")); n != 30 {
			t.Errorf("%d evictions of 30 pods", n)
		}
		if n := len(s.kube.Calls("list")); n > 3 {
			t.Errorf("%d lists", n)
		}
		for _, want := range []string{
			"Beginning kubernetes node drain process this could be a very long operation depending on replica rebuilds (24hours+)",
			"NodeDrainRequest", "NodeDrainStatus", "cordonNode", "cordonAndDrainNode", "nodedrain-step",
			"kubevirt_node_drain_completion_time_seconds:2.0",
		} {
			if !s.logged(want) {
				t.Errorf("no log line with %q", want)
			}
		}
	})
}

func TestEveryDrainListsAfresh(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2500 * time.Millisecond)
		s.is(types.DrainComplete, deviceOp)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(500 * time.Millisecond)
		back := types.Pod{Namespace: "eve-kube-app", Name: "back", UID: "back", NodeName: "n1"}
		_ = s.pods.Publish(back.Key(), back)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		if _, ok := s.pods.Get(back.Key()); ok {
			t.Error("complete with a pod left")
		}
	})
}

func TestAPodWhoseBudgetOpensLaterLeavesThen(t *testing.T) {
	story(t, 3, func(s *stage) {
		defer s.run()()
		s.kube.Block(appZero, true)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Minute)
		s.is(types.DrainRetrying, deviceOp)
		tries := s.kube.Calls("evict")
		if gap := tries[len(tries)-1].At.Sub(tries[len(tries)-2].At); gap < 4*time.Second || gap > 6*time.Second {
			t.Errorf("tries are %s apart in the end", gap)
		}
		if s.logged("step failed") {
			t.Error("a budget is not a failure")
		}
		s.kube.Block(appZero, false)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("234579")
	})
}

func TestAPodThatComesLateLeavesToo(t *testing.T) {
	story(t, 2, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		late := types.Pod{Namespace: "eve-kube-app", Name: "late", UID: "late", NodeName: "n1"}
		_ = s.pods.Publish(late.Key(), late)
		time.Sleep(relistEvery + 2*time.Second)
		if _, ok := s.pods.Get(late.Key()); ok {
			t.Error("the late pod is still there")
		}
		s.kube.Block(appZero, false)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAnEdgeNodeOutsideAnyClusterNeverDrains(t *testing.T) {
	story(t, 1, func(s *stage) {
		_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true})
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		if got, _ := s.status.Get(types.Global); got.Status != types.DrainNotSupported {
			t.Errorf("status is %v", got.Status)
		}
		if n := len(s.kube.Calls("")); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestAConfigUpdateInMidDrainChangesNothing(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true, ClusterName: "new"})
		time.Sleep(time.Second)
		_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true})
		time.Sleep(time.Second)
		_ = s.config.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.is(types.DrainRetrying, deviceOp)
		s.path("23457")
	})
}
