package drain

import (
	"errors"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAWithdrawnRequestGivesTheNodeBack(t *testing.T) {
	for _, row := range []struct {
		when    string
		trouble func(*stage)
		after   time.Duration
	}{
		{"in the middle", func(s *stage) { s.kube.Block(appZero, true) }, 20 * time.Second},
		{"after COMPLETE", func(*stage) {}, 20 * time.Second},
		{"while a call hangs", func(s *stage) { s.kube.SetLatency(time.Hour) }, 10 * time.Second},
	} {
		t.Run(row.when, func(t *testing.T) {
			story(t, 3, func(s *stage) {
				defer s.run()()
				row.trouble(s)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(row.after)
				_ = s.zedagent.Unpublish(types.Global)
				time.Sleep(500 * time.Millisecond)
				s.is(types.DrainNotRequested, nobody)
				s.kube.SetLatency(0)
				time.Sleep(2 * time.Second)
				s.cordoned(false, false)
				time.Sleep(time.Minute)
				calls := len(s.kube.Calls(""))
				time.Sleep(time.Hour)
				if n := len(s.kube.Calls("")); n != calls {
					t.Errorf("%d calls after the end", n-calls)
				}
			})
		})
	}
}

func TestAWithdrawalIsAnsweredWhileTheAPIIsDeadAndTheCordonUndoneLater(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.kube.Block(appZero, true)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.kube.SetFault(kubetest.Hung)
		time.Sleep(10 * time.Second)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Second)
		s.is(types.DrainNotRequested, nobody)
		s.cordoned(true, true)
		s.kube.SetFault(kubetest.None)
		time.Sleep(3 * time.Second)
		s.cordoned(false, false)
	})
}

func TestAWithdrawalStopsTheEvictionsUnderWay(t *testing.T) {
	story(t, 20, func(s *stage) {
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		s.kube.SetLatency(3 * time.Second)
		time.Sleep(23 * time.Second) // lock and quorum, cordon, list and the first eight
		evicted := len(s.kube.Calls("evict"))
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.is(types.DrainNotRequested, nobody)
		s.cordoned(false, false)
		if n := len(s.kube.Calls("evict")); evicted == 0 || n != evicted {
			t.Errorf("%d evictions before the withdrawal, %d after", evicted, n-evicted)
		}
		if s.failures() != 0 {
			t.Error("a call that was cut short is no failure")
		}
	})
}

func TestTwoRequestersGetOneDrainAndAValueEach(t *testing.T) {
	story(t, 2, func(s *stage) {
		defer s.run()()
		s.kube.Block(appZero, true)
		s.request(&s.baseos, osUpdate)
		time.Sleep(5 * time.Second)
		s.is(types.DrainRetrying, osUpdate)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Second)
		s.is(types.DrainRetrying, deviceOp)
		s.kube.Block(appZero, false)
		time.Sleep(20 * time.Second)
		s.is(types.DrainComplete, osUpdate)
		start := time.Now()
		device := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp})
		update := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: osUpdate})
		if update-device != edge {
			t.Errorf("the second requester was told %s after the first", update-device)
		}
		s.path("23457799")
		if n := len(s.kube.Calls("cordon")); n != 1 {
			t.Errorf("%d cordons", n)
		}
	})
}

func TestARequestNotYetHeardOfAfterARestartIsNotWithdrawn(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.interrupted()
		s.zedagent.notReceived.Store(true)
		_ = s.zedagent.Unpublish(types.Global)
		defer s.run()()
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		s.cordoned(true, true)
		s.zedagent.notReceived.Store(false) // and there is no request
		time.Sleep(3 * time.Second)
		s.is(types.DrainNotRequested, nobody)
		s.cordoned(false, false)
	})
}

func TestAForeignCordonSurvivesTheDrainAndTheBoot(t *testing.T) {
	story(t, 1, func(s *stage) {
		_ = s.nodes.Publish("n1", types.Node{Name: "n1", Ready: types.ConditionTrue, Unschedulable: true})
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.is(types.DrainNotRequested, nobody)
		s.cordoned(true, false)
	})
}

func TestANewBootGivesTheNodeBackOnceItIsReady(t *testing.T) {
	story(t, 1, func(s *stage) {
		n := types.Node{Name: "n1", Ready: types.ConditionUnknown, Unschedulable: true, CordonedBy: &types.Cordon{By: "zedkube"}}
		_ = s.nodes.Publish("n1", n)
		s.kube.FailVerb("uncordon", errors.New("conflict"))
		defer s.run()()
		time.Sleep(time.Minute)
		s.cordoned(true, true)
		if n := len(s.kube.Calls("uncordon")); n != 0 {
			t.Errorf("%d tries before the node was Ready", n)
		}
		n.Ready = types.ConditionTrue
		_ = s.nodes.Publish("n1", n)
		time.Sleep(time.Minute)
		s.cordoned(true, true)
		s.kube.FailVerb("uncordon", nil)
		time.Sleep(maxBackoff + 2*time.Second)
		s.cordoned(false, false)
		s.path("2")
	})
}

func TestAWithdrawalDoesNotWaitForAnAgentThatNeverCame(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.baseos.notReceived.Store(true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Second)
		s.is(types.DrainNotRequested, nobody)
		s.cordoned(false, false)
	})
}

func TestACompleteDrainOfAnEarlierProcessIsNotTakenForWithdrawn(t *testing.T) {
	story(t, 1, func(s *stage) {
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		stop()
		s.zedagent.notReceived.Store(true)
		_ = s.zedagent.Unpublish(types.Global)
		defer s.run()()
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, deviceOp)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainComplete, deviceOp)
		s.path("234579")
	})
}
