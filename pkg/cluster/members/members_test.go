package members

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestADeadMasterThatWasReplacedIsRemovedByOneNodeUnderTheLock(t *testing.T) {
	play(t, func(s *stage) {
		s.start("n1")
		s.start("n2")
		s.after(2 * time.Second)
		if lock := s.cluster.Lock(); lock.Task != types.TaskMembers || s.cluster.Repairer() != lock.Holder {
			s.Errorf("the lock is %+v and %q repairs", lock, s.cluster.Repairer())
		}
		if !s.there("n3") {
			s.Error("the Node is deleted before anybody showed that he is alive")
		}
		s.after(30 * time.Second)
		if s.there("n3") || !s.there("n1") || !s.there("n2") {
			s.Error("not the stale one alone was removed")
		}
		if n := len(s.cluster.Calls("deletenode")); n != 1 {
			s.Errorf("%d nodes were deleted", n)
		}
		if lock := s.cluster.Lock(); lock.Holder != "" {
			s.Errorf("the lock stays %+v", lock)
		}
		events := s.cluster.Events()
		if len(events) != 1 || events[0].Node != "n3" || !strings.Contains(events[0].Message, device("n3").String()) {
			s.Errorf("events: %+v", events)
		}
		for name, a := range s.agents {
			if m := s.says(a); len(m.Stale) != 0 || m.Why != "" || m.Repairing {
				s.Errorf("%s says %+v", name, m)
			}
		}
	})
}

func TestTwoStaleMembersGoOneAfterTheOther(t *testing.T) {
	play(t, func(s *stage) {
		all := func(n *types.Node) { n.Agent.Masters = devices("n1", "n2", "n4") }
		_ = s.nodes.Publish("n4", node("n4", all))
		_ = s.nodes.Publish("n5", node("n5", down))
		s.start("n1")
		a := s.start("n2") // the pause is the cluster's, not one node's
		s.after(30 * time.Second)
		if s.there("n3") || !s.there("n5") {
			s.Error("not the first alone is gone")
		}
		if m := s.says(a); len(m.Stale) != 1 || !strings.Contains(m.Why, "has just been removed") || m.Stale[0].Why != m.Why {
			s.Errorf("says %+v", m)
		}
		s.after(2 * time.Minute)
		if s.there("n5") {
			s.Error("the second stays")
		}
	})
}

func TestAMemberWhoseKubeletIsSilentCountsAsDown(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetRenewed("n2", time.Now()) // and never again, though its condition still says Ready
		a := s.start("n1")
		s.after(5 * time.Minute)
		if !s.there("n3") {
			s.Error("etcd was left without quorum")
		}
		if m := s.says(a); !strings.Contains(m.Why, "no quorum") || m.Stale[0].Why != m.Why {
			s.Errorf("says %+v", m)
		}
		for range 60 { // it tries again and again
			s.after(time.Second)
			if s.cluster.Lock().Holder != "" && !s.says(a).Repairing {
				s.Error("the lock stays with who could not use it")
			}
		}
	})
}

func TestNothingIsRemovedWhileAnotherNodeDrains(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "boot-n2"})
		a := s.start("n1")
		s.after(2 * time.Minute)
		if !s.there("n3") || s.cluster.Lock().Holder != "n2" {
			s.Error("the lock of a drain was not heeded")
		}
		if m := s.says(a); !strings.Contains(m.Why, "n2 holds the drain lock") {
			s.Errorf("says %q", m.Why)
		}
		s.cluster.SetLock(types.DrainLock{})
		s.after(time.Minute)
		if s.there("n3") {
			s.Error("once the lock is free it stays")
		}
	})
}

func TestAStaleNodeThatDiedInItsDrainIsRemovedWithItsLock(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetLock(types.DrainLock{Holder: "n3", BootID: "boot-n3", Volumes: map[string]int{"v": 2}})
		a := s.start("n1")
		s.after(patience - time.Minute)
		if m := s.says(a); !s.there("n3") || !strings.Contains(m.Why, "zedkube nodes remove n3") {
			s.Errorf("before a day has passed: there %v, says %+v", s.there("n3"), m)
		}
		s.after(3 * time.Minute)
		if s.there("n3") || s.cluster.Lock().Holder != "" {
			s.Errorf("there %v, lock %+v", s.there("n3"), s.cluster.Lock())
		}
	})
}

func TestALockThatAFormerProcessLeftIsFreed(t *testing.T) {
	for name, row := range map[string]struct {
		lock types.DrainLock
		free bool
	}{
		"ours for a member":   {types.DrainLock{Holder: "n1", Task: types.TaskMembers}, true},
		"ours for a drain":    {types.DrainLock{Holder: "n1"}, false},
		"theirs for a member": {types.DrainLock{Holder: "n2", Task: types.TaskMembers}, false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				_ = s.nodes.Unpublish("n3") // the crash came after the deletion
				s.cluster.SetLock(row.lock)
				s.start("n1")
				s.after(time.Minute)
				if free := s.cluster.Lock().Holder == ""; free != row.free {
					s.Errorf("free: %v", free)
				}
				if n := len(s.cluster.Calls("repair")); n > 0 != row.free || n > 1 {
					s.Errorf("tried %d times", n)
				}
			})
		})
	}
}

func TestAnAgentThatDiesInTheMiddleBlocksNobody(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		s.after(2 * time.Second)
		a.stop()
		s.start("n1")
		s.after(time.Minute)
		if s.there("n3") || s.cluster.Lock().Holder != "" {
			s.Errorf("there %v, lock %+v", s.there("n3"), s.cluster.Lock())
		}
	})
}

func TestTheControllersSilenceStopsARemovalUnderWay(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		s.after(2 * time.Second)
		_ = a.zedagent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetTemporaryFail})
		s.after(5 * time.Minute)
		if !s.there("n3") || s.cluster.Lock().Holder != "" {
			s.Errorf("there %v, lock %+v", s.there("n3"), s.cluster.Lock())
		}
	})
}

func TestANewListStopsARemovalUnderWay(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		s.after(2 * time.Second)
		a.configure(uuid.Nil, "n1", "n2", "n3")
		s.after(5 * time.Minute)
		if !s.there("n3") || s.cluster.Lock().Holder != "" {
			s.Errorf("there %v, lock %+v", s.there("n3"), s.cluster.Lock())
		}
	})
}

func TestAChangeOfMindInTheLastSecondsCounts(t *testing.T) {
	for name, change := range map[string]func(*stage){
		"a member is told otherwise": func(s *stage) {
			s.cluster.ChangeNode("n2", func(n *types.Node) { n.Agent = &types.AgentStamp{Cluster: cluster, Masters: devices("n1", "n2", "n3")} })
		},
		"a member goes down":      func(s *stage) { s.cluster.ChangeNode("n2", down) },
		"the Node is another now": func(s *stage) { s.cluster.ChangeNode("n3", func(n *types.Node) { n.UID = "new" }) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.start("n1")
				s.after(2 * time.Second)
				change(s)
				s.after(2 * time.Second)
				if len(s.cluster.Calls("deletenode")) != 0 {
					s.Error("it was removed all the same")
				}
			})
		})
	}
}

func TestASilentServerIsAskedAgainAndAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.FailVerb("deletenode", errors.New("no"))
		a := s.start("n1")
		s.after(time.Minute)
		if m := s.says(a); !strings.Contains(m.Why, "the last attempt failed") {
			s.Errorf("says %q", m.Why)
		}
		s.cluster.FailVerb("deletenode", nil)
		s.after(time.Minute)
		if s.there("n3") || s.cluster.Lock().Holder != "" {
			s.Errorf("there %v, lock %+v", s.there("n3"), s.cluster.Lock())
		}
	})
}

func TestNothingIsRemovedBeforeTheControllerWasAskedFiveTimes(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", func(a *agent) { a.every(time.Hour) })
		fetches := func(status types.ConfigGetStatus) {
			_ = a.zedagent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: status})
		}
		s.after(4 * time.Hour)
		fetches(types.ConfigGetFail)
		s.after(time.Minute)
		fetches(types.ConfigGetSuccess)
		s.after(4 * time.Hour)
		a.stop() // what was counted is lost with the process
		s.start("n1")
		s.after(5*time.Hour - time.Second)
		if len(s.cluster.Calls("repair")) != 0 {
			s.Error("it was to be removed too early")
		}
		s.after(time.Minute)
		s.removed()
	})
}

func TestWhoWasNamedIsRememberedOverARestart(t *testing.T) {
	for name, remembers := range map[string]bool{"with the journal": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				a := s.start("n1", func(a *agent) {
					_ = a.journal.Unpublish(types.Global)
					a.configure(uuid.Nil, "n1", "n2", "n3")
				})
				s.after(time.Second)
				a.stop()
				if !remembers {
					_ = a.journal.Unpublish(types.Global)
				}
				a.configure(uuid.Nil, "n1", "n2", "n4")
				s.start("n1")
				s.after(time.Minute)
				if s.there("n3") == remembers {
					s.Errorf("there: %v", s.there("n3"))
				}
			})
		})
	}
}

func TestWhatAnotherNodeWasToldIsRemembered(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", func(a *agent) { _ = a.journal.Unpublish(types.Global) })
		s.cluster.ChangeNode("n2", listing("n1", "n2", "n3"))
		s.after(time.Minute)
		s.cluster.ChangeNode("n2", listing("n1", "n2", "n4"))
		s.after(time.Minute)
		s.removed()
		a.configure(uuid.Nil, "n1")
		_ = a.membership.Publish(types.Global, types.ClusterMembership{
			State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{ClusterID: types.UUIDandVersion{UUID: other}, MasterNodeIDs: devices("n1")},
		})
		s.after(time.Minute)
		if j, _ := a.journal.Get(types.Global); len(j.Named) != 1 {
			s.Errorf("of another cluster it remembers %v", j.Named)
		}
	})
}

func TestTheStampThatANodeHadWhenItBecameStaleIsRememberedOverARestart(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*types.Node)
		stays  bool
	}{
		"it has not changed":             {func(*types.Node) {}, false},
		"it changed while nobody looked": {func(n *types.Node) { n.StampedAt = time.Now() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				_ = s.nodes.Publish("n3", node("n3", down, listing("n1", "n2", "n3")))
				a := s.start("n1", func(a *agent) { a.every(time.Hour) })
				s.after(time.Minute)
				since := s.says(a).Stale[0].Since
				a.stop()
				s.cluster.ChangeNode("n3", row.change)
				s.start("n1", func(a *agent) { a.every(time.Second) })
				s.after(time.Second)
				if again := s.says(a).Stale[0].Since; !again.Equal(since) {
					s.Errorf("stale since %s, and after a restart since %s", since, again)
				}
				s.after(time.Minute)
				if s.there("n3") != row.stays {
					s.Errorf("there: %v", s.there("n3"))
				}
			})
		})
	}
}

// versioned shows Nodes with versions, as the API server does.
type versioned struct{ *kubetest.Cluster }

func (v versioned) FreshNodes(ctx context.Context) ([]types.Node, error) {
	nodes, err := v.Cluster.FreshNodes(ctx)
	for i := range nodes {
		nodes[i].ResourceVersion = "7"
	}
	return nodes, err
}

func (v versioned) DeleteNode(ctx context.Context, node types.Node) error {
	if node.ResourceVersion != "7" {
		return types.ErrConflict
	}
	return v.Cluster.DeleteNode(ctx, node)
}

func TestTheNodeIsDeletedAsTheLastLookSawIt(t *testing.T) {
	play(t, func(s *stage) {
		s.start("n1", func(a *agent) { a.kube = versioned{s.cluster} })
		s.after(time.Minute)
		s.removed()
	})
}

func TestManyFormerMastersAreNotRememberedForEver(t *testing.T) {
	f := scene()
	var p past
	for range 3 * maxNamed {
		f.configured.masters = []uuid.UUID{device("n1"), uuid.New()}
		p = p.next(f)
	}
	if len(p.named) != maxNamed || p.named[len(p.named)-1] != f.configured.masters[1] || !slices.Contains(p.named, device("n1")) {
		t.Errorf("%d devices are remembered", len(p.named))
	}
}

func TestWhereAllIsWellNothingIsAsked(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Publish("n3", node("n3", listing("n1", "n2", "n3")))
		a := s.start("n1")
		a.configure(uuid.Nil, "n1", "n2", "n3")
		s.after(time.Hour)
		if calls := s.cluster.Calls(""); len(calls) > 0 {
			s.Errorf("%d calls: %v", len(calls), calls)
		}
		_ = a.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		s.after(time.Second)
		if _, ok := a.members.Get(types.Global); ok {
			s.Error("a node that has left its cluster still speaks of its members")
		}
	})
}
