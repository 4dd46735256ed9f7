package kubeapi

import (
	"context"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

// stampsTick is how often the age of stamps is looked at.
const stampsTick = 30 * time.Second

// stamps knows for how long the stamp on each Node has not changed, as far as
// that could be seen from here: time during which the table of nodes is not whole
// does not count, nor does time during which this process did not run. No wall
// clock is asked, and none of another device.
type stamps struct {
	mu      sync.Mutex
	counted time.Duration // how long the table of nodes has been whole
	nodes   map[string]stampSeen
}

// stampSeen is the stamp that a Node has, and since when.
type stampSeen struct {
	uid     string
	given   time.Time
	renewed time.Time
	written time.Time
	since   time.Duration // of stamps.counted
}

// same reports whether two are one stamp. An agent that does not know
// AgentStamp.Renewed is told by the other two.
func (s stampSeen) same(other stampSeen) bool {
	return s.uid == other.uid && s.given.Equal(other.given) && s.renewed.Equal(other.renewed) && s.written.Equal(other.written)
}

func seenOf(n types.Node) stampSeen {
	return stampSeen{uid: n.UID, given: n.Agent.Given, renewed: n.Agent.Renewed, written: n.StampedAt}
}

// sees takes in a row that the watch brings and reports whether its stamp is
// stale. It is called with the lock held.
func (s *stamps) sees(n types.Node) (stale bool) {
	if n.Agent == nil {
		delete(s.nodes, n.Name)
		return false
	}
	is := seenOf(n)
	was, known := s.nodes[n.Name]
	if !known || !was.same(is) {
		is.since = s.counted
		if s.nodes == nil {
			s.nodes = map[string]stampSeen{}
		}
		s.nodes[n.Name], was = is, is
	}
	return s.counted-was.since >= types.StampFresh
}

// stale reports whether the stamp of a row that was listed is stale. A list may
// be newer than the watch: a stamp that the watch has not shown is not.
func (s *stamps) stale(n types.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.Agent == nil {
		return false
	}
	was, known := s.nodes[n.Name]
	return known && was.same(seenOf(n)) && s.counted-was.since >= types.StampFresh
}

// stampsAge makes stamps older until ctx is done.
func (r *run) stampsAge(ctx context.Context) {
	tick := time.NewTicker(stampsTick)
	defer tick.Stop()
	last, whole := r.Uptime(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, is := r.Uptime(), r.status.whole(viewNodes)
		passed := min(now-last, 2*stampsTick) // a process that was stopped has seen nothing meanwhile
		if !is || !whole {
			passed = 0
		}
		last, whole = now, is
		if err := r.stamps.age(passed, r.Nodes); err != nil {
			r.Log.WithError(err).Error("publish that the stamp of a node is stale")
		}
	}
}

// age makes all stamps older, and publishes the rows of those that turn stale.
func (s *stamps) age(by time.Duration, nodes Writer[types.Node]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted += by
	for name, seen := range s.nodes {
		if s.counted-seen.since < types.StampFresh {
			continue
		}
		if n, ok := nodes.Get(name); ok && n.Agent != nil && !n.StampStale {
			n.StampStale = true
			if err := nodes.Publish(name, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// stamped is the table of nodes, whose rows say whether their stamps are stale.
type stamped struct {
	Writer[types.Node]
	stamps *stamps
}

// Publish implements Writer.
func (t stamped) Publish(node string, n types.Node) error {
	t.stamps.mu.Lock()
	defer t.stamps.mu.Unlock()
	n.StampStale = t.stamps.sees(n)
	return t.Writer.Publish(node, n)
}

// Replace implements atOnce.
func (t stamped) Replace(rows map[string]types.Node) error {
	t.stamps.mu.Lock()
	defer t.stamps.mu.Unlock()
	for node := range t.stamps.nodes {
		if _, ok := rows[node]; !ok {
			delete(t.stamps.nodes, node)
		}
	}
	for node, n := range rows {
		n.StampStale = t.stamps.sees(n)
		rows[node] = n
	}
	return replace(t.Writer, rows)
}

// Unpublish implements Writer.
func (t stamped) Unpublish(node string) error {
	t.stamps.mu.Lock()
	defer t.stamps.mu.Unlock()
	delete(t.stamps.nodes, node)
	return t.Writer.Unpublish(node)
}
