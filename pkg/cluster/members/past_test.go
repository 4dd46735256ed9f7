package members

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAStampCountsForADayAfterItWasLastSeenToChange(t *testing.T) {
	f := scene()
	f.nodes[1] = node("n2", down)
	p := past{}.next(f)
	counts := func(after time.Duration) bool {
		f.uptime += after
		p = p.next(f)
		return p.counts(f.nodes[1])
	}
	if !counts(0) || !counts(patience-time.Second) || counts(time.Second) {
		t.Error("it does not count for a day from the start")
	}
	f.nodes[1].StampedAt = time.Now()
	if !counts(0) || !counts(patience-time.Second) || counts(time.Second) {
		t.Error("it does not count for a day after a change")
	}
	f.nodes[1].Ready = types.ConditionTrue
	if !counts(patience) {
		t.Error("that of a Ready node does not count")
	}
}

func TestWhatIsNotSeenIsNotForgotten(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", func(a *agent) { a.every(time.Hour) })
		s.after(time.Minute)
		since := s.says(a).Stale[0].Since
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
		gone, _ := s.nodes.Get("n3")
		_ = s.nodes.Unpublish("n3")
		s.after(time.Minute)
		_ = s.nodes.Publish("n3", gone)
		_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
		s.after(time.Minute)
		if again := s.says(a).Stale[0].Since; !again.Equal(since) {
			s.Errorf("stale since %s, and after a silence since %s", since, again)
		}
	})
}

// fickle is a cluster whose watch is behind: n2 has been told of another
// tie-breaker meanwhile.
type fickle struct{ *kubetest.Cluster }

func (f fickle) FreshNodes(ctx context.Context) ([]types.Node, error) {
	nodes, err := f.Cluster.FreshNodes(ctx)
	for i := range nodes {
		if nodes[i].Name == "n2" {
			tied("n1")(&nodes[i])
		}
	}
	return nodes, err
}

func TestTheTieBreakerIsCordonedOnlyIfAFreshLookSaysSoToo(t *testing.T) {
	play(t, func(s *stage) {
		s.tie("n3")
		s.start("n1", func(a *agent) { a.kube = fickle{s.cluster}; a.configure(device("n3"), "n1", "n2", "n3") })
		s.after(time.Minute)
		if n, _ := s.nodes.Get("n3"); n.Unschedulable {
			s.Error("it is cordoned although a member was told otherwise")
		}
	})
}

// The device is cut off from everything for longer than five intervals: neither
// the API server nor the controller answers. Then both do, the controller first.
func TestTimeWithoutTheControllerDoesNotCount(t *testing.T) {
	play(t, func(s *stage) {
		s.three()
		for _, n := range []string{"n1", "n2"} {
			s.agents[n].every(time.Hour)
		}
		s.after(time.Minute)
		s.cluster.ChangeNode("n3", down)
		s.lists("n1", "n2")
		s.after(time.Minute)
		if !s.there("n3") {
			s.Fatal("at once")
		}
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
		for _, n := range []string{"n1", "n2"} {
			_ = s.agents[n].zedagent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetFail})
		}
		s.after(6 * time.Hour)
		// the first fetch after the cut, then the API
		for _, n := range []string{"n1", "n2"} {
			_ = s.agents[n].zedagent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess})
		}
		s.after(time.Second)
		_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
		s.after(5 * time.Minute)
		if !s.there("n3") {
			s.Error("removed five minutes after the cut, with one fetch since the list that lacks it")
		}
	})
}

func TestTimeInWhichTheListNamesTheNodeDoesNotCount(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", func(a *agent) { a.every(10 * time.Second) })
		s.began = true
		s.after(10 * time.Second)
		s.cluster.SetFault(kubetest.Refused) // so that the nodes are not seen meanwhile
		s.after(5 * time.Second)
		a.configure(uuid.Nil, "n1", "n2", "n3", "n4")
		s.after(50 * time.Second)
		a.configure(uuid.Nil, "n1", "n2", "n4")
		s.after(2 * time.Second)
		s.cluster.SetFault(kubetest.None)
		s.after(intervals*10*time.Second - 3*time.Second)
		if len(s.cluster.Calls("setlock")) > 0 {
			s.Error("it was to be removed too early")
		}
		s.after(30 * time.Second)
		s.removed()
	})
}

func TestTimeWithoutStepsDoesNotCount(t *testing.T) {
	f := scene()
	p := past{}.next(f)
	for range 3 {
		f.uptime += period
		p = p.next(f)
	}
	asked := p.stale["uid-n3"].asked
	f.uptime += time.Hour // the device slept
	p = p.next(f)
	if now := p.stale["uid-n3"].asked; asked != f.uptime-time.Hour-3*period || now != f.uptime {
		t.Errorf("the controller has been reached since %s, and after an hour without a step since %s; it is %s", asked, now, f.uptime)
	}
}

func TestThePastOfAClusterThatThisDeviceHasLeftIsForgotten(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		s.after(0)
		before, _ := a.journal.Get(types.Global)
		if before.Cluster != cluster || len(before.Named) == 0 {
			t.Fatalf("the journal is %+v", before)
		}
		for _, m := range []types.Membership{"", types.MembershipNever} {
			_ = a.membership.Publish(types.Global, types.ClusterMembership{State: m})
			s.after(time.Hour)
			if j, _ := a.journal.Get(types.Global); !slices.Equal(j.Named, before.Named) {
				t.Errorf("while it is %q the journal is %+v", m, j)
			}
		}
		_ = a.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		s.after(time.Minute)
		if j, ok := a.journal.Get(types.Global); ok {
			t.Errorf("it has left, and the journal is %+v", j)
		}
		a.stop()
		s.start("n1")
		s.after(time.Minute)
		if j, ok := a.journal.Get(types.Global); ok {
			t.Errorf("after a restart the journal is %+v", j)
		}
		a.configure(uuid.Nil, "n1", "n2")
		s.after(time.Minute)
		if j, _ := a.journal.Get(types.Global); j.Cluster != cluster || slices.Contains(j.Named, device("n5")) {
			t.Errorf("as a member again it remembers %+v", j)
		}
	})
}
