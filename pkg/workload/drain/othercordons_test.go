package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// theirs is a server without a stamp that somebody cordoned so long ago.
func theirs(age time.Duration, change ...func(*types.Node)) types.Node {
	n := types.Node{Name: "n2", Ready: types.ConditionTrue, BootID: "boot-1", ControlPlane: true, Etcd: true, Unschedulable: true, TaintedAt: wall0.Add(-age)}
	for _, c := range change {
		c(&n)
	}
	return n
}

func TestWhichForeignCordonsADrainWaitsFor(t *testing.T) {
	stamped := func(n *types.Node) { n.Agent = &types.AgentStamp{} }
	for name, row := range map[string]struct {
		node     types.Node
		waits    string // part of it
		warnings []string
	}{
		"of a server without a stamp": {theirs(time.Hour), "node n2 is cordoned by somebody else since 2026-08-22 09:00:00Z and may be draining", nil},
		"of one whose stamp is stale": {theirs(time.Hour, stamped, func(n *types.Node) { n.StampStale = true }), "n2", nil},
		"of one whose stamp was not seen to change": {
			theirs(time.Hour, stamped, func(n *types.Node) { n.StampUnconfirmed = true }),
			"may be draining, because it is not known yet whether its agent uses the drain lock: this node waits until its stamp changes, which takes up to 10m0s", nil,
		},
		"of a server by one label alone": {theirs(time.Hour, func(n *types.Node) { n.ControlPlane = false }), "n2", nil},
		"that is not dated":              {theirs(0, func(n *types.Node) { n.TaintedAt = time.Time{} }), "node n2 is cordoned by somebody else and may be", nil},
		"of a clock that is ahead":       {theirs(-time.Hour), "n2", nil},
		"whose writer is known": {theirs(time.Hour, func(n *types.Node) {
			n.Writers = []types.FieldWriter{{Field: types.FieldCordon, Manager: "zedkube"}}
		}), "cordoned by zedkube since", nil},
		"that is older than a drain may take": {theirs(24 * time.Hour), "", []string{"node n2 is cordoned by somebody else since 2026-08-21 10:00:00Z, for more than 24h0m0s: it is not schedulable, and no drain waits for it"}},
		"of a server with a fresh stamp":      {theirs(time.Hour, stamped), "", []string{"node n2 is cordoned by somebody else since 2026-08-22 09:00:00Z: it is not schedulable, and no drain waits for it"}},
		"of a worker":                         {theirs(time.Hour, func(n *types.Node) { n.ControlPlane, n.Etcd = false, false }), "", []string{"node n2 is cordoned by somebody else since 2026-08-22 09:00:00Z: it is not schedulable, and no drain waits for it"}},
		"of the tie-breaker":                  {theirs(time.Hour, func(n *types.Node) { n.TieBreaker = true }), "", nil},
		"of the node itself":                  {theirs(time.Hour, func(n *types.Node) { n.Name = "n1" }), "", nil},
		"that is ours":                        {theirs(time.Hour, stamped, func(n *types.Node) { n.CordonedBy = &types.Cordon{By: "zedkube"} }), "", nil},
		"that is not there":                   {theirs(time.Hour, func(n *types.Node) { n.Unschedulable = false }), "", nil},
	} {
		waits, warnings := sayCordons(cordonedByOthers([]types.Node{row.node}, "n1", wall0), 24*time.Hour)
		if (waits == "") != (row.waits == "") || !strings.Contains(waits, row.waits) {
			t.Errorf("%s: waits %q, want %q", name, waits, row.waits)
		}
		if d := cmp.Diff(row.warnings, warnings); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	two := []types.Node{theirs(time.Hour, func(n *types.Node) { n.Name = "n4" }), theirs(time.Hour)}
	if waits, _ := sayCordons(cordonedByOthers(two, "n1", wall0), 24*time.Hour); !strings.HasPrefix(waits, "node n2") || !strings.Contains(waits, "; node n4") {
		t.Errorf("of two it says %q", waits)
	}
}

func TestOneOfOursThatIsNotSeenYetHoldsADrainUpForTenMinutesAtMost(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.ChangeNode("n2", func(n *types.Node) {
			n.StampUnconfirmed, n.Etcd, n.Unschedulable, n.TaintedAt = true, true, true, time.Now()
		})
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(types.StampEvery)
		s.is(types.DrainStarting, deviceOp)
		s.kube.ChangeNode("n2", func(n *types.Node) { n.StampUnconfirmed = false })
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

// cordonedElsewhere has EVE's zedkube cordon its node, which knows no lock.
func (s *stage) cordonedElsewhere(ago time.Duration) {
	s.kube.ChangeNode("n2", func(n *types.Node) {
		n.Agent, n.Unschedulable, n.TaintedAt = nil, true, time.Now().Add(-ago)
	})
}

func TestADrainWaitsForOneOfAnAgentThatKnowsNoLock(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.cordonedElsewhere(0)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainStarting, deviceOp)
		s.cordoned(false, false)
		if p, _ := s.progress.Get(types.Global); p.Phase != inGates || !strings.Contains(p.Reason, "node n2 is cordoned") || !strings.Contains(p.Lock.Waits, "node n2 is cordoned") {
			t.Errorf("%s: %q, the lock waits for %q", p.Phase, p.Reason, p.Lock.Waits)
		}
		if lock := s.kube.Lock(); lock.Holder != "" {
			t.Errorf("the lock was taken meanwhile: %+v", lock)
		}
		s.kube.ChangeNode("n2", func(n *types.Node) { n.Unschedulable, n.TaintedAt = false, time.Time{} })
		time.Sleep(3 * time.Minute) // EVE's window
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestADrainIsNotCompleteWhileAnotherMayRunWithoutTheLock(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.cordonedElsewhere(0)
		s.kube.Block(appZero, false)
		time.Sleep(10 * time.Minute)
		s.is(types.DrainRetrying, deviceOp)
		if p, _ := s.progress.Get(types.Global); !strings.Contains(p.Reason, "node n2 is cordoned") {
			t.Errorf("it says %q", p.Reason)
		}
		s.kube.ChangeNode("n2", func(n *types.Node) { n.Unschedulable, n.TaintedAt = false, time.Time{} })
		time.Sleep(3 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAForeignCordonHoldsADrainUpForNoLongerThanADrainMayTake(t *testing.T) {
	for name, dated := range map[string]bool{"dated": true, "not dated": false} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.hours(4)
				s.cordonedElsewhere(0)
				if !dated {
					s.kube.ChangeNode("n2", func(n *types.Node) { n.TaintedAt = time.Time{} })
				}
				defer s.run()()
				time.Sleep(3 * time.Hour)
				s.kube.Block(appZero, true)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(50 * time.Minute)
				s.is(types.DrainStarting, deviceOp)
				time.Sleep(20 * time.Minute)
				s.is(types.DrainRetrying, deviceOp)
				if p, _ := s.progress.Get(types.Global); len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "node n2 is cordoned") {
					t.Errorf("warnings are %q", p.Warnings)
				}
				s.kube.Block(appZero, false)
				time.Sleep(5 * time.Minute)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

func TestAPlanNamesForeignCordons(t *testing.T) {
	p := wholeCluster()
	p.Timeout = 24 * time.Hour
	p.Nodes[0].Unschedulable, p.Nodes[0].TaintedAt = true, p.Now.Add(-time.Hour)
	if f := Plan(p); !strings.Contains(f.Lock.Waits, "node c is cordoned") || !strings.Contains(f.Verdict, "node c is cordoned") || f.Warnings != nil {
		t.Errorf("it waits for %q, verdict %q, warnings %q", f.Lock.Waits, f.Verdict, f.Warnings)
	}
	p.Nodes[0].Agent, p.Nodes[0].StampUnconfirmed = &types.AgentStamp{}, true
	if f := Plan(p); !strings.Contains(f.Lock.Waits, "it is not known yet whether its agent uses the drain lock") || f.Warnings != nil {
		t.Errorf("it waits for %q, warnings %q", f.Lock.Waits, f.Warnings)
	}
	p.Nodes[0].StampUnconfirmed = false
	if f := Plan(p); f.Lock.Waits != "" || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "node c is cordoned") || f.Quorum != "" {
		t.Errorf("it waits for %q, warnings %q, quorum %q", f.Lock.Waits, f.Warnings, f.Quorum)
	}
}

// A cordon that is as young as the drain, or came after its beginning, and is
// never undone: the drain must not spend all of its time on it.
func TestADrainAsYoungAsAForeignCordonDoesNotFailWithIt(t *testing.T) {
	for name, row := range map[string]struct {
		before, after func(*stage)
	}{
		"of the same moment":      {func(s *stage) { s.cordonedElsewhere(0) }, func(*stage) {}},
		"of a clock that is fast": {func(s *stage) { s.cordonedElsewhere(-48 * time.Hour) }, func(*stage) {}},
		"that came at the gates":  {func(s *stage) { s.held("n3") }, func(s *stage) { s.cordonedElsewhere(0); s.kube.SetLock(types.DrainLock{}) }},
		"that came after ours":    {func(s *stage) { s.kube.Block(appZero, true) }, func(s *stage) { s.cordonedElsewhere(0); s.kube.Block(appZero, false) }},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.hours(4)
				row.before(s)
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Minute)
				row.after(s)
				time.Sleep(3*time.Hour + 20*time.Minute)
				if v, _ := s.status.Get(types.Global); final(v.Status) {
					t.Errorf("the drain did not wait: %v", v.Status)
				}
				time.Sleep(time.Hour + 10*time.Minute)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}
