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

// stampSeen is the stamp that a Node has, since when, and whether it was seen to
// change.
type stampSeen struct {
	uid     string
	stamped bool
	given   time.Time
	renewed time.Time
	written time.Time

	boot      string
	since     time.Duration // of stamps.counted
	confirmed bool          // it changed while the boot ID stayed
}

// same reports whether two are one stamp. An agent that does not know
// AgentStamp.Renewed is told by the other two.
func (s stampSeen) same(other stampSeen) bool {
	return s.uid == other.uid && s.stamped == other.stamped &&
		s.given.Equal(other.given) && s.renewed.Equal(other.renewed) && s.written.Equal(other.written)
}

func seenOf(n types.Node) stampSeen {
	s := stampSeen{uid: n.UID, boot: n.BootID}
	if n.Agent != nil {
		s.stamped, s.given, s.renewed, s.written = true, n.Agent.Given, n.Agent.Renewed, n.StampedAt
	}
	return s
}

// next is what is known once the row n is seen. An agent runs in the boot in which
// its stamp was seen to change: another image cannot have been started since. Where
// stamp and boot have changed between two looks, which came first is not known.
func (s *stamps) next(n types.Node) stampSeen {
	is := seenOf(n)
	was, known := s.nodes[n.Name]
	boots := known && was.uid == is.uid && was.boot == is.boot
	switch {
	case known && was.same(is):
		is.since, is.confirmed = was.since, was.confirmed && boots
	default:
		is.since, is.confirmed = s.counted, boots && is.stamped
	}
	return is
}

// judged is the row n with what seen says of its stamp.
func (s *stamps) judged(n types.Node, seen stampSeen) types.Node {
	n.StampStale = seen.stamped && s.counted-seen.since >= types.StampFresh
	n.StampUnconfirmed = seen.stamped && !seen.confirmed
	return n
}

// sees takes in a row that the watch brings, and returns it with what is known of
// its stamp. It is called with the lock held.
func (s *stamps) sees(n types.Node) types.Node {
	seen := s.next(n)
	if s.nodes == nil {
		s.nodes = map[string]stampSeen{}
	}
	s.nodes[n.Name] = seen
	return s.judged(n, seen)
}

// listed returns a row that was listed with what is known of its stamp. A list may
// be newer than the watch: a stamp that the watch has not shown is not stale.
func (s *stamps) listed(n types.Node) types.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judged(n, s.next(n))
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

// stamped is the table of nodes, whose rows say what is known of their stamps.
type stamped struct {
	Writer[types.Node]
	stamps *stamps
}

// Publish implements Writer.
func (t stamped) Publish(node string, n types.Node) error {
	t.stamps.mu.Lock()
	defer t.stamps.mu.Unlock()
	return t.Writer.Publish(node, t.stamps.sees(n))
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
		rows[node] = t.stamps.sees(n)
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
