package types

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestANodeIsTheSameButForWhatItSaysOfLostOnes(t *testing.T) {
	says := func(round int64) *Witness { return &Witness{Round: round} }
	stamp := func() *AgentStamp { return &AgentStamp{Version: "1"} }
	for name, c := range map[string]struct {
		was, is Node
		want    bool
	}{
		"nothing has changed":         {Node{Name: "n1", Agent: stamp()}, Node{Name: "n1", Agent: stamp()}, true},
		"it begins to say something":  {Node{Name: "n1"}, Node{Name: "n1", Witness: says(1)}, true},
		"it says something else":      {Node{Name: "n1", Witness: says(1)}, Node{Name: "n1", Witness: says(2)}, true},
		"it has no more to say":       {Node{Name: "n1", Witness: says(1)}, Node{Name: "n1"}, true},
		"and it is no longer Ready":   {Node{Name: "n1", Ready: ConditionTrue, Witness: says(1)}, Node{Name: "n1", Ready: ConditionUnknown, Witness: says(2)}, false},
		"and its stamp turns stale":   {Node{Name: "n1", Witness: says(1)}, Node{Name: "n1", StampStale: true}, false},
		"and a condition has changed": {Node{Name: "n1", Conditions: []NodeCondition{{Type: "DiskPressure"}}}, Node{Name: "n1", Witness: says(1)}, false},
	} {
		if got := c.was.SameButWitness(c.is); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	n := Node{Name: "n1", Witness: says(1)}
	if n.SameButWitness(Node{Name: "n1"}); n.Witness == nil {
		t.Error("it was changed")
	}
}

func TestNodesByNameAreSorted(t *testing.T) {
	got := NodesByName(map[string]Node{"n2": {Name: "n2"}, "n10": {Name: "n10"}, "n1": {Name: "n1"}})
	if d := cmp.Diff([]Node{{Name: "n1"}, {Name: "n10"}, {Name: "n2"}}, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}
