package members

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/kubeapi/kubetest"
	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is the cluster of scene() with its agents n1 and n2, in fake time.
type stage struct {
	*testing.T
	nodes   pubsub.Table[types.Node]
	pods    pubsub.Table[types.Pod]
	api     pubsub.Table[types.APIStatus]
	cluster *kubetest.Cluster
	agents  map[string]*agent
}

// agent is the component on one node.
type agent struct {
	membership pubsub.Table[types.ClusterMembership]
	zedagent   pubsub.Table[types.ZedAgentStatus]
	info       pubsub.Table[types.EdgeNodeInfo]
	members    pubsub.Table[types.ClusterMembers]
	stop       func()
}

func play(t *testing.T, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, agents: map[string]*agent{}}
		s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api}
		s.cluster.SetFault(kubetest.None)
		for _, n := range scene().nodes {
			_ = s.nodes.Publish(n.Name, n)
		}
		tell(s)
		for _, a := range s.agents {
			a.stop()
		}
	})
}

// start runs the agent of a node, perhaps after an earlier run.
func (s *stage) start(name string, told ...func(*agent)) *agent {
	a := s.agents[name]
	if a == nil {
		a = &agent{}
		s.agents[name] = a
		_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: device(name)})
		_ = a.zedagent.Publish(agentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess})
		a.configure(uuid.Nil, "n1", "n2", "n4")
	}
	for _, t := range told {
		t(a)
	}
	log, _ := logtest.NewNullLogger()
	began := time.Now()
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Membership: &a.membership, Agent: &a.zedagent, Info: &a.info,
		Nodes: &s.nodes, AppPods: &s.pods, API: &s.api, Kube: s.cluster,
		Uptime: func() time.Duration { return time.Since(began) }, Members: &a.members,
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	a.stop = func() { cancel(); <-done }
	synctest.Wait()
	return a
}

func (a *agent) configure(tie uuid.UUID, masters ...string) {
	_ = a.membership.Publish(types.Global, types.ClusterMembership{
		State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{
			ClusterID: types.UUIDandVersion{UUID: cluster}, MasterNodeIDs: devices(masters...), TieBreakerNodeID: types.UUIDandVersion{UUID: tie},
		},
	})
}

func (s *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) there(name string) bool {
	_, ok := s.nodes.Get(name)
	return ok
}

func (s *stage) says(a *agent) types.ClusterMembers {
	m, _ := a.members.Get(types.Global)
	return m
}

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
		if m := s.says(a); len(m.Stale) != 1 || !strings.Contains(m.Why, "a moment ago") || m.Stale[0].Why != m.Why {
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
		if s.cluster.Lock().Holder != "" {
			s.Error("the lock stays with who could not use it")
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
		s.start("n1")
		s.after(time.Minute)
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
				if n := len(s.cluster.Calls("lock")); n != 1 {
					s.Errorf("looked %d times", n)
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
		_ = a.zedagent.Publish(agentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetTemporaryFail})
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
		if m := s.says(a); !strings.Contains(m.Why, "the last try failed") {
			s.Errorf("says %q", m.Why)
		}
		s.cluster.FailVerb("deletenode", nil)
		s.after(time.Minute)
		if s.there("n3") || s.cluster.Lock().Holder != "" {
			s.Errorf("there %v, lock %+v", s.there("n3"), s.cluster.Lock())
		}
	})
}

func TestTheTieBreakerIsPutRightAgainAndAgain(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Publish("n3", node("n3", unstamped))
		_ = s.pods.Publish("eve-kube-app/a", types.Pod{
			Namespace: "eve-kube-app", Name: "a", UID: "a", NodeName: "n3", Phase: types.PodRunning, Owner: types.Owner{Kind: "ReplicaSet"},
		})
		for _, name := range []string{"n1", "n2"} {
			s.start(name, func(a *agent) { a.configure(device("n3"), "n1", "n2", "n3") })
		}
		s.after(20 * time.Second)
		for range 2 {
			n, _ := s.nodes.Get("n3")
			if !n.Unschedulable || n.CordonedBy == nil {
				s.Error("it is schedulable")
			}
			s.cluster.ChangeNode("n3", func(n *types.Node) { n.Unschedulable, n.CordonedBy = false, nil })
			s.after(20 * time.Second)
		}
		if len(s.pods.All()) != 0 {
			s.Error("its workload stays")
		}
		if calls := s.cluster.Calls("evict"); len(calls) != 1 {
			s.Errorf("%d evictions", len(calls))
		}
	})
}

func TestABudgetOnTheTieBreakerIsToldAndHeeded(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Publish("n3", node("n3", unstamped, cordoned))
		_ = s.pods.Publish("eve-kube-app/a", types.Pod{Namespace: "eve-kube-app", Name: "a", UID: "a", NodeName: "n3", Phase: types.PodRunning})
		s.cluster.Block("eve-kube-app/a", true)
		a := s.start("n1", func(a *agent) { a.configure(device("n3"), "n1", "n2", "n3") })
		s.after(time.Minute)
		if m := s.says(a); !strings.Contains(m.Why, "PodDisruptionBudget keeps pod eve-kube-app/a") {
			s.Errorf("says %q", m.Why)
		}
		if n := len(s.cluster.Calls("evict")); n < 2 || n > 8 {
			s.Errorf("asked %d times in a minute", n)
		}
	})
}

func TestWhereAllIsWellNothingIsAsked(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Publish("n3", node("n3", listing("n1", "n2", "n3")))
		a := s.start("n1")
		a.configure(uuid.Nil, "n1", "n2", "n3")
		s.after(time.Hour)
		if calls := s.cluster.Calls(""); len(calls) > 1 {
			s.Errorf("%d calls: %v", len(calls), calls)
		}
		_ = a.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		s.after(time.Second)
		if _, ok := a.members.Get(types.Global); ok {
			s.Error("a node that has left its cluster still speaks of its members")
		}
	})
}
