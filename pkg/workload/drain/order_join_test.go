package drain

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func TestWhoJoinsAndGoesAgainChangesNothing(t *testing.T) {
	for name, until := range phasesOf {
		if name == "after FAILEDDRAIN" {
			continue // its agent is another one
		}
		for who, by := range map[string]types.DrainRequester{"the update": osUpdate, "an operator": nobody} {
			t.Run(name+", "+who, func(t *testing.T) {
				story(t, 1, func(s *stage) {
					defer s.run()()
					until(s)
					before, _ := s.status.Get(types.Global)
					began, _ := s.progress.Get(types.Global)
					from := &s.baseos
					if by == nobody {
						from = &s.operator
					}
					s.request(from, by)
					time.Sleep(5 * time.Second)
					_ = from.Unpublish(types.Global)
					time.Sleep(5 * time.Second)
					if failed(before.Status) {
						s.is(types.DrainComplete, deviceOp) // that was a new drain
						return
					}
					s.is(before.Status, before.RequestedBy)
					if p, _ := s.progress.Get(types.Global); !p.Started.Equal(began.Started) || p.Phase != began.Phase {
						t.Errorf("%s since %s, was %s since %s", p.Phase, p.Started, began.Phase, began.Started)
					}
				})
			})
		}
	}
}

func TestATieBreakerIsDrainedAndStaysCordoned(t *testing.T) {
	for name, tie := range map[string]func(*stage){
		"by its label": func(s *stage) { s.kube.ChangeNode("n1", func(n *types.Node) { n.TieBreaker = true }) },
		"by the configuration": func(s *stage) {
			id := uuid.New()
			s.kube.ChangeNode("n1", func(n *types.Node) { n.UUID = id.String() })
			_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1", DeviceID: id})
			_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true, TieBreakerNodeID: types.UUIDandVersion{UUID: id}})
		},
	} {
		for who, ours := range map[string]bool{"kube-init's": false, "ours": true} {
			t.Run(name+", cordon "+who, func(t *testing.T) {
				story(t, 1, func(s *stage) {
					tie(s)
					s.kube.ChangeNode("n1", func(n *types.Node) { n.Unschedulable = !ours })
					stop := s.run()
					s.request(&s.zedagent, deviceOp)
					time.Sleep(5 * time.Second)
					s.is(types.DrainComplete, deviceOp)
					_ = s.zedagent.Unpublish(types.Global)
					time.Sleep(40 * time.Second)
					s.cordoned(true, ours)
					s.request(&s.zedagent, deviceOp)
					time.Sleep(5 * time.Second)
					s.is(types.DrainComplete, deviceOp)
					stop()
					s.reboot("boot-2")
					s.ready()
					defer s.run()()
					time.Sleep(40 * time.Second)
					s.cordoned(true, ours)
					if l := s.kube.Lock(); l.Holder != "" {
						t.Errorf("the lock is still %s's", l.Holder)
					}
				})
			})
		}
	}
}

func TestACompleteThatIsNotUsedStandsForADayWithItsLock(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(12 * time.Hour)
		s.request(&s.zedagent, deviceOp) // another reboot, by zedagent's count
		time.Sleep(12 * time.Hour)
		s.is(types.DrainComplete, deviceOp)
		s.path("234579")
		s.cordoned(true, true)
		if l := s.kube.Lock(); l.Holder != "n1" {
			t.Errorf("the lock is %q's", l.Holder)
		}
	})
}
