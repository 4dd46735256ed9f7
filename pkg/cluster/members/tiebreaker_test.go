package members

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestWhatTheTieBreakerNeeds(t *testing.T) {
	pod := func(change func(*types.Pod)) types.Pod {
		p := types.Pod{Namespace: "eve-kube-app", Name: "a", NodeName: "n3", Phase: types.PodRunning, Owner: types.Owner{Kind: "ReplicaSet"}}
		change(&p)
		return p
	}
	for _, row := range []struct {
		rule   string
		change func(*facts)
		acts   bool
		evicts int
	}{
		{"a schedulable one is cordoned", func(*facts) {}, true, 0},
		{"though its label is in capitals", func(f *facts) { f.nodes[2].UUID = strings.ToUpper(f.nodes[2].UUID) }, true, 0},
		{"though it is down", func(f *facts) { down(&f.nodes[2]) }, true, 0},
		{"one that is cordoned and empty is left alone", func(f *facts) { cordoned(&f.nodes[2]) }, false, 0},
		{"its pods go", func(f *facts) { cordoned(&f.nodes[2]); f.pods = []types.Pod{pod(func(*types.Pod) {})} }, true, 1},
		{"not those that go already", func(f *facts) {
			cordoned(&f.nodes[2])
			f.pods = []types.Pod{pod(func(p *types.Pod) { p.Deleted = f.now })}
		}, false, 0},
		{"nor those that are done", func(f *facts) {
			cordoned(&f.nodes[2])
			f.pods = []types.Pod{pod(func(p *types.Pod) { p.Phase = types.PodSucceeded })}
		}, false, 0},
		{"nor those of a DaemonSet", func(f *facts) {
			cordoned(&f.nodes[2])
			f.pods = []types.Pod{pod(func(p *types.Pod) { p.Owner.Kind = "DaemonSet" })}
		}, false, 0},
		{"nor those of a node that is down", func(f *facts) {
			cordoned(&f.nodes[2])
			down(&f.nodes[2])
			f.pods = []types.Pod{pod(func(*types.Pod) {})}
		}, false, 0},
		{"nor other nodes' pods", func(f *facts) {
			cordoned(&f.nodes[2])
			f.pods = []types.Pod{pod(func(p *types.Pod) { p.NodeName = "n2" })}
		}, false, 0},
		{"while the cluster rests after a removal too", func(f *facts) { f.rest = f.uptime + time.Minute }, true, 0},
		{"not while a Ready member was told of another", func(f *facts) { tied("n2")(&f.nodes[1]) }, false, 0},
		{"nor while one was told of none", func(f *facts) { listing("n1", "n2", "n4")(&f.nodes[1]) }, false, 0},
		{"nor while it does not know so itself", func(f *facts) { listing("n1", "n2", "n4")(&f.nodes[2]) }, false, 0},
		{"nor while the own stamp does not say so", func(f *facts) { tied("n2")(&f.nodes[0]) }, false, 0},
		{"nor while a Ready member has no zedkube of this kind", func(f *facts) { unstamped(&f.nodes[1]) }, false, 0},
		{"nor while the zedkube of one has ended", func(f *facts) { f.nodes[1].StampStale = true }, false, 0},
		{"though a worker says nothing", func(f *facts) { f.nodes = append(f.nodes, node("n6", worker, unstamped)) }, true, 0},
		{"though one that has been down for a day was told otherwise", func(f *facts) {
			tied("n2")(&f.nodes[1])
			down(&f.nodes[1])
			f.past.uptime += patience
			f.past.published["uid-n2"] = reported{mark: markOf(f.nodes[1])}
		}, true, 0},
		{"not on an old word", func(f *facts) { f.fetched = false }, false, 0},
		{"not without one", func(f *facts) { f.configured.tie = uuid.Nil; cordoned(&f.nodes[2]) }, false, 0},
	} {
		t.Run(row.rule, func(t *testing.T) {
			f := scene()
			f.nodes[2] = node("n3")
			f.configured.masters, f.configured.tie = nil, device("n3")
			for i := range f.nodes {
				tied("n3")(&f.nodes[i])
			}
			row.change(&f)
			a := decide(f)
			if (a.task.kind == tie) != row.acts || len(a.task.pods) != row.evicts {
				t.Errorf("%+v, want acts %v and %d pods", a.task, row.acts, row.evicts)
			}
			if f.configured.tie != uuid.Nil && a.publish.TieBreaker != "n3" {
				t.Errorf("the tie-breaker is %q", a.publish.TieBreaker)
			}
		})
	}
}

// tie has every node that is there stamp that name is the tie-breaker.
func (s *stage) tie(name string) {
	for n := range s.nodes.All() {
		s.cluster.ChangeNode(n, func(n *types.Node) { n.Ready = types.ConditionTrue; tied(name)(n) })
	}
}

func TestOneNodesWordMakesNobodyTheTieBreaker(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Publish("n3", node("n3", listing("n1", "n2", "n3")))
		_ = s.nodes.Publish("n2", node("n2", listing("n1", "n2", "n3")))
		_ = s.nodes.Publish("n1", node("n1", listing("n1", "n2", "n3"), tied("n3")))
		_ = s.pods.Publish("eve-kube-app/a", types.Pod{Namespace: "eve-kube-app", Name: "a", UID: "a", NodeName: "n3", Phase: types.PodRunning})
		a := s.start("n1", func(a *agent) { a.configure(device("n3"), "n1", "n2", "n3") })
		s.after(24 * time.Hour)
		n, _ := s.nodes.Get("n3")
		if n.Unschedulable || len(s.cluster.Calls("evict")) != 0 {
			s.Error("a node was cordoned and emptied on the word of one other")
		}
		if m := s.says(a); m.Why != "node n2 has not been configured with the same tie-breaker" {
			s.Errorf("says %q", m.Why)
		}
		for _, name := range []string{"n2", "n3"} {
			s.cluster.ChangeNode(name, tied("n3"))
		}
		s.after(time.Minute)
		if n, _ := s.nodes.Get("n3"); !n.Unschedulable || len(s.pods.All()) != 0 {
			s.Error("once all were told so it stays as it was")
		}
	})
}

func TestTheTieBreakerIsPutRightAgainAndAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.tie("n3")
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
		s.tie("n3")
		s.cluster.ChangeNode("n3", cordoned)
		_ = s.pods.Publish("eve-kube-app/a", types.Pod{Namespace: "eve-kube-app", Name: "a", UID: "a", NodeName: "n3", Phase: types.PodRunning})
		s.cluster.Block("eve-kube-app/a", true)
		a := s.start("n1", func(a *agent) { a.configure(device("n3"), "n1", "n2", "n3") })
		s.after(time.Minute)
		if m := s.says(a); !strings.Contains(m.Why, "PodDisruptionBudget prevents the eviction of pod eve-kube-app/a") {
			s.Errorf("says %q", m.Why)
		}
		if n := len(s.cluster.Calls("evict")); n < 2 || n > 8 {
			s.Errorf("asked %d times in a minute", n)
		}
	})
}

func TestATieBreakerThatIsBlockedDoesNotKeepAStaleMember(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Publish("n4", node("n4", cordoned))
		s.tie("n4")
		s.cluster.ChangeNode("n3", down)
		_ = s.pods.Publish("eve-kube-app/a", types.Pod{Namespace: "eve-kube-app", Name: "a", UID: "a", NodeName: "n4", Phase: types.PodRunning})
		s.cluster.Block("eve-kube-app/a", true)
		s.start("n1", func(a *agent) { a.configure(device("n4"), "n1", "n2", "n4") })
		s.after(time.Minute)
		s.removed()
	})
}

// obstinate uncordons n3 as soon as it is cordoned, as the agent there does while
// its stamp says otherwise than its configuration.
type obstinate struct{ *kubetest.Cluster }

func (o obstinate) Cordon(ctx context.Context, node string, cordon types.Cordon) error {
	time.AfterFunc(100*time.Millisecond, func() { _ = o.Uncordon(context.WithoutCancel(ctx), node) })
	return o.Cluster.Cordon(ctx, node, cordon)
}

func TestACordonThatIsUndoneAtOnceIsMadeAgainOnceAMinute(t *testing.T) {
	play(t, func(s *stage) {
		s.tie("n3")
		a := s.start("n1", func(a *agent) {
			a.kube = obstinate{s.cluster}
			a.configure(device("n3"), "n1", "n2", "n3")
		})
		s.after(10 * time.Minute)
		if n := len(s.cluster.Calls("cordon")); n < 5 || n > 13 {
			s.Errorf("cordoned %d times in ten minutes", n)
		}
		a.configure(uuid.Nil, "n1", "n2", "n3")
		s.after(time.Minute)
		n := len(s.cluster.Calls("cordon"))
		a.configure(device("n3"), "n1", "n2", "n3")
		s.after(15 * time.Second)
		if now := len(s.cluster.Calls("cordon")); now != n+2 {
			s.Errorf("once all was well it still hesitates: %d cordons", now-n)
		}
	})
}
