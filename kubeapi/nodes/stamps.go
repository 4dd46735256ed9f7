package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Stamp writes the stamp on the node. The API server dates what this field
// manager changes, to the second (types.Node.StampedAt); a stamp that says
// nothing new is not written, nor dated.
func (c *Client) Stamp(ctx context.Context, node string, stamp types.AgentStamp) error {
	text, err := json.Marshal(stamp)
	if err != nil {
		return fmt.Errorf("stamp node %s: %w", node, err)
	}
	return c.annotate(ctx, "stamp", node, asAgent, AgentAnnotation, string(text))
}

// ForgetStamp takes the stamp off the node, and what its agent said of other nodes, of
// applications and of k3s, where the stamp is still the one of the row; else its error wraps
// types.ErrConflict.
func (c *Client) ForgetStamp(ctx context.Context, node types.Node) error {
	return c.patchNode(ctx, "forget stamp of", node.Name, asAgent, func(n *corev1.Node) (access.Values, error) {
		row := NodeOf(n)
		switch {
		case row.Agent == nil:
			return nil, nil
		case node.Agent == nil || !seenOf(row).same(seenOf(node)):
			return nil, fmt.Errorf("its agent has written it again: %w", types.ErrConflict)
		}
		return access.AnnotationsPatch(access.Values{AgentAnnotation: nil, WitnessAnnotation: nil, DesignatedAnnotation: nil, K3sAnnotation: nil}), nil
	})
}

// StampsTick is how often the age of stamps is looked at.
const StampsTick = 30 * time.Second

// Stamps knows for how long the stamp on each Node has not changed, as far as
// that could be seen from here: time during which the table of nodes is not whole
// does not count, nor does time during which this process did not run. No wall
// clock is asked, and none of another device.
type Stamps struct {
	mu      sync.Mutex
	Counted time.Duration // how long the table of nodes was complete
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
func (s *Stamps) next(n types.Node) stampSeen {
	is := seenOf(n)
	was, known := s.nodes[n.Name]
	boots := known && was.uid == is.uid && was.boot == is.boot
	switch {
	case known && was.same(is):
		is.since, is.confirmed = was.since, was.confirmed && boots
	default:
		is.since, is.confirmed = s.Counted, boots && is.stamped
	}
	return is
}

// judged is the row n with what seen says of its stamp.
func (s *Stamps) judged(n types.Node, seen stampSeen) types.Node {
	n.StampStale = seen.stamped && s.Counted-seen.since >= types.StampFresh
	n.StampUnconfirmed = seen.stamped && !seen.confirmed
	return n
}

// Sees takes in a row that the watch brings, and returns it with what is known of
// its stamp. It is called with the lock held.
func (s *Stamps) Sees(n types.Node) types.Node {
	seen := s.next(n)
	if s.nodes == nil {
		s.nodes = map[string]stampSeen{}
	}
	s.nodes[n.Name] = seen
	return s.judged(n, seen)
}

// Listed returns a row that was listed with what is known of its stamp. A list may
// be newer than the watch: a stamp that the watch has not shown is not stale.
func (s *Stamps) Listed(n types.Node) types.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judged(n, s.next(n))
}

// Age makes all stamps older, and publishes the rows of those that turn stale.
func (s *Stamps) Age(by time.Duration, nodes access.Writer[types.Node]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Counted += by
	for name, seen := range s.nodes {
		if s.Counted-seen.since < types.StampFresh {
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

// Table is the table of nodes, whose rows say what is known of their stamps, and with
// which their clocks are forgotten.
type Table struct {
	access.Writer[types.Node]
	Clocks *Clocks
	Stamps *Stamps
}

// Publish implements Writer.
func (t Table) Publish(node string, n types.Node) error {
	t.Stamps.mu.Lock()
	defer t.Stamps.mu.Unlock()
	return t.Writer.Publish(node, t.Stamps.Sees(n))
}

// Replace implements Writer.
func (t Table) Replace(rows map[string]types.Node) error {
	for node := range t.Writer.All() {
		if _, ok := rows[node]; !ok {
			t.Clocks.forget(node)
		}
	}
	t.Stamps.mu.Lock()
	defer t.Stamps.mu.Unlock()
	for node := range t.Stamps.nodes {
		if _, ok := rows[node]; !ok {
			delete(t.Stamps.nodes, node)
		}
	}
	for node, n := range rows {
		rows[node] = t.Stamps.Sees(n)
	}
	return t.Writer.Replace(rows)
}

// Unpublish implements Writer.
func (t Table) Unpublish(node string) error {
	t.Clocks.forget(node)
	t.Stamps.mu.Lock()
	defer t.Stamps.mu.Unlock()
	delete(t.Stamps.nodes, node)
	return t.Writer.Unpublish(node)
}

// clockShots is of how many readings of a node's clock the best one counts. A
// reading that comes late makes the clock look slow, never fast.
const clockShots = 2

// Clocks reads other nodes' clocks off what they write anyway: a kubelet dates
// its heartbeat in the Ready condition, at the latest every five minutes, and the
// watch brings it at once. What a list brings may be as old as it likes.
type Clocks struct {
	log   logrus.FieldLogger
	table access.Writer[types.NodeClock]

	mu     sync.Mutex
	began  time.Time     // of monotonic clock and wall clock
	offset time.Duration // how far the wall clock has been set since
	nodes  map[string]nodeClock
}

type nodeClock struct {
	beat  time.Time       // the last heartbeat, by the node's clock
	ahead []time.Duration // at the last heartbeats
}

// NewClocks returns what keeps a table of the nodes' clocks.
func NewClocks(log logrus.FieldLogger, table access.Writer[types.NodeClock]) *Clocks {
	return &Clocks{log: log, table: table, began: time.Now(), nodes: map[string]nodeClock{}}
}

// Sees is called with each Node that a watch brings.
func (c *Clocks) Sees(n *corev1.Node) {
	beat := heartbeat(n)
	if beat.IsZero() || n.Name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.settle(now)
	last, known := c.nodes[n.Name]
	if last.beat.Equal(beat) {
		return
	}
	last.beat = beat
	if known { // else it may have been written long ago
		ahead := beat.Add(time.Second / 2).Sub(now.Round(0))
		last.ahead = append(last.ahead, ahead)
		last.ahead = last.ahead[max(len(last.ahead)-clockShots, 0):]
		c.tell(n.Name, last.ahead)
	}
	c.nodes[n.Name] = last
}

// settle forgets all when the own wall clock has been set.
func (c *Clocks) settle(now time.Time) {
	offset := now.Round(0).Sub(c.began.Round(0)) - now.Sub(c.began)
	if (offset - c.offset).Abs() < access.ClockStep/5 {
		return
	}
	c.offset, c.nodes = offset, map[string]nodeClock{}
	if err := access.Retain(c.table, nil); err != nil {
		c.log.WithError(err).Error("forget clocks of nodes")
	}
}

func (c *Clocks) tell(node string, ahead []time.Duration) {
	best := slices.Max(ahead).Round(time.Second)
	if was, ok := c.table.Get(node); ok && (best-was.Ahead).Abs() < access.ClockStep {
		return
	}
	if err := c.table.Publish(node, types.NodeClock{Node: node, Ahead: best}); err != nil {
		c.log.WithError(err).WithField("node", node).Error("publish clock of node")
	}
}

// forget is called with the name of a Node that is gone.
func (c *Clocks) forget(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, node)
	if err := c.table.Unpublish(node); err != nil {
		c.log.WithError(err).WithField("node", node).Error("forget clock of node")
	}
}

// heartbeat is when the node's kubelet last wrote its status, zero for unknown.
// The node controller dates its own verdict, Unknown, by another clock.
func heartbeat(n *corev1.Node) time.Time {
	if c := access.ConditionOf(n, corev1.NodeReady); c != nil && c.Status != corev1.ConditionUnknown {
		return c.LastHeartbeatTime.Time
	}
	return time.Time{}
}
