package clustermetrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// every is how often a node is asked, maxEvery how often one that fails.
	every    = time.Minute
	maxEvery = 5 * time.Minute
	// batch is how many nodes a round asks, and firstBatch as long as none has
	// answered; once no kubelet of a round has, one is tried.
	batch      = 64
	firstBatch = 4
	// maxAge is how old what was measured of an application may be. In the largest cluster
	// each node is asked more often.
	maxAge = 10 * time.Minute
	// maxText bounds what is published of an error.
	maxText = 200
)

// entry is what is known of a node.
type entry struct {
	metrics types.ClusterNodeMetrics // without Cores and Total
	apps    []app
	tried   bool
	asked   time.Duration // when it was due last
	fails   int           // in a row
}

// well reports that the node answered when it was asked last.
func (e entry) well() bool { return e.fails == 0 && !e.metrics.At.IsZero() }

// facts is everything decide may look at.
type facts struct {
	now     time.Time     // that of the times of what was measured
	uptime  time.Duration // what everything else is measured with
	leads   bool
	seen    bool // the API server answers and the tables are complete
	nodes   map[string]types.Node
	own     string                // "" for unknown
	metrics types.KubeNodeMetrics // of the own node; zero for none
	apps    []app                 // of the own node
	entries map[string]entry      // of the others
	began   time.Duration         // the last round
	dry     int                   // rounds in a row since any kubelet answered
	told    time.Duration         // when something was published last, 0 for nothing is
	asking  bool                  // a round is under way
	ended   bool                  // one has ended, with these answers
	answers []answer
}

// action is everything decide may ask for.
type action struct {
	withdraw bool
	cancel   bool
	entries  map[string]entry
	dry      int
	ask      []string // the nodes of a new round
	began    time.Duration
	publish  *types.KubeClusterMetrics
	again    time.Duration
}

// decide says whom to ask, and what is known.
func decide(f facts) action {
	if !f.leads {
		return action{withdraw: true, cancel: f.asking, again: every}
	}
	a := action{dry: f.dry, began: f.uptime, again: every}
	a.entries = current(f)
	switch {
	case slices.ContainsFunc(slices.Collect(maps.Values(a.entries)), entry.well):
		a.dry = 0
	case len(f.answers) > 0:
		a.dry++
	}
	if !f.asking && f.seen {
		a.ask, a.again = round(f, a)
		for _, name := range a.ask {
			e := a.entries[name]
			e.tried, e.asked = true, f.uptime
			a.entries[name] = e
		}
	}
	// Thousands of entries are not encoded again for every round.
	if f.told == 0 || f.uptime-f.told >= every || f.ended && len(f.nodes) <= batch {
		v := value(f, a.entries)
		a.publish = &v
	}
	return a
}

// current brings what is known up to date: with the answers, and without nodes
// that are gone.
func current(f facts) map[string]entry {
	out := make(map[string]entry, len(f.nodes))
	for name := range f.nodes {
		if name == f.own {
			continue
		}
		e := f.entries[name]
		e.metrics.Name = name
		out[name] = e
	}
	for _, got := range f.answers {
		e, ok := out[got.metrics.Name]
		if !ok {
			continue
		}
		if got.err != nil {
			e.fails++
			e.metrics.Stale = short(got.err.Error())
		} else {
			e.fails, e.apps, e.metrics = 0, got.apps, got.metrics
		}
		out[got.metrics.Name] = e
	}
	return out
}

// round is who is asked now, and when to look again. Where no kubelet of the
// cluster answers, they are tried one at a time, and seldom.
func round(f facts, a action) (nodes []string, again time.Duration) {
	size := batch
	switch {
	case a.dry > 0:
		size = 1
		if wait := f.began + pause(a.dry) - f.uptime; wait > 0 {
			return nil, wait
		}
	case !slices.ContainsFunc(slices.Collect(maps.Values(a.entries)), entry.well):
		size = firstBatch
	}
	again = every
	for name, e := range a.entries {
		wait := e.asked + pause(e.fails) - f.uptime
		switch {
		case f.nodes[name].Ready != types.ConditionTrue:
		case e.tried && wait > 0:
			again = min(again, wait)
		default:
			nodes = append(nodes, name)
		}
	}
	slices.SortFunc(nodes, func(x, y string) int {
		return cmp.Or(cmp.Compare(a.entries[x].asked, a.entries[y].asked), cmp.Compare(x, y))
	})
	return nodes[:min(len(nodes), size)], again
}

// pause is how long after a question the next one is due.
func pause(fails int) time.Duration {
	return min(every<<min(max(fails-1, 0), 8), maxEvery)
}

// short is a text that may be of any length.
func short(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxText)], "") }
