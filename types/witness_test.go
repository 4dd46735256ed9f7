package types

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

func TestGoneOnlyWhereEveryReadyNodeWithAnAgentHasFoundItSilent(t *testing.T) {
	now := time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC)
	silent := func(n *Node) {
		n.Witness = &Witness{Round: 1, Sightings: []Sighting{{Node: "n9", UID: "u9", Silent: 8}, {Node: "n3", UID: "u3", Silent: WitnessSilent}}}
	}
	seeing := func(s ...Sighting) func(*Node) { return func(n *Node) { n.Witness = &Witness{Round: 1, Sightings: s} } }
	down := func(n *Node) { n.Ready = ConditionUnknown }
	foreign := func(n *Node) { n.Agent, n.Witness = nil, nil }
	outlived := func(n *Node) { n.StampStale, n.Witness = true, nil }
	mute := func(n *Node) { n.Witness = nil }
	type world struct {
		lost  Node
		nodes map[string]Node
		seen  map[string]time.Time
	}
	third := func(w *world) { // a second witness beside n1
		n := w.nodes["n1"]
		n.Name, n.UID = "n4", "u4"
		w.nodes["n4"], w.seen["n4"] = n, w.seen["n1"]
	}
	in := func(node string, changes ...func(*Node)) func(*world) {
		return func(w *world) {
			n := w.nodes[node]
			for _, c := range changes {
				c(&n)
			}
			w.nodes[node] = n
			if node == w.lost.Name {
				w.lost = n
			}
		}
	}
	at := func(node string, ago time.Duration) func(*world) {
		return func(w *world) { w.seen[node] = now.Add(-ago) }
	}
	for name, r := range map[string]struct {
		change func(*world)
		gone   bool
		why    string
	}{
		"all agree":                                              {func(*world) {}, true, "the device of node n3 answers none of [n1 n2]"},
		"the agents of EVE are no witnesses":                     {func(w *world) { in("n2", foreign)(w); third(w) }, true, "the device of node n3 answers none of [n1 n4]"},
		"nor are agents whose stamps have outlived them":         {func(w *world) { in("n2", outlived)(w); third(w) }, true, "the device of node n3 answers none of [n1 n4]"},
		"nor are nodes that are not Ready":                       {func(w *world) { in("n2", down, mute)(w); third(w) }, true, "the device of node n3 answers none of [n1 n4]"},
		"one witness among EVE's agents is too few":              {in("n2", foreign), false, "only node n1 knows whether the device of node n3 answers: another node that runs zedkube must confirm it"},
		"so is one among stamps that have outlived their agents": {in("n2", outlived), false, "only node n1 knows whether the device of node n3 answers: another node that runs zedkube must confirm it"},
		"a stale stamp silences no fresh word": {func(w *world) {
			in("n2", outlived, seeing(Sighting{Node: "n3", UID: "u3", Alive: "a:1"}))(w)
			third(w)
		}, false, "the device of node n3 answers node n2 at a:1"},
		"but an old one": {func(w *world) {
			in("n2", outlived, seeing(Sighting{Node: "n3", UID: "u3", Alive: "a:1"}))(w)
			at("n2", time.Hour)(w)
			third(w)
		}, true, "the device of node n3 answers none of [n1 n4]"},
		"and none that has changed unheard": {func(w *world) {
			in("n2", outlived, seeing(Sighting{Node: "n3", UID: "u3", Alive: "a:1"}))(w)
			w.seen["n2"] = time.Time{}
			third(w)
		}, false, "what node n2 publishes about node n3 is stale"},
		"but the first one that is heard": {func(w *world) {
			in("n2", outlived, seeing(Sighting{Node: "n3", UID: "u3", Alive: "a:1"}))(w)
			delete(w.seen, "n2")
			third(w)
		}, true, "the device of node n3 answers none of [n1 n4]"},
		"silence that has changed unheard":          {func(w *world) { w.seen["n2"] = time.Time{} }, false, "what node n2 publishes about node n3 is stale"},
		"and agrees to nothing":                     {in("n2", func(n *Node) { n.StampStale = true }), false, "only node n1 knows whether the device of node n3 answers: another node that runs zedkube must confirm it"},
		"one alone may be cut off itself":           {in("n2", down, mute), false, "n1 is the only node that is Ready: it may be cut off itself"},
		"a word just fresh enough":                  {at("n2", WitnessFresh), true, "the device of node n3 answers none of [n1 n2]"},
		"the Node itself was deleted":               {func(w *world) { delete(w.nodes, "n3") }, false, "node n3 no longer exists"},
		"it reports":                                {in("n3", func(n *Node) { n.Ready = ConditionTrue }), false, "node n3 still reports"},
		"it says itself that it is not Ready":       {in("n3", func(n *Node) { n.Ready = ConditionFalse }), false, "node n3 still reports"},
		"nothing is known of its kubelet":           {in("n3", func(n *Node) { n.Ready = "" }), false, "node n3 still reports"},
		"it reports again by now":                   {func(w *world) { w.nodes["n3"] = Node{Name: "n3", UID: "u3", Ready: ConditionTrue} }, false, "node n3 still reports"},
		"it is another one by now":                  {func(w *world) { w.nodes["n3"] = Node{Name: "n3", UID: "u4", Ready: ConditionUnknown} }, false, "there is now another node n3"},
		"it cannot be told from a namesake":         {func(w *world) { w.lost.UID = "" }, false, "there is now another node n3"},
		"it answers one":                            {in("n2", seeing(Sighting{Node: "n3", UID: "u3", Alive: "10.0.0.3:10250"})), false, "the device of node n3 answers node n2 at 10.0.0.3:10250"},
		"it answers, and was silent":                {in("n2", seeing(Sighting{Node: "n3", UID: "u3", Alive: "a:1", Silent: 9})), false, "the device of node n3 answers node n2 at a:1"},
		"one has not looked often enough":           {in("n2", seeing(Sighting{Node: "n3", UID: "u3", Silent: 2})), false, "the device of node n3 has not answered node n2 in 2 of 3 probes"},
		"one says both":                             {in("n2", seeing(Sighting{Node: "n3", UID: "u3", Silent: 3}, Sighting{Node: "n3", UID: "u3"})), false, "the device of node n3 has not answered node n2 in 0 of 3 probes"},
		"one says nothing":                          {in("n2", mute), false, "node n2 does not publish whether the device of node n3 answers it"},
		"one says nothing of this one":              {in("n2", seeing(Sighting{Node: "n9", UID: "u9", Silent: 3})), false, "node n2 does not know whether the device of node n3 answers it"},
		"one speaks of a namesake":                  {in("n2", seeing(Sighting{Node: "n3", UID: "u2", Silent: 3})), false, "node n2 does not know whether the device of node n3 answers it"},
		"the word of one is stale":                  {at("n2", WitnessFresh+1), false, "what node n2 publishes about node n3 is stale"},
		"nobody knows how old the word is":          {func(w *world) { delete(w.seen, "n2") }, false, "what node n2 publishes about node n3 is stale"},
		"a word from the future":                    {at("n2", -time.Second), false, "what node n2 publishes about node n3 is stale"},
		"nobody can tell":                           {func(w *world) { in("n1", foreign)(w); in("n2", down)(w) }, false, "no Ready node knows whether the device of node n3 answers"},
		"no nodes at all":                           {func(w *world) { w.nodes = nil }, false, "node n3 no longer exists"},
		"a negative count is no silence":            {in("n2", seeing(Sighting{Node: "n3", UID: "u3", Silent: -1})), false, "the device of node n3 has not answered node n2 in -1 of 3 probes"},
		"an empty word":                             {in("n2", seeing()), false, "node n2 does not know whether the device of node n3 answers it"},
		"one agrees and the first one does not":     {in("n1", mute), false, "node n1 does not publish whether the device of node n3 answers it"},
		"a witness is Ready, but its word is stale": {at("n1", time.Hour), false, "what node n1 publishes about node n3 is stale"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{lost: Node{Name: "n3", UID: "u3", Ready: ConditionUnknown}, nodes: map[string]Node{}, seen: map[string]time.Time{}}
			w.nodes["n3"] = w.lost
			for _, name := range []string{"n1", "n2"} {
				n := Node{Name: name, UID: "u" + name[1:], Ready: ConditionTrue, Agent: &AgentStamp{Version: "1"}}
				silent(&n)
				w.nodes[name], w.seen[name] = n, now.Add(-5*time.Second)
			}
			r.change(&w)
			if gone, why := Gone(w.lost, w.nodes, w.seen, now); gone != r.gone || why != r.why {
				t.Errorf("%v: %s\nwant %v: %s", gone, why, r.gone, r.why)
			}
		})
	}
}

// large is a cluster of so many Ready nodes, the first three of them servers, whose
// witnesses agree that n0 is silent; the others say nothing.
func large(count int, now time.Time) (lost Node, nodes map[string]Node, seen map[string]time.Time) {
	lost = Node{Name: "n0", UID: "u0", Ready: ConditionUnknown}
	nodes, seen = map[string]Node{"n0": lost}, map[string]time.Time{}
	for i := 1; i <= count; i++ {
		name := fmt.Sprintf("n%d", i)
		nodes[name] = Node{Name: name, UID: fmt.Sprintf("u%d", i), Ready: ConditionTrue, ControlPlane: i <= 3, Agent: &AgentStamp{Witnesses: WitnessMost}}
	}
	witnesses, _ := WitnessNodes(nodes)
	for _, name := range witnesses {
		n := nodes[name]
		n.Witness = &Witness{Round: 1, Sightings: []Sighting{{Node: "n0", UID: "u0", Silent: WitnessSilent}}}
		nodes[name], seen[name] = n, now
	}
	return lost, nodes, seen
}

func TestInALargeClusterAFewNodesAreWitnessesServersFirst(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, count := range []int{1, 2, WitnessMost, WitnessMost + 1, 1000} {
		_, nodes, _ := large(count, now)
		names, limited := WitnessNodes(nodes)
		if len(names) != min(count, WitnessMost) || limited != (count > WitnessMost) {
			t.Errorf("of %d nodes %v, limited: %v", count, names, limited)
		}
		for i := 1; i <= min(count, 3); i++ {
			if !slices.Contains(names, fmt.Sprintf("n%d", i)) {
				t.Errorf("of %d nodes %v, without server n%d", count, names, i)
			}
		}
		if again, _ := WitnessNodes(maps.Clone(nodes)); !slices.Equal(slices.Sorted(slices.Values(again)), slices.Sorted(slices.Values(names))) {
			t.Errorf("%v, and then %v", names, again)
		}
		if slices.Contains(names, "n0") {
			t.Error("the lost node is its own witness")
		}
	}
}

func TestWhereOneAgentKnowsNoLimitEveryNodeIsAWitness(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, change := range map[string]func(*Node){
		"of a former release": func(n *Node) { n.Agent = &AgentStamp{Version: "1"} },
		"with another limit":  func(n *Node) { n.Agent = &AgentStamp{Witnesses: WitnessMost + 1} },
	} {
		t.Run(name, func(t *testing.T) {
			lost, nodes, seen := large(30, now)
			n := nodes["n30"]
			change(&n)
			nodes["n30"] = n
			if names, limited := WitnessNodes(nodes); len(names) != 30 || limited {
				t.Errorf("%d witnesses, limited: %v", len(names), limited)
			}
			if gone, why := Gone(lost, nodes, seen, now); gone {
				t.Errorf("gone without the word of the others: %s", why)
			}
			n.StampStale = true // its agent runs no more
			nodes["n30"] = n
			if gone, why := Gone(lost, nodes, seen, now); !gone {
				t.Errorf("not gone, though nobody is left who knows no limit: %s", why)
			}
		})
	}
}

func TestInALargeClusterEnoughWitnessesHaveToAgreeAndNobodyMayDisagree(t *testing.T) {
	now := time.Unix(1e9, 0)
	_, all, _ := large(30, now)
	witnesses, _ := WitnessNodes(all)
	other := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return name == "n0" || slices.Contains(witnesses, name) })[0]
	sees := func(name string, s Sighting) func(map[string]Node, map[string]time.Time) {
		return func(nodes map[string]Node, seen map[string]time.Time) {
			n := nodes[name]
			s.Node, s.UID = "n0", "u0"
			n.Witness = &Witness{Round: 2, Sightings: []Sighting{s}}
			nodes[name] = n
		}
	}
	at := func(name string, ago time.Duration) func(map[string]Node, map[string]time.Time) {
		return func(_ map[string]Node, seen map[string]time.Time) { seen[name] = now.Add(-ago) }
	}
	mute := func(count int) func(map[string]Node, map[string]time.Time) {
		return func(nodes map[string]Node, _ map[string]time.Time) {
			for _, name := range witnesses[:count] {
				n := nodes[name]
				n.Witness = nil
				nodes[name] = n
			}
		}
	}
	outdated := func(nodes map[string]Node, _ map[string]time.Time) {
		n := nodes[other]
		n.StampStale = true
		nodes[other] = n
	}
	changed := func(_ map[string]Node, seen map[string]time.Time) { seen[other] = time.Time{} }
	unready := func(nodes map[string]Node, _ map[string]time.Time) {
		n := nodes[other]
		n.Ready = ConditionUnknown
		nodes[other] = n
	}
	type change = func(map[string]Node, map[string]time.Time)
	for name, r := range map[string]struct {
		changes []change
		gone    bool
	}{
		"all witnesses agree":                                              {nil, true},
		"three of them say nothing":                                        {[]change{mute(WitnessMost - WitnessNeeded)}, true},
		"four of them say nothing":                                         {[]change{mute(WitnessMost - WitnessNeeded + 1)}, false},
		"four of them have looked long ago":                                {[]change{at(witnesses[0], time.Minute), at(witnesses[1], time.Minute), at(witnesses[2], time.Minute), at(witnesses[3], time.Minute)}, false},
		"one of them has looked twice only":                                {[]change{sees(witnesses[9], Sighting{Silent: 2})}, false},
		"it answers one of them":                                           {[]change{sees(witnesses[9], Sighting{Alive: "a:1"})}, false},
		"it answers another node":                                          {[]change{sees(other, Sighting{Alive: "a:1"}), at(other, 0)}, false},
		"it answers another node, which has just begun":                    {[]change{sees(other, Sighting{Alive: "a:1"})}, false},
		"it answered one of them half a minute ago, which hangs now":       {[]change{sees(witnesses[9], Sighting{Alive: "a:1"}), at(witnesses[9], 30*time.Second)}, false},
		"it answered another node half a minute ago":                       {[]change{sees(other, Sighting{Alive: "a:1"}), at(other, 30*time.Second)}, false},
		"it answered another node half a minute ago, which is lost itself": {[]change{sees(other, Sighting{Alive: "a:1"}), at(other, 30*time.Second), unready}, false},
		"it answered another node long ago, which is lost itself":          {[]change{sees(other, Sighting{Alive: "a:1"}), at(other, time.Minute), unready}, true},
		"it answered another node long ago":                                {[]change{sees(other, Sighting{Alive: "a:1"}), at(other, time.Minute)}, true},
		"it answered one whose stamp is stale, nobody knows when":          {[]change{sees(other, Sighting{Alive: "a:1"}), outdated}, true},
		"the same, in a word that has changed since another one":           {[]change{sees(other, Sighting{Alive: "a:1"}), outdated, changed}, false},
		"it answers one whose stamp is stale":                              {[]change{sees(other, Sighting{Alive: "a:1"}), outdated, at(other, 0)}, false},
		"another node has looked twice only":                               {[]change{sees(other, Sighting{Silent: 2}), at(other, 0)}, true},
		"another node agrees, and four witnesses say nothing":              {[]change{sees(other, Sighting{Silent: 9}), at(other, 0), mute(4)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			lost, nodes, seen := large(30, now)
			for _, c := range r.changes {
				c(nodes, seen)
			}
			if gone, why := Gone(lost, nodes, seen, now); gone != r.gone {
				t.Errorf("gone: %v, because %s", gone, why)
			}
		})
	}
}
