package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// leaves is the membership's decision; back takes it back.
func (s *stage) leaves() {
	_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true})
	_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeaving, InvalidSince: time.Now(), Reason: "removed"})
}

func (s *stage) back() {
	_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true})
	_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipMember})
}

func (s *stage) left(want bool) {
	s.t.Helper()
	_, there := s.nodes.Get("n1")
	if p, _ := s.progress.Get(types.Global); p.Left != want || there == want {
		s.t.Errorf("left %v, the Node is there: %v; %s: %s", p.Left, there, p.Phase, p.Reason)
	}
}

func TestALeaveEmptiesTheNodeAndDeletesItLast(t *testing.T) {
	story(t, 3, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.leaves()
		time.Sleep(time.Minute)
		s.left(false)
		if p := s.phase(types.PhaseEmptying, ""); len(p.Requesters) != 1 || p.Requesters[0] != byLeave {
			t.Errorf("for %v", p.Requesters)
		}
		s.kube.Block(appZero, false)
		time.Sleep(20 * time.Second)
		s.left(true)
		deleted, evicts := s.kube.Calls("deletenode"), s.kube.Calls("evict")
		if len(deleted) != 1 || deleted[0].At.Before(evicts[len(evicts)-1].At) {
			t.Errorf("deleted at %v", deleted)
		}
		if l := s.kube.Lock(); l.Holder != "" {
			t.Error("the lock was not freed")
		}
		s.path("2")
		_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		time.Sleep(time.Minute)
		s.path("21")
		s.request(&s.zedagent, deviceOp) // and requests do nothing from now on
		time.Sleep(time.Hour)
		if got, _ := s.status.Get(types.Global); got.Status != types.DrainNotSupported || len(s.kube.Calls("deletenode")) != 1 {
			t.Errorf("%v", got)
		}
	})
}

func TestALeaveWaitsForReplicasThatOthersNeed(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "WO"})))
		defer s.run()()
		s.leaves()
		time.Sleep(time.Hour)
		s.left(false)
		s.phase(types.PhaseEmptying, "pvc-1")
		s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "RW"})))
		time.Sleep(time.Minute)
		s.left(true)
	})
}

func TestAReplicaThatIsLostJustBeforeTheNodeIsDeletedHoldsThatBack(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.request(&s.zedagent, deviceOp) // complete, but there yet
		defer s.run()()
		time.Sleep(10 * time.Second)
		s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "WO"})))
		s.leaves()
		time.Sleep(time.Hour)
		s.left(false)
		s.is(types.DrainComplete, deviceOp)
		s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "RW"})))
		time.Sleep(time.Minute)
		s.left(true)
	})
}

func TestAConfigurationThatReturnsCancelsTheLeave(t *testing.T) {
	for name, until := range map[string]func(*stage){
		"at the gates":    func(s *stage) { s.held("n2"); s.leaves(); time.Sleep(10 * time.Second) },
		"while pods go":   func(s *stage) { s.kube.Block(appZero, true); s.leaves(); time.Sleep(10 * time.Second) },
		"while one waits": func(s *stage) { s.held("n9"); s.leaves(); time.Sleep(50 * time.Millisecond) },
		"with a dead API": func(s *stage) { s.kube.SetFault(kubetest.Hung); s.leaves(); time.Sleep(10 * time.Second) },
		"before the delete": func(s *stage) {
			s.kube.FailVerb("deletenode", types.ErrRefused)
			s.leaves()
			time.Sleep(20 * time.Second)
		},
		"after the deadline": func(s *stage) {
			s.kube.Block(appZero, true)
			s.hours(1)
			s.leaves()
			time.Sleep(2 * time.Hour)
			s.phase(types.PhaseNotEmpty, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				defer s.run()()
				time.Sleep(time.Second)
				until(s)
				s.left(false)
				s.back()
				time.Sleep(time.Second)
				s.phase(types.PhaseIdle, "")
				s.kube.SetFault(kubetest.None)
				s.kube.FailVerb("deletenode", nil)
				if s.kube.Lock().Holder != "n1" {
					s.kube.SetLock(types.DrainLock{})
				}
				time.Sleep(time.Minute)
				s.nothingLeft()
				s.path("2")
			})
		})
	}
}

func TestALeaveWithADeadAPIEndsWithoutDeletingTheNode(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.leaves()
		time.Sleep(10 * time.Second) // it has looked at the volumes
		s.kube.SetFault(kubetest.Refused)
		time.Sleep(defaultSkipSilence - time.Second)
		if p, _ := s.progress.Get(types.Global); p.Left {
			t.Error("left too early")
		}
		time.Sleep(10 * time.Second)
		if p, _ := s.progress.Get(types.Global); !p.Left {
			t.Errorf("not left: %s %s", p.Phase, p.Reason)
		}
		if n := len(s.kube.Calls("deletenode")); n != 0 {
			t.Errorf("%d deletions", n)
		}
	})
}

func TestALeaveOfANodeThatOthersDeletedEndsAfterAMinute(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		time.Sleep(time.Second)
		s.leaves()
		time.Sleep(10 * time.Second)
		_ = s.nodes.Unpublish("n1")
		time.Sleep(2*sureAfter + 5*time.Second)
		s.left(true)
	})
}

func TestADeviceThatJoinsALeaveIsToldOfTheEndBeforeTheNodeIsGone(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		time.Sleep(time.Second)
		s.leaves()
		time.Sleep(10 * time.Second)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Second)
		s.kube.Block(appZero, false)
		time.Sleep(time.Minute)
		s.left(true)
		s.is(types.DrainComplete, deviceOp)
		said := s.status.when(s.booted, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp})
		if d := s.kube.Calls("deletenode")[0].At.Sub(s.booted); d-said < edge {
			t.Errorf("deleted %s after COMPLETE", d-said)
		}
		if err := inOrder(s.status.seen); err != nil {
			t.Error(err)
		}
	})
}
