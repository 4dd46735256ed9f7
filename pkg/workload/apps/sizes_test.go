package apps

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestWhileAllIsWellNothingIsAskedOrWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		time.Sleep(time.Hour)
		for _, verb := range []string{"storage", "nodes", "repair", "runningpods", "event"} {
			if n := w.calls(verb); n > 0 {
				t.Errorf("%s was called %d times in an hour", verb, n)
			}
		}
		if got := w.verbs(); len(got) != 0 {
			t.Errorf("written: %v", got)
		}
	})
}

// second makes n4 vanish as well; n5, without anything of the application, stays.
func (s *scene) second() {
	s.lose()
	s.nodes["n4"] = types.Node{Name: "n4", UID: "uid-n4", Ready: types.ConditionUnknown, Agent: &types.AgentStamp{}}
	s.fresh.renewed["uid-n4"] = renewal{seen: up - time.Minute, still: up}
	for _, name := range []string{"n1", "n3"} {
		w := s.nodes[name].Witness
		w.Sightings = append(slices.Clone(w.Sightings), types.Sighting{Node: "n4", UID: "uid-n4", Silent: 5})
	}
}

func TestClustersOfOtherSizes(t *testing.T) {
	rows := map[string]struct {
		change func(*scene)
		acts   bool
		says   string
	}{
		"two nodes lost at once": {(*scene).second, true, "lost"},
		"two lost, the whole replica is on the other one": {func(s *scene) {
			s.second()
			s.storage().Replicas[1].Node = "n4"
		}, false, "no healthy replica"},
		"two lost, one of them not seen by a witness": {func(s *scene) {
			s.second()
			s.nodes["n3"].Witness.Sightings = s.nodes["n3"].Witness.Sightings[1:]
		}, false, "n3 does not know"},
		"all others are lost": {func(s *scene) {
			s.lose()
			s.node("n3", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		}, false, "only node"},
		"a cluster of two": {func(s *scene) {
			s.lose()
			delete(s.nodes, "n3")
			s.storage().Replicas[1].Node = "n1"
		}, false, "only node"},
		"a cluster of one": {func(s *scene) {
			delete(s.nodes, "n2")
			delete(s.nodes, "n3")
			s.pods[0].NodeName, s.vmis[0].NodeName = "n1", "n1"
		}, false, "It runs."},
		"a cluster of one whose own Node does not report": {func(s *scene) {
			delete(s.nodes, "n2")
			delete(s.nodes, "n3")
			s.node("n1", func(n *types.Node) { n.Ready = types.ConditionUnknown })
			s.pods[0].NodeName, s.vmis[0].NodeName = "n1", "n1"
		}, false, "o Ready node"},
		"a node with EVE's own zedkube has no say": {func(s *scene) {
			s.lose()
			s.node("n3", func(n *types.Node) { n.Agent, n.Witness = nil, nil })
		}, false, "nly node n1 knows"},
		"a node whose stamp has outlived its agent has none either": {func(s *scene) {
			s.lose()
			s.node("n3", func(n *types.Node) { n.StampStale, n.Witness = true, nil })
		}, false, "nly node n1 knows"},
		"a node whose agent has gone keeps its say": {func(s *scene) {
			s.lose()
			s.node("n3", func(n *types.Node) { n.Witness = nil })
		}, false, "n3 does not publish"},
		"no node has an agent that can tell": {func(s *scene) {
			s.lose()
			s.node("n1", func(n *types.Node) { n.Agent = nil })
			s.node("n3", func(n *types.Node) { n.Agent = nil })
		}, false, "o Ready node knows"},
		"the Node of the same name is another one's by now": {func(s *scene) {
			s.lose()
			for _, name := range []string{"n1", "n3"} {
				s.nodes[name].Witness.Sightings[0].UID = "uid-before"
			}
		}, false, "does not know"},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			s := newScene()
			r.change(s)
			if v := s.follow().judged(); (v.target != nil) != r.acts || !strings.Contains(v.reason, r.says) {
				t.Errorf("acts %v: %s", v.target != nil, v.reason)
			}
		})
	}
}
