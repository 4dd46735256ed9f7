package drain

import (
	"context"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestWithoutQuorumTheLockIsForOthersAndTheDrainWaits(t *testing.T) {
	fleetStory(t, func(f *fleet) {
		f.kube.ChangeNode("n3", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		f.ask("n1")
		time.Sleep(15 * time.Minute)
		f.phase(types.PhaseGates, "no quorum: n3 is not")
		f.is(types.DrainStarting, deviceOp)
		f.cordoned(false, false)
		if l := f.kube.Lock(); l.Holder != "" {
			t.Errorf("%s holds the lock that it can make nothing of", l.Holder)
		}
		if n := len(f.kube.Calls("evict")); n != 0 {
			t.Errorf("%d evictions", n)
		}
		f.kube.ChangeNode("n3", func(n *types.Node) { n.Ready = types.ConditionTrue })
		time.Sleep(10 * time.Second)
		f.is(types.DrainComplete, deviceOp)
	})
}

// lateQuorum loses quorum at the moment when the lock is taken.
type lateQuorum struct {
	*kubetest.Cluster
	lose func()
}

func (l *lateQuorum) SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error) {
	set, err := l.Cluster.SetDrainLock(ctx, lock)
	l.lose()
	return set, err
}

func TestQuorumIsLookedAtOnceMoreUnderTheLock(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.via = &lateQuorum{s.kube, func() { s.node("n3", types.ConditionFalse) }}
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.phase(types.PhaseGates, "no quorum")
		s.cordoned(false, false)
		if l := s.kube.Lock(); l.Holder != "" {
			t.Error("the lock was not given back")
		}
	})
}

func TestALockThatIsKeptAtTheGatesIsFreedWhenItsVolumesAreWhole(t *testing.T) {
	for name, withdrawn := range map[string]bool{"while the drain waits": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "WO", "n2": "RW"})))
				s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-0", Volumes: map[string]int{"pvc-1": 2}})
				s.via = &lateQuorum{s.kube, func() { s.node("n3", types.ConditionFalse) }}
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Minute)
				s.phase(types.PhaseGates, "no quorum")
				if withdrawn {
					_ = s.zedagent.Unpublish(types.Global)
				}
				time.Sleep(time.Hour)
				if l := s.kube.Lock(); l.Holder != "n1" || l.BootID != "boot-1" || !l.Ended || l.Volumes["pvc-1"] != 2 {
					t.Errorf("pvc-1 is still rebuilt on n1, and the lock is %+v", l)
				}
				s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "RW"})))
				time.Sleep(2 * time.Minute)
				if l := s.kube.Lock(); l.Holder != "" {
					t.Errorf("the lock is %+v", l)
				}
			})
		})
	}
}

func TestQuorumThatIsLostInMidDrainHoldsCompleteBackAndNothingElse(t *testing.T) {
	story(t, 2, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.node("n3", types.ConditionUnknown)
		s.kube.Block(appZero, false)
		time.Sleep(time.Hour)
		p := s.phase(types.PhaseEmptying, "no quorum")
		if p.Quorum == "" || p.Pods.Evicted != 2 {
			t.Errorf("quorum %q, %d pods evicted", p.Quorum, p.Pods.Evicted)
		}
		s.is(types.DrainRetrying, deviceOp)
		s.cordoned(true, true)
		if s.kube.Lock().Holder != "n1" {
			t.Error("the lock was given back after the cordon")
		}
		s.node("n3", types.ConditionTrue)
		time.Sleep(15 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestALockLostInMidDrainIsTakenAgainBeforeComplete(t *testing.T) {
	for name, row := range map[string]struct {
		now  types.DrainLock
		want types.DrainStatus
	}{
		"deleted":                       {types.DrainLock{}, types.DrainComplete},
		"taken by one who needs it":     {types.DrainLock{Holder: "n2", BootID: "boot-1"}, types.DrainRetrying},
		"taken by one who is long back": {types.DrainLock{Holder: "n2", BootID: "boot-0"}, types.DrainComplete},
		"taken by one who is gone":      {types.DrainLock{Holder: "n9", BootID: "boot-1"}, types.DrainComplete},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, true)
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Second)
				s.kube.SetLock(row.now)
				s.kube.Block(appZero, false)
				time.Sleep(10 * time.Minute)
				s.is(row.want, deviceOp)
				holder := s.kube.Lock().Holder
				if row.want == types.DrainComplete && holder != "n1" {
					t.Errorf("complete while %q holds the lock", holder)
				}
				if row.want != types.DrainComplete {
					s.phase(types.PhaseEmptying, "node n2 drains")
				}
			})
		})
	}
}

func TestTheWindowForAgentsThatKnowNoLockFollowsTheSettings(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.ChangeNode("n2", func(n *types.Node) { n.Agent = nil })
		defer s.run()()
		start := time.Now()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(defaultMultiple*defaultInterval - 2*time.Second)
		s.phase(types.PhaseEmptying, "its agent is not known to use the drain lock")
		s.cordoned(true, true)
		if len(s.kube.Calls("evict")) != 0 {
			t.Error("evicted within the window")
		}
		s.setting(types.SettingDrainAllNodes, 5)
		s.setting(types.SettingConfigInterval, 100)
		time.Sleep(time.Until(start.Add(499 * time.Second)))
		s.phase(types.PhaseEmptying, "its agent is not known to use the drain lock")
		s.setting(types.SettingDrainAllNodes, 1)
		time.Sleep(3 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestTheWindowHoldsForEachPeerThatMayKnowNoLock(t *testing.T) {
	for name, change := range map[string]func(*types.Node){
		"it has no stamp":                       func(n *types.Node) { n.Agent = nil },
		"its stamp is stale":                    func(n *types.Node) { n.StampStale = true },
		"its stamp has not been seen to change": func(n *types.Node) { n.StampUnconfirmed = true },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.ChangeNode("n2", change)
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(defaultMultiple*defaultInterval - 2*time.Second)
				s.phase(types.PhaseEmptying, "not known to use the drain lock")
				time.Sleep(10 * time.Second)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

func TestTheWindowHoldsForServersAndNotForWorkers(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*types.Node)
		holds  bool
	}{
		"a worker":                {func(n *types.Node) { n.ControlPlane, n.Master, n.Etcd = false, false, false }, false},
		"the tie-breaker":         {func(n *types.Node) { n.TieBreaker, n.Unschedulable = true, true }, true},
		"a server without etcd":   {func(n *types.Node) { n.ControlPlane, n.Etcd = true, false }, true},
		"a server with etcd only": {func(n *types.Node) { n.ControlPlane, n.Master, n.Etcd = false, false, true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.ChangeNode("n3", func(n *types.Node) { n.Agent = nil; row.change(n) })
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Second)
				if !row.holds {
					s.is(types.DrainComplete, deviceOp)
					return
				}
				s.phase(types.PhaseEmptying, "not known to use the drain lock")
				time.Sleep(defaultMultiple * defaultInterval)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

func TestTheWindowEndsOnceEveryPeerKnowsTheLock(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.ChangeNode("n2", func(n *types.Node) { n.Agent = nil })
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.phase(types.PhaseEmptying, "its agent is not known to use the drain lock")
		s.kube.ChangeNode("n2", func(n *types.Node) { n.Agent = &types.AgentStamp{} })
		time.Sleep(3 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestWithoutASchedulablePeerTheGatesArePassedAndNothingIsEvicted(t *testing.T) {
	for name, peers := range map[string]func(*stage){
		"cordoned peers": func(s *stage) {
			for _, n := range []string{"n2", "n3"} {
				s.kube.ChangeNode(n, func(n *types.Node) { n.Unschedulable = true })
			}
		},
		"no other node": func(s *stage) { _, _ = s.nodes.Unpublish("n2"), s.nodes.Unpublish("n3") },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 3, func(s *stage) {
				peers(s)
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(90 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				s.phase(types.PhaseComplete, "nothing is evicted")
				s.cordoned(true, true)
				if s.kube.Lock().Holder != "n1" || len(s.kube.Calls("evict")) != 0 {
					t.Errorf("lock %+v, %d evictions", s.kube.Lock(), len(s.kube.Calls("evict")))
				}
			})
		})
	}
}
