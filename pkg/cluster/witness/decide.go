package witness

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// every is from the beginning of a look to that of the next, so that three of
	// them take no longer than a node Lease takes to be old.
	every = 5 * time.Second
	// slowly is the same where settled looks in a row, ten minutes, brought the
	// same: a node that is off for weeks must not wear the disks of the others out.
	// It is soon enough for types.WitnessFresh.
	slowly  = 12 * time.Second
	settled = 120
	// settledLarge is the same, a minute, where only some of the nodes are witnesses:
	// all agents of a large cluster receive what each of them publishes.
	settledLarge = 12
	// interrupted is how old a look may be for its result, and for the next one to
	// follow it: a process that stood still has not seen what happened in between.
	interrupted = 30 * time.Second
	// confirmed is how many looks of a node that is no witness have to bring an
	// answer before it is published: the witnesses' own comes sooner where they have it.
	confirmed = 2
)

// facts is everything decide may look at.
type facts struct {
	uptime time.Duration // what everything is measured with

	seen     bool         // the API server answers, the tables are complete, and this device's Node is among them
	own      types.Node   // this device's
	others   []types.Node // all but it, in any order
	ports    []int
	large    bool            // only some nodes are witnesses
	spare    bool            // other nodes are the witnesses: this one tells only of answers that they do not have
	answered map[string]bool // UIDs of lost nodes of which another one has just published an answer

	round      int64             // the last one
	streaks    map[string]streak // by the node's UID
	looking    bool              // a look is under way
	result     []dial            // of a look that has ended since the last step; nil for none
	publishing bool              // something is on its way to the API server
	last       time.Duration     // when the last look began
	next       time.Duration     // no look before
	pause      time.Duration     // no removal before
	unreliable string            // what was published last
}

// streak is how long in a row looks have brought the same of a node.
type streak struct {
	node  string
	alive bool
	looks int
}

// action is everything decide may ask for.
type action struct {
	cancel     bool              // the look under way has lost its reason
	look       []dial            // nil for none
	interval   time.Duration     // after it
	tell       *types.Witness    // a zero one is removed; nil: nothing is to be written
	streaks    map[string]streak // to be remembered
	unreliable string            // why it cannot tell all it should, "" if it can
	again      time.Duration
}

// decide says whom to look at, and what to tell, from facts alone.
func decide(f facts) action {
	if f.uptime-f.last > interrupted {
		f.streaks, f.result = nil, nil
	}
	lost := notReady(f.others)
	switch {
	case !f.seen: // who is Ready is not known, nor can anything be told
		return action{cancel: f.looking, unreliable: f.unreliable}
	case len(lost) == 0:
		tell, again := removal(f)
		return action{cancel: f.looking, tell: tell, again: again}
	}
	a := action{streaks: f.streaks, unreliable: f.unreliable}
	if f.result != nil {
		a = judge(f, lost)
	}
	plan := toLost(f, lost)
	switch {
	case f.looking:
	case len(plan) == 0:
		a.unreliable = "no NotReady node has an address to dial"
		a.tell, a.again = removal(f)
	case f.uptime < f.next:
		a.again = f.next - f.uptime
	default:
		a.look, a.interval = append(plan, toControls(f)...), interval(f, a.streaks, plan)
	}
	return a
}

// notReady are the nodes to look at, the most urgent first: those whose kubelets
// do not report, and of these the ones that were lost last, since what ran on
// the others has been taken care of.
func notReady(nodes []types.Node) []types.Node {
	var lost []types.Node
	for _, n := range nodes {
		if n.Ready != types.ConditionTrue {
			lost = append(lost, n)
		}
	}
	rank := func(n types.Node) int {
		if n.Ready == types.ConditionUnknown {
			return 0
		}
		return 1
	}
	slices.SortFunc(lost, func(a, b types.Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.ReadySince.Compare(a.ReadySince), cmp.Compare(a.Name, b.Name))
	})
	return lost
}

// interval is until the next look.
func interval(f facts, streaks map[string]streak, plan []dial) time.Duration {
	enough := settled
	switch {
	case f.spare:
		enough = types.WitnessSilent
	case f.large:
		enough = settledLarge
	}
	for _, d := range plan {
		if streaks[d.uid].looks < enough {
			return every
		}
	}
	return slowly
}

// removal takes back what was told, if anything was.
func removal(f facts) (tell *types.Witness, again time.Duration) {
	switch {
	case f.own.Witness == nil || f.publishing:
		return nil, 0
	case f.uptime < f.pause: // it is removed, and that is not seen yet; or it could not be
		return nil, f.pause - f.uptime
	}
	return &types.Witness{}, 0
}

// judge makes of a look what is to be told. Where no other Ready node answers
// either, it may be this device's own network that is down: then nothing is
// told, and the looks before no longer count.
func judge(f facts, lost []types.Node) action {
	a := action{streaks: map[string]streak{}}
	if !controlled(f.result) {
		a.unreliable = "no other Ready node answers this one: its own network may be down"
		a.tell, a.again = removal(f)
		return a
	}
	w := types.Witness{Round: f.round + 1}
	for _, n := range lost {
		reply, what := heard(f.result, n.UID)
		if reply == untried {
			w.Omitted++
			a.unreliable = cmp.Or(a.unreliable, omitted(f, n, what))
			continue
		}
		s := streak{node: n.Name, alive: reply == answer, looks: 1}
		if old := f.streaks[n.UID]; old.alive == s.alive {
			s.looks += old.looks
		}
		a.streaks[n.UID] = s
		if f.spare && (!s.alive || s.looks < confirmed || f.answered[n.UID]) {
			continue
		}
		sighting := types.Sighting{Node: n.Name, UID: n.UID}
		if s.alive {
			sighting.Alive = what
		} else {
			sighting.Silent = s.looks
		}
		w.Sightings = append(w.Sightings, sighting)
	}
	switch {
	case len(w.Sightings) == 0:
		a.tell, a.again = removal(f)
	case !f.publishing:
		a.tell = &w
	}
	return a
}

// omitted says why the node n, which is not Ready, is not told of.
func omitted(f facts, n types.Node, why string) string {
	switch {
	case why != "":
		return fmt.Sprintf("there is no route to node %s: %s", n.Name, why)
	case !reachable(n, f.own):
		return fmt.Sprintf("node %s has no address to dial", n.Name)
	}
	return "too many nodes are NotReady to dial all of them"
}
