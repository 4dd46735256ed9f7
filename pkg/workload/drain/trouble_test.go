package drain

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestADeadAPIDoesNotKeepTheDeviceFromItsReboot(t *testing.T) {
	for _, row := range []struct {
		api  string
		kill func(*stage)
	}{
		{"refusing connections", func(s *stage) { s.kube.SetFault(kubetest.Refused) }},
		{"hanging", func(s *stage) { s.kube.SetFault(kubetest.Hung) }},
		{"never heard of", func(s *stage) { _ = s.api.Unpublish(types.Global) }},
	} {
		t.Run(row.api, func(t *testing.T) {
			story(t, 2, func(s *stage) {
				row.kill(s)
				defer s.run()()
				time.Sleep(time.Hour)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(299 * time.Second)
				s.is(types.DrainStarting, deviceOp)
				time.Sleep(3 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				s.path("2349")
			})
		})
	}
}

func TestASlowAPIIsNotDead(t *testing.T) {
	story(t, 20, func(s *stage) {
		defer s.run()()
		s.kube.SetLatency(8 * time.Second)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(4 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		s.path("234579")
		if n := len(s.kube.Calls("evict")); n != 20 {
			t.Errorf("%d evictions of 20 pods", n)
		}
	})
}

func TestARestartedAgentGoesOnWhereItWas(t *testing.T) {
	for after := range 9 {
		t.Run(fmt.Sprintf("%d x 400 ms after the request", after), func(t *testing.T) {
			story(t, 3, func(s *stage) {
				s.kube.SetLatency(300 * time.Millisecond)
				stop := s.run()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Duration(after) * 400 * time.Millisecond)
				stop()
				s.zedagent.notReceived.Store(true)
				stop = s.run()
				defer func() { stop() }()
				time.Sleep(20 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				s.path("234579")
			})
		})
	}
}

func TestADrainThatCannotEndFailsAtItsDeadline(t *testing.T) {
	story(t, 2, func(s *stage) {
		_ = s.settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{
			types.SettingDrainTimeout: {Key: types.SettingDrainTimeout, ItemType: types.ConfigItemInt, IntValue: 1},
		}})
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(30 * time.Minute)
		stop()
		stop = s.run()
		defer func() { stop() }()
		time.Sleep(30*time.Minute - 2*time.Second)
		s.is(types.DrainRetrying, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainFailedDrain, deviceOp)
		s.cordoned(false, false)
		time.Sleep(time.Hour)
		s.is(types.DrainFailedDrain, deviceOp)
		stop() // an agent that restarts now knows that this very request has failed
		stop = s.run()
		time.Sleep(time.Minute)
		s.is(types.DrainFailedDrain, deviceOp)
		s.kube.Block(appZero, false)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("234578345" + "79")
	})
}

func TestAFailedRequestThatIsReadAgainIsStillTheSame(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.FailVerb("cordon", types.ErrRefused)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Minute)
		s.is(types.DrainFailedCordon, deviceOp)
		r, _ := s.zedagent.Get(types.Global)
		r.RequestedAt = r.RequestedAt.Round(0).In(time.FixedZone("", 7200)) // as decoded from JSON
		r.Context = "said in other words"
		_ = s.zedagent.Publish(types.Global, r)
		time.Sleep(10 * time.Minute)
		s.path("2346")
	})
}

func TestANodeTheClusterDoesNotKnowIsNotKeptFromItsReboot(t *testing.T) {
	story(t, 0, func(s *stage) {
		_ = s.nodes.Unpublish("n1")
		_ = s.api.Publish(types.Global, types.APIStatus{}) // its own pods cannot be watched
		defer s.run()()
		time.Sleep(time.Hour) // no join takes as long
		s.request(&s.zedagent, deviceOp)
		time.Sleep(59 * time.Second)
		s.is(types.DrainStarting, deviceOp)
		time.Sleep(2 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAClusterNotSeenYetSaysNothingAboutTheNode(t *testing.T) {
	story(t, 0, func(s *stage) {
		for _, n := range []string{"n1", "n2", "n3"} {
			_ = s.nodes.Unpublish(n)
		}
		_ = s.api.Publish(types.Global, types.APIStatus{})
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainStarting, deviceOp)
	})
}

func TestADeviceThatDoesNotKnowItsNameIsNotTakenForGone(t *testing.T) {
	story(t, 1, func(s *stage) {
		info, _ := s.info.Get(types.Global)
		_ = s.info.Unpublish(types.Global)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainStarting, deviceOp)
		if n := s.waited("EdgeNodeInfo has not said yet which node this is"); n != 1 {
			t.Errorf("said %d times what it waits for", n)
		}
		_ = s.info.Publish(types.Global, info)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestPeersThatAreAwayForAMomentEndNoDrain(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.peers(types.ConditionUnknown)
		time.Sleep(time.Second)
		tries := len(s.kube.Calls("evict"))
		time.Sleep(50 * time.Second)
		s.is(types.DrainRetrying, deviceOp)
		if n := len(s.kube.Calls("evict")); n != tries {
			t.Errorf("%d evictions with nowhere to go", n-tries)
		}
		s.peers(types.ConditionTrue)
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		s.peers(types.ConditionUnknown) // and what they vote for with them
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		s.phase(types.PhaseEmptying, "quorum")
		s.peers(types.ConditionTrue)
		time.Sleep(time.Second)
		for _, n := range []string{"n2", "n3"} {
			s.kube.ChangeNode(n, func(n *types.Node) { n.Unschedulable = true })
		}
		time.Sleep(sureAfter - time.Second)
		s.is(types.DrainRetrying, deviceOp)
		time.Sleep(15 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAnAPIThatAnswersButDoesNotListIsWaitedForAndSaysWhyOnce(t *testing.T) {
	story(t, 2, func(s *stage) {
		s.kube.FailVerb("list", errors.New("etcd: too slow"))
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		if n := s.failures(); n != 1 {
			t.Errorf("%d failures logged", n)
		}
		if n := len(s.kube.Calls("list")); n > 400 {
			t.Errorf("%d lists in an hour", n)
		}
		s.kube.FailVerb("list", nil)
		time.Sleep(15 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAnIdleAgentIsIdleAndADrainUnderWayLooksOnceASecond(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		steps := func(d time.Duration) int {
			before := s.status.looks.Load()
			time.Sleep(d)
			return int(s.status.looks.Load() - before)
		}
		if n := steps(time.Hour); n > 361 {
			t.Errorf("%d steps in an idle hour", n)
		}
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		if n := steps(time.Hour); n > 2*3600 {
			t.Errorf("%d steps in an hour of a drain that waits", n)
		}
		s.kube.Block(appZero, false)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		if n := steps(time.Hour); n > 361 {
			t.Errorf("%d steps in an hour after COMPLETE", n)
		}
	})
}
