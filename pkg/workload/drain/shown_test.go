package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestTheLockOfAnotherNodeIsShownOnlyWhileThisNodeWaitsForIt(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.held("n2")
		defer s.run()()
		s.request(&s.operator, nobody)
		time.Sleep(10 * time.Second)
		if p := s.phase(types.PhaseGates, ""); p.Lock.Holder != "n2" || p.Lock.Mine {
			t.Errorf("while it waits: %+v", p.Lock)
		}
		_ = s.operator.Unpublish(types.Global)
		time.Sleep(10 * time.Second)
		if p := s.phase(types.PhaseIdle, ""); p.Lock != (types.DrainLockView{}) {
			t.Errorf("it is idle, and shows what it last read: %+v", p.Lock)
		}
	})
}

func TestAForcedDrainShowsWhatRemainsAndIsNotCalledDrained(t *testing.T) {
	story(t, 3, func(s *stage) {
		s.stuck()
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.write(s.force, `{"Status":9}`)
		time.Sleep(10 * time.Second)
		remains := func(when string) {
			t.Helper()
			p := s.phase(types.PhaseComplete, becauseForced)
			if !p.Forced || len(p.Blockers) != 1 || p.Blockers[0].Pod != appZero || !strings.Contains(p.Blockers[0].Why, "eve-kube-app/one") {
				t.Errorf("%s: forced %t, %+v", when, p.Forced, p.Blockers)
			}
			n, _ := s.nodes.Get("n1")
			if n.Drained == types.ConditionTrue || n.DrainInProgress == types.ConditionTrue || n.DrainReason != types.DrainForced {
				t.Errorf("%s: Drained %s, DrainInProgress %s, reason %s", when, n.Drained, n.DrainInProgress, n.DrainReason)
			}
		}
		remains("forced")
		stop()
		defer s.run()()
		time.Sleep(time.Minute)
		remains("after a restart of the agent")
		_ = s.pods.Unpublish(appZero)
		time.Sleep(10 * time.Second)
		if p := s.phase(types.PhaseComplete, becauseForced); !p.Forced || len(p.Blockers) != 0 {
			t.Errorf("a pod that is gone is shown: %+v", p.Blockers)
		}
	})
}

func TestAPhaseThatFollowsIsInTheConditionsAtOnce(t *testing.T) {
	story(t, 3, func(s *stage) {
		s.stuck()
		s.held("n2")
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(20 * time.Second)
		if n, _ := s.nodes.Get("n1"); n.DrainInProgress != types.ConditionTrue || n.DrainReason != string(types.PhaseGates) {
			t.Errorf("while it waits: %s %s", n.DrainInProgress, n.DrainReason)
		}
		s.kube.SetLock(types.DrainLock{})
		time.Sleep(20 * time.Second)
		if n, _ := s.nodes.Get("n1"); n.DrainInProgress != types.ConditionTrue || n.DrainReason != string(types.PhaseEmptying) {
			t.Errorf("while it drains: %s %s", n.DrainInProgress, n.DrainReason)
		}
	})
}
