package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// unregistered takes the own Node out of a cluster that answers.
func (s *stage) unregistered() types.Node {
	n, _ := s.nodes.Get("n1")
	_ = s.nodes.Unpublish("n1")
	return n
}

func TestANodeThatStillJoinsIsNotTakenForOneThatIsGone(t *testing.T) {
	story(t, 2, func(s *stage) {
		own := s.unregistered()
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(4 * time.Minute)
		s.is(types.DrainStarting, deviceOp)
		s.phase(types.PhaseGates, "not yet")
		_ = s.nodes.Publish("n1", own)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		if n := len(s.kube.Calls("evict")); n != 2 {
			t.Errorf("%d evictions of 2 pods", n)
		}
	})
}

func TestAJoinThatNeverEndsKeepsNoDeviceFromItsReboot(t *testing.T) {
	story(t, 0, func(s *stage) {
		s.unregistered()
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(defaultSkipSilence - 5*time.Second)
		s.is(types.DrainStarting, deviceOp)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestANodeThatWasDeletedIsGoneAfterAMinute(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		time.Sleep(time.Minute)
		s.unregistered()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(sureAfter + 5*time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}
