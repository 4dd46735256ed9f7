package edgemetrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/samples"
	"github.com/zedkube/zedkube/types"
)

const (
	// often is while someone watches, and maxOften for one that does not answer: it must not keep the others waiting.
	often    = 5 * time.Second
	maxOften = 20 * time.Second
	// seldom is while nobody does, one after the other, each turn after the one before: ten a minute, however many
	// there are. Of more than fifty each is asked less often.
	seldom = 5 * time.Minute
	turn   = time.Minute / 10
	// batch is how many a round asks while someone watches.
	batch = 40
)

// Pending is why nothing is known of a node whose turn did not come yet.
const Pending = "not requested yet"

// entry is what is known of an edge node.
type entry struct {
	metrics types.KubeNodeMetrics
	asked   *time.Duration // nil for never
	fails   int            // in a row
}

// facts is everything decide may look at.
type facts struct {
	now     time.Time     // the wall clock, to be shown only
	uptime  time.Duration // what everything is measured with
	leads   bool          // this node reports
	seen    bool          // the API server answers and the tables are complete
	nodes   map[string]types.Node
	looks   map[string]types.MetricsLook
	lookers samples.Lookers
	entries map[string]entry
	began   *time.Duration // the last round, nil for none
	asking  bool           // one is under way
	answers []answer       // of one that has ended
}

// action is everything decide may ask for.
type action struct {
	lookers samples.Lookers
	entries map[string]entry
	ask     []types.Node // those of a new round
	began   time.Duration
	again   time.Duration
}

// decide says whom to ask, and what is known.
func decide(f facts) action {
	a := action{lookers: f.lookers.Now(f.looks, f.uptime), began: f.uptime, again: period}
	watched := a.lookers.Watch(f.uptime)
	a.entries = current(f, watched)
	if f.asking || !f.seen || !f.leads && !watched {
		return a
	}
	a.ask, a.again = due(f, a.entries, watched)
	for _, n := range a.ask {
		e := a.entries[n.Name]
		e.asked = &a.began
		a.entries[n.Name] = e
	}
	return a
}

// current brings what is known up to date: with the answers, and without nodes that are gone.
func current(f facts, watched bool) map[string]entry {
	out := make(map[string]entry, len(f.nodes))
	for name := range f.nodes {
		out[name] = f.entries[name]
	}
	for _, got := range f.answers {
		e, there := out[got.node.Name]
		if !there {
			continue
		}
		if e.fails++; got.err == nil {
			e.fails = 0
		}
		e.metrics = samples.Next(e.metrics, got.node, got.stats, nil, got.err, f.now)
		if e.metrics.Every = seldom; watched {
			e.metrics.Every = often
		}
		out[got.node.Name] = e
	}
	for name, e := range out {
		n := f.nodes[name]
		e.metrics.Node = name
		switch {
		case n.Ready != types.ConditionTrue:
			e.metrics.Stale, e.fails = types.OfflineSince(n), 0
		case e.fails == 0 && e.metrics.At.IsZero():
			e.metrics.Stale = Pending
		case e.fails == 0:
			e.metrics.Stale = ""
		}
		out[name] = e
	}
	return out
}

// due are the nodes to be asked now, those first that were longest ago, and when to look again.
func due(f facts, entries map[string]entry, watched bool) (nodes []types.Node, again time.Duration) {
	most, again := 1, period
	if watched {
		most, again = batch, often
	} else if f.began != nil {
		if wait := *f.began + turn - f.uptime; wait > 0 {
			return nil, wait
		}
	}
	for name, n := range f.nodes {
		e := entries[name]
		wait := time.Duration(0)
		if e.asked != nil {
			wait = *e.asked + pause(watched, e.fails) - f.uptime
		}
		switch {
		case n.Ready != types.ConditionTrue:
		case wait > 0:
			again = min(again, wait)
		default:
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(x, y types.Node) int {
		return cmp.Or(cmp.Compare(at(entries[x.Name]), at(entries[y.Name])), cmp.Compare(x.Name, y.Name))
	})
	return nodes[:min(len(nodes), most)], again
}

// at is when one was asked last, before everything for never.
func at(e entry) time.Duration {
	if e.asked == nil {
		return -1
	}
	return *e.asked
}

// pause is how long after a question the next one is due.
func pause(watched bool, fails int) time.Duration {
	if !watched {
		return seldom
	}
	return min(often<<min(fails, 8), maxOften)
}
