package k3supdate

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestWhoeverWaitsForANodeWhoseAgentHangsSaysSoWithinAMinute(t *testing.T) {
	const hangs = "its agent has written nothing for 40s or longer"
	play(t, "n1 n2 n3", func(s *site) {
		s.pass(time.Minute)
		s.agents[0].stuck = true // its k3s goes on, and the node is Ready
		s.wants(patch, false)
		s.agents[0].releases(patch)
		s.pass(5 * time.Minute)
		if a := s.agents[0].is(); a.Phase != types.LifecycleChanges || s.cluster.Lock().Holder != "n1" {
			t.Fatalf("n1: %+v", a)
		}
		said := func(i int, name string) string { return reasonOf(s.agents[i].is().Preconditions, name) }
		for range 20 {
			s.pass(10 * time.Second)
			if why := said(1, "Lock") + said(2, "Turn"); strings.Contains(why, hangs) {
				t.Fatalf("while it works: %s", why)
			}
		}
		s.agents[0].stop()
		s.pass(time.Minute)
		for i := 1; i < 3; i++ {
			if why := said(i, "Lock"); !strings.Contains(why, "Node n1 has the drain lock and changes k3s to "+patch) || !strings.Contains(why, hangs) {
				t.Errorf("%s waits for %q", s.agents[i].name, why)
			}
			if why := said(i, "Turn"); why != "Node n1 changes before this one; "+hangs+": it hangs, or does not reach the API server." {
				t.Errorf("%s waits for %q", s.agents[i].name, why)
			}
		}
		s.agents[1].stop()
		s.agents[1].start() // it has heard of nobody yet
		s.pass(10 * time.Second)
		if why := said(1, "Lock"); strings.Contains(why, hangs) {
			t.Errorf("a new agent says %q", why)
		}
		s.pass(50 * time.Second)
		if why := said(1, "Lock"); !strings.Contains(why, hangs) {
			t.Errorf("a minute later it says %q", why)
		}
		s.agents[0].start()
		s.pass(30 * time.Second)
		if why := said(1, "Lock"); strings.Contains(why, hangs) {
			t.Errorf("it goes on, and n2 waits for %q", why)
		}
	})
}

func TestAnAgentRenewsItsStampOnlyWhileOthersWaitForIt(t *testing.T) {
	f := ready()
	stamp := types.K3sStamp{Wanted: patch, Renewed: f.now.Add(-time.Hour)}
	f.node(0, func(n *types.Node) { n.K3s = &stamp })
	if a := decide(f); a.stamp == nil || !a.stamp.Renewed.IsZero() { // of work that has ended
		t.Errorf("it waits, and writes %+v", a.stamp)
	}
	stamp.Renewed = time.Time{}
	if a := decide(f); a.stamp != nil {
		t.Errorf("it goes on waiting, and writes %+v", a.stamp)
	}
	f.checked.lock = types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3sChange}
	f.nodes[1].Ready = types.ConditionUnknown // so that it gives the lock back
	if a := decide(f); a.stamp == nil || !a.stamp.Renewed.Equal(f.now) {
		t.Errorf("it has the lock, and writes %+v", a.stamp)
	}
	stamp.Renewed = f.now.Add(-renewEvery + time.Second)
	if a := decide(f); a.stamp != nil {
		t.Errorf("soon after it writes %+v", a.stamp)
	}
	stamp.Renewed = f.now.Add(time.Hour) // the clock was set
	if a := decide(f); a.stamp == nil || !a.stamp.Renewed.Equal(f.now) {
		t.Errorf("by another clock it writes %+v", a.stamp)
	}
}

func TestAHolderIsNotOffByWhatWitnessesSaidBeforeTheAPIServerWasSilent(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		for _, a := range s.agents {
			a.stop()
		}
		c := s.agents[0].component()
		s.cluster.ChangeNode("n2", func(n *types.Node) { n.UID, n.Ready = "u2", types.ConditionUnknown })
		for step, row := range []struct {
			round int64
			fault kubetest.Fault
			off   bool
		}{{1, kubetest.None, false}, {2, kubetest.None, true}, {3, kubetest.Refused, false}, {3, kubetest.None, false}} { // the first word may be old, too
			for _, witness := range []string{"n1", "n3"} {
				s.cluster.ChangeNode(witness, func(n *types.Node) {
					n.Agent = &types.AgentStamp{}
					n.Witness = &types.Witness{Round: row.round, Sightings: []types.Sighting{{Node: "n2", UID: "u2", Silent: 9}}}
				})
			}
			s.cluster.SetFault(row.fault)
			if f := c.look(); f.off["n2"] != row.off || f.known != (row.fault == kubetest.None) {
				t.Errorf("step %d: off is %v, known: %v", step, f.off, f.known)
			}
			time.Sleep(5 * time.Second)
		}
	})
}
