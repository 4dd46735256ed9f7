package members

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/kubeapi/kubetest"
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
		{"not on an old word", func(f *facts) { f.fetched = false }, false, 0},
		{"not without one", func(f *facts) { f.told.tie = uuid.Nil; cordoned(&f.nodes[2]) }, false, 0},
	} {
		t.Run(row.rule, func(t *testing.T) {
			f := scene()
			f.nodes[2] = node("n3")
			f.told.masters, f.told.tie = nil, device("n3")
			row.change(&f)
			a := decide(f)
			if (a.task.kind == tie) != row.acts || len(a.task.pods) != row.evicts {
				t.Errorf("%+v, want acts %v and %d pods", a.task, row.acts, row.evicts)
			}
			if f.told.tie != uuid.Nil && a.publish.TieBreaker != "n3" {
				t.Errorf("the tie-breaker is %q", a.publish.TieBreaker)
			}
		})
	}
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

func TestATieBreakerThatIsBlockedDoesNotKeepAStaleMember(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Publish("n4", node("n4", cordoned))
		_ = s.pods.Publish("eve-kube-app/a", types.Pod{Namespace: "eve-kube-app", Name: "a", UID: "a", NodeName: "n4", Phase: types.PodRunning})
		s.cluster.Block("eve-kube-app/a", true)
		s.start("n1", func(a *agent) { a.configure(device("n4"), "n1", "n2", "n4") })
		s.after(time.Minute)
		s.removed()
	})
}

// obstinate uncordons n3 as soon as it is cordoned, as its own agent does that
// has not been told yet that it is the tie-breaker.
type obstinate struct{ *kubetest.Cluster }

func (o obstinate) Cordon(ctx context.Context, node string, cordon types.Cordon) error {
	time.AfterFunc(100*time.Millisecond, func() { _ = o.Uncordon(context.WithoutCancel(ctx), node) })
	return o.Cluster.Cordon(ctx, node, cordon)
}

func TestTwoAgentsThatWereToldOfDifferentTieBreakersDoNotFight(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Publish("n3", node("n3", unstamped))
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
