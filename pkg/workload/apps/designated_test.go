package apps

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// fetches says how the last fetch of a node's configuration went.
func (w *world) fetches(node string, how types.ConfigGetStatus) {
	_ = w.agents[node].zedagent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: how})
}

// tell is the controller, which tells one node whether it is the designated one.
func (w *world) tell(node string, designated bool) {
	cfg, _ := w.configs.Get(appID)
	cfg.IsDesignatedNodeID = designated
	w.mine[node] = cfg
	_ = w.agents[node].configs.Publish(appID, cfg)
}

func (w *world) affinity() types.SetAffinity {
	set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
	return set.Affinity
}

func (w *world) designationsNow(node string) types.AppRepairStatus {
	s, _ := w.agents[node].repairs.Get(appID)
	return s
}

// ofOwnConfigs gives every node a configuration of its own; n2 is designated.
func (w *world) ofOwnConfigs() {
	cfg, _ := w.configs.Get(appID)
	w.mine = map[string]types.AppInstanceConfig{"n1": cfg, "n2": cfg, "n3": cfg}
	for _, n := range []string{"n1", "n2", "n3"} {
		w.agents[n].stop()
		w.start(n)
	}
	w.tell("n2", true)
	time.Sleep(time.Minute)
}

func TestWhatANodeSaysOfItsApplications(t *testing.T) {
	is := func(count, yields int64) map[string]types.Designation {
		return map[string]types.Designation{appID: {Count: count, Yields: yields}}
	}
	says := func(s *scene, node string, count, yields int64) {
		s.node(node, func(n *types.Node) { n.Designated = &types.Designations{Apps: is(count, yields)} })
	}
	rows := map[string]struct {
		change func(*scene)
		want   map[string]types.Designation
	}{
		"it is told for the first time":            {func(s *scene) {}, is(1, 0)},
		"it was told by a saved configuration":     {func(s *scene) { s.reached = false }, nil},
		"it has said so before":                    {func(s *scene) { says(s, "n1", 7, 0) }, is(7, 0)},
		"and does not reach the controller":        {func(s *scene) { says(s, "n1", 7, 0); s.reached = false }, is(7, 0)},
		"another node was told earlier":            {func(s *scene) { says(s, "n2", 7, 0) }, is(8, 0)},
		"another node has accepted a higher count": {func(s *scene) { says(s, "n2", 7, 9) }, is(10, 0)},
		"another node was told later":              {func(s *scene) { says(s, "n1", 7, 0); says(s, "n2", 9, 0) }, is(7, 9)},
		"another node was told at the same time":   {func(s *scene) { says(s, "n1", 7, 0); says(s, "n2", 7, 0) }, is(7, 0)},
		"the node that was told later is lost": {func(s *scene) {
			says(s, "n1", 7, 9)
			says(s, "n2", 9, 0)
			s.node("n2", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		}, is(7, 0)},
		"the node that was told later has no zedkube": {func(s *scene) {
			says(s, "n1", 7, 9)
			says(s, "n2", 9, 0)
			s.node("n2", func(n *types.Node) { n.Agent = nil })
		}, is(7, 0)},
		"another node says what cannot be":        {func(s *scene) { says(s, "n2", 1<<62, -1) }, is(1, 0)},
		"it is not the designated one any more":   {func(s *scene) { says(s, "n1", 7, 0); s.cfg.IsDesignatedNodeID = false }, nil},
		"the application is not configured":       {func(s *scene) { says(s, "n1", 7, 0); s.late = func() { s.configs = nil } }, nil},
		"the configuration is not yet read whole": {func(s *scene) { says(s, "n1", 7, 0); s.late = func() { s.configs, s.settled = nil, false } }, is(7, 0)},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			s := newScene()
			s.cfg.IsDesignatedNodeID = true
			s.node("n1", func(n *types.Node) { n.Designated = nil })
			r.change(s)
			s.follow()
			if s.late != nil {
				s.late()
			}
			if got := s.designations(); !maps.Equal(got.Apps, r.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTwoDesignatedNodesDoNotFight(t *testing.T) {
	inWorld(t, func(w *world) {
		w.ofOwnConfigs()
		w.fetches("n2", types.ConfigGetFail) // it keeps what it was told
		time.Sleep(10 * time.Minute)
		w.tell("n1", true)
		w.until("the affinity names n1", time.Minute, func() bool { return w.affinity().Node == "n1" })
		time.Sleep(24 * time.Hour)
		if n := w.calls("affinity"); n != 1 {
			t.Errorf("in a day the affinity was changed %d times", n)
		}
		if s := w.designationsNow("n2"); !strings.Contains(s.Reason, "Two nodes are designated: n1, n2") {
			t.Errorf("n2 says %s %s: %s", s.Phase, s.Act, s.Reason)
		}
		events := len(w.kube.Events())
		if events > 4 {
			t.Errorf("%d Events", events)
		}
		w.fetches("n2", types.ConfigGetSuccess)
		time.Sleep(time.Hour)
		if n := w.calls("affinity"); n != 1 || w.affinity().Node != "n1" {
			t.Errorf("with its controller back n2 changed the affinity: %d times, to %s", n, w.affinity().Node)
		}
		w.tell("n2", false)
		w.tell("n1", false)
		w.tell("n2", true)
		w.until("it is moved back by configuration", 11*time.Minute, func() bool { return w.affinity().Node == "n2" })
	})
}

func TestAnAgentThatRestartsDoesNotTakeWhatItWasToldLongAgoForNew(t *testing.T) {
	inWorld(t, func(w *world) {
		w.ofOwnConfigs()
		w.fetches("n2", types.ConfigGetFail)
		w.tell("n1", true)
		w.until("the affinity names n1", time.Minute, func() bool { return w.affinity().Node == "n1" })
		for range 5 {
			w.agents["n2"].stop()
			w.start("n2")
			w.tell("n2", true)
			w.fetches("n2", types.ConfigGetReadSaved)
			time.Sleep(20 * time.Minute)
			w.fetches("n2", types.ConfigGetSuccess) // and the controller still says so
			time.Sleep(20 * time.Minute)
		}
		if n := w.calls("affinity"); n != 1 || w.affinity().Node != "n1" {
			t.Errorf("the affinity was changed %d times, to %s", n, w.affinity().Node)
		}
	})
}

// After a boot zedagent's table is whole and empty until it has a configuration.
func TestANodeThatBootsKeepsWhatItWasToldBefore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.ofOwnConfigs()
		w.tell("n1", true) // n2 is not told: its controller does not answer
		w.fetches("n2", types.ConfigGetFail)
		w.until("the affinity names n1", time.Minute, func() bool { return w.affinity().Node == "n1" })
		w.agents["n2"].stop()
		w.fetches("n2", types.ConfigGetUnset)
		mine := w.mine["n2"]
		w.mine["n2"] = types.AppInstanceConfig{}
		w.start("n2")
		time.Sleep(time.Hour)
		w.fetches("n2", types.ConfigGetSuccess) // it tells so before it parses
		time.Sleep(time.Minute)
		_ = w.agents["n2"].configs.Publish(appID, mine)
		time.Sleep(time.Hour)
		if n := w.calls("affinity"); n != 1 || w.affinity().Node != "n1" {
			t.Errorf("the affinity was changed %d times, to %s", n, w.affinity().Node)
		}
	})
}

func TestANodeThatDoesNotReachTheControllerMovesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.ofOwnConfigs()
		w.tell("n2", false)
		for _, how := range []types.ConfigGetStatus{types.ConfigGetReadSaved, types.ConfigGetFail, types.ConfigGetTemporaryFail, types.ConfigGetUnset} {
			w.fetches("n1", how)
			time.Sleep(5 * time.Minute)
			w.tell("n1", true)
			time.Sleep(30 * time.Minute)
			if n := w.calls("affinity"); n != 0 {
				t.Fatalf("%s: the affinity was changed", how)
			}
			if s := w.designationsNow("n1"); s.Act != types.ActMove || !strings.Contains(s.Reason, "controller") {
				t.Errorf("%s: n1 says %s %s: %s", how, s.Phase, s.Act, s.Reason)
			}
		}
		w.fetches("n1", types.ConfigGetSuccess)
		w.until("the affinity names n1", time.Minute, func() bool { return w.affinity().Node == "n1" })
	})
}

func TestAMoveWaitsForTheFormerDesignatedNodeUnlessItIsLost(t *testing.T) {
	rows := map[string]struct {
		former func(*world) // after n1 was told
		moves  bool
	}{
		"its agent says nothing": {func(*world) {}, false},
		"it is lost":             {func(w *world) { w.kube.Change(func() { w.setReady("n2", types.ConditionUnknown) }) }, true},
		"its stamp has outlived it": {func(w *world) {
			w.kube.Change(func() {
				n, _ := w.nodes.Get("n2")
				n.StampStale = true
				_ = w.nodes.Publish("n2", n)
			})
		}, true},
		"it is deleted": {func(w *world) { w.kube.Change(func() { _ = w.nodes.Unpublish("n2") }) }, true},
		"it has been told": {func(w *world) {
			w.start("n2")
			w.tell("n2", false)
		}, true},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.ofOwnConfigs()
				w.agents["n2"].stop()
				w.agents["n2"].stop = func() {}
				w.tell("n1", true)
				time.Sleep(30 * time.Second)
				if n := w.calls("affinity"); n != 0 {
					t.Error("the affinity was changed before the former node agreed")
				}
				if s := w.designationsNow("n1"); s.Act != types.ActMove || !strings.Contains(s.Reason, "Two nodes are designated: n1, n2") {
					t.Errorf("n1 says %s %s: %s", s.Phase, s.Act, s.Reason)
				}
				r.former(w)
				time.Sleep(20 * time.Minute)
				if moved := w.calls("affinity") == 1; moved != r.moves {
					t.Errorf("moved: %v, n1 says %s", moved, w.designationsNow("n1").Reason)
				}
			})
		})
	}
}

// EVE's zedkube has no stamp and does not say what it was told.
func TestAZedkubeThatChangesTheAffinityBackIsAnsweredEveryTenMinutes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.ofOwnConfigs()
		w.agents["n2"].stop()
		w.agents["n2"].stop = func() {}
		w.kube.Change(func() {
			n, _ := w.nodes.Get("n2")
			n.Agent, n.Designated = nil, nil
			_ = w.nodes.Publish("n2", n)
		})
		w.tell("n1", true)
		designationsNow := 0
		for range 6 * 60 * 6 {
			time.Sleep(10 * time.Second)
			if s := w.designationsNow("n1"); s.Act == types.ActMove && strings.Contains(s.Reason, "Two nodes are designated: n1, n2") {
				designationsNow++
			}
			w.kube.Change(func() {
				set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
				if set.Affinity.Node == "n1" {
					set.Affinity.Node, set.Version = "n2", set.Version+"x"
					_ = w.sets.Publish(set.Key(), set)
				}
			})
		}
		if n := w.calls("affinity"); n < 30 || n > 6*6+1 {
			t.Errorf("in six hours the affinity was changed %d times", n)
		}
		if designationsNow < 6*60*5 {
			t.Errorf("of %d looks at the status %d named both nodes", 6*60*6, designationsNow)
		}
		if !slices.Equal(w.runsOn(), []string{"n2"}) {
			t.Errorf("it runs on %v", w.runsOn())
		}
	})
}
