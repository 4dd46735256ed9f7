package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// stuck is the first pod with a finalizer that nobody takes away, and the second
// with a budget that never opens.
func (s *stage) stuck() {
	s.kube.Block(appZero, true)
	p, _ := s.pods.Get(appZero)
	s.kube.SetSituation(appZero, types.PodSituation{
		Pod: p, Lacks: "n2 is full", Budgets: []types.PodBudget{{Name: "eve-kube-app/one", Healthy: 1, Desired: 1, Expects: 1}},
	})
}

func TestTheReasonNamesThePodsThatADrainWaitsFor(t *testing.T) {
	story(t, 3, func(s *stage) {
		s.stuck()
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.phase(types.PhaseEmptying, "1 pod will not go by itself: eve-kube-app/app-0")
		time.Sleep(time.Hour)
		p := s.phase(types.PhaseEmptying, "1 pod will not go by itself")
		if d := time.Since(p.Since); d < 59*time.Minute {
			t.Errorf("since %s", d)
		}
		n, _ := s.nodes.Get("n1")
		if len(s.kube.Calls("conditions")) > 3 || n.DrainInProgress != types.ConditionTrue {
			t.Errorf("%d writes of the conditions", len(s.kube.Calls("conditions")))
		}
	})
}

func TestARestartKeepsSinceWhenThingsStand(t *testing.T) {
	story(t, 3, func(s *stage) {
		s.stuck()
		s.kube.SetStorage(types.Storage{Attachments: []types.Attachment{{Name: "csi-2", Volume: "nfs-1"}}})
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Minute)
		was := s.phase(types.PhaseEmptying, "app-0")
		events := len(s.kube.Events())
		stop()
		time.Sleep(10 * time.Second)
		defer s.run()()
		time.Sleep(100 * time.Millisecond)
		if is, _ := s.progress.Get(types.Global); is.Lock != was.Lock || len(is.Stranded) != 1 || is.Pods != was.Pods {
			t.Errorf("lock %+v, stranded %v, pods %+v; before %+v", is.Lock, is.Stranded, is.Pods, was.Pods)
		}
		time.Sleep(time.Minute)
		is := s.phase(types.PhaseEmptying, was.Reason)
		if !is.Since.Equal(was.Since) {
			t.Errorf("since %s, before %s", is.Since, was.Since)
		}
		if len(is.Blockers) != 1 || !is.Blockers[0].Since.Equal(was.Blockers[0].Since) || len(is.Volumes) != 1 || !is.Volumes[0].Since.Equal(was.Volumes[0].Since) {
			t.Errorf("%+v %+v, before %+v %+v", is.Blockers, is.Volumes, was.Blockers, was.Volumes)
		}
		if n := len(s.kube.Events()); n != events {
			t.Errorf("%d more Events", n-events)
		}
	})
}

func TestARestartKeepsTheCountsOfADrainThatHasEnded(t *testing.T) {
	for name, stuck := range map[string]bool{"failed": true, "complete": false} {
		t.Run(name, func(t *testing.T) {
			story(t, 3, func(s *stage) {
				s.hours(1)
				s.kube.Block(appZero, stuck)
				stop := s.run()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(2 * time.Hour)
				was, _ := s.progress.Get(types.Global)
				stop()
				time.Sleep(time.Minute)
				defer s.run()()
				time.Sleep(time.Minute)
				is, _ := s.progress.Get(types.Global)
				if is.Pods != was.Pods || is.Pods.Total != 3 || is.Pods.Waiting == 0 == stuck || !is.Since.Equal(was.Since) {
					t.Errorf("%+v since %s, before %+v since %s", is.Pods, is.Since, was.Pods, was.Since)
				}
			})
		})
	}
}

func TestANewDrainKeepsNothingOfTheOneBefore(t *testing.T) {
	story(t, 3, func(s *stage) {
		s.stuck()
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Minute)
		stop()
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		defer s.run()()
		time.Sleep(5 * time.Second)
		s.phase(types.PhaseIdle, "")
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		if p := s.phase(types.PhaseEmptying, "app-0"); len(p.Blockers) != 1 || time.Since(p.Blockers[0].Since) > 61*time.Second || time.Since(p.Since) > 61*time.Second {
			t.Errorf("%+v", p)
		}
	})
}

func TestASilentAPIServerIsSaidWithWhatComesOfIt(t *testing.T) {
	story(t, 3, func(s *stage) {
		s.stuck()
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.kube.SetFault(kubetest.Refused)
		time.Sleep(time.Minute)
		s.phase(types.PhaseEmptying, "once that has lasted 5m0s the drain is Complete as it is")
	})
}

func TestAVolumeThatIsNotLetGoIsSaidToStayWithinAMinute(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.SetStorage(types.Storage{Attachments: []types.Attachment{{Name: "csi-2", Volume: "nfs-1"}}})
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(40 * time.Second)
		if p := s.phase(types.PhaseEmptying, "nfs-1"); len(p.Volumes) != 1 || p.Volumes[0].Outlook != types.OutlookSlow {
			t.Fatalf("%+v", p.Volumes)
		}
		time.Sleep(22 * time.Second)
		p := s.phase(types.PhaseEmptying, "nfs-1")
		if v := p.Volumes[0]; v.Outlook != types.OutlookNever || !strings.Contains(v.Remedy, "kubectl get volumeattachment") || time.Since(v.Since) < time.Minute {
			t.Errorf("%+v", v)
		}
	})
}

func TestQuorumThatIsMissingIsNotSaidOfTheLock(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.peers(types.ConditionUnknown)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		p := s.phase(types.PhaseGates, "which is no quorum")
		if p.Quorum != p.Reason || p.Lock.Waits != "" {
			t.Errorf("quorum %q, lock %+v", p.Quorum, p.Lock)
		}
		s.held("n2") // before quorum is there, or the drain may be faster
		s.peers(types.ConditionTrue)
		time.Sleep(10 * time.Second)
		if p := s.phase(types.PhaseGates, "n2"); p.Quorum != "" || p.Lock.Waits != p.Reason {
			t.Errorf("quorum %q, lock %+v", p.Quorum, p.Lock)
		}
	})
}
