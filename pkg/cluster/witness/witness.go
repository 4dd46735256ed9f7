// Package witness tells, on this node's Node, whether the devices of nodes that
// are not Ready answer this one: a kubelet that does not report may have died
// with its device, or only have lost its way to the API server (docs/wire.md,
// "Nodes"). So may a device whose Node someone has deleted.
//
//	reads:  EdgeNodeInfo, ClusterMembership, nodes, app pods, virtual machines, the API's health, node Leases every half minute
//	writes: KnownNode, in memory and on disk
//	acts:   connects to nodes that are not Ready and to a few that are; writes what
//	        it found on the own Node
package witness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// period is in case an event was missed; what is due earlier is asked for.
	period = 30 * time.Second
	// wordTimeout is until there is something newer to tell.
	wordTimeout = every
	minBackoff  = 5 * time.Second
	maxBackoff  = time.Minute
	// shownWithin is how long the watch may take to show what was written.
	shownWithin = 30 * time.Second
)

// Kube is what the component asks of the cluster. Each verb ends when its
// context does.
type Kube interface {
	// Witness replaces what the node says of others; a zero one is removed.
	Witness(ctx context.Context, node string, w types.Witness) error
	// NodeLeases lists when the kubelets of all nodes last renewed their Leases, by
	// their own clocks.
	NodeLeases(ctx context.Context) (map[string]time.Time, error)
}

// Component is the witness. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Info       pubsub.Reader[types.EdgeNodeInfo]
	Membership pubsub.Reader[types.ClusterMembership]
	Nodes      pubsub.Reader[types.Node]
	AppPods    pubsub.Reader[types.Pod]
	VMIs       pubsub.Reader[types.VMI]
	API        pubsub.Reader[types.APIStatus]
	Kube       Kube

	// Dial connects from this device; it ends when its context does.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Ports  []int                // those at which a device lets its cluster in: the first is the one where a connection that says nothing is no event
	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Known   pubsub.Writer[types.KnownNode] // by name, in memory
	Journal pubsub.Writer[types.KnownNode] // the same on disk, where renewals are behind

	// What this process remembers. Losing it makes a judgement later, never wrong.
	leases     loop.Call[leases]        // the list under way
	renewed    leases                   // the last list that came
	listed     time.Duration            // uptime when the last list was asked for
	leaseErr   error                    // of the last list
	round      int64                    // the last one; 0 before the first
	unused     map[string]time.Duration // uptime, since when a deleted Node has nothing of an application's
	heard      types.Witnesses          // what the other nodes publish
	streaks    map[string]streak
	last       time.Duration
	next       time.Duration
	unreliable string
	dials      loop.Call[[]dial] // the look under way
	word       loop.Call[error]  // what is on its way to the API server
	published  types.Witness     // it
	pause      time.Duration     // no removal before this uptime
	backoff    time.Duration
	lastErr    error // of the last word
}

// Run steps until ctx is done and returns after what is under way has ended.
func (c *Component) Run(ctx context.Context) {
	c.unused = map[string]time.Duration{}
	defer c.dials.End()
	defer c.word.End()
	defer c.leases.End()
	if err := c.load(); err != nil {
		c.Log.WithError(err).Error("the known nodes could not be read and are forgotten")
	}
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Info, c.Membership, c.Nodes, c.API, &c.dials, &c.word, &c.leases)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	c.collect()
	f := c.look()
	err := c.apply(ctx, f, decide(f))
	membership, _ := c.Membership.Get(types.Global)
	switch left := membership.State == types.MembershipLeft; {
	case f.seen:
		c.askLeases(ctx)
		return errors.Join(c.know(c.Nodes.All(), left), c.leaseErr, err)
	case left:
		return errors.Join(c.know(nil, left), err)
	}
	return err
}

// collect takes in what has become of the word on its way.
func (c *Component) collect() {
	err, ok := c.word.Take()
	if !ok {
		return
	}
	c.lastErr = nil
	switch removed := c.published.Round == 0; {
	case err != nil:
		c.lastErr = fmt.Errorf("publish which nodes answer: %w", err)
		c.backoff = min(max(2*c.backoff, minBackoff), maxBackoff)
		c.pause = c.Uptime() + c.backoff
	case removed:
		c.backoff, c.pause = 0, c.Uptime()+shownWithin
	default:
		c.backoff, c.pause = 0, 0
	}
}

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{
		uptime: c.Uptime(), ports: c.Ports, streaks: c.streaks, last: c.last, next: c.next, pause: c.pause,
		publishing: c.word.Busy(), unreliable: c.unreliable,
	}
	f.result, _ = c.dials.Take()
	f.looking = c.dials.Busy()
	nodes := c.Nodes.All()
	info, _ := c.Info.Get(types.Global)
	own, known := types.OwnNode(nodes, info)
	api, ok := c.API.Get(types.Global)
	f.own, f.seen = own, ok && api.Answers() && api.Synced && known && info.DeviceID != uuid.Nil
	f.others = others(nodes, own, c.missing(nodes))
	c.heard = c.heard.Hear(nodes, f.seen, f.uptime)
	if len(f.others) > 0 {
		f.large, f.spare, f.answered = c.spare(nodes, own, f.others)
	}
	if f.seen && c.round == 0 {
		// No round of a former process comes again, whatever the clock says.
		c.round = time.Now().Unix()
		if own.Witness != nil {
			c.round = max(c.round, own.Witness.Round)
		}
	}
	f.round = c.round
	return f
}

// spare reports whether only some nodes are witnesses, whether this one is none of
// them, and of which of the lost ones somebody who comes before it has just
// published an answer.
func (c *Component) spare(nodes map[string]types.Node, own types.Node, others []types.Node) (large, spare bool, answered map[string]bool) {
	witnesses, limited := types.WitnessNodes(nodes)
	if !limited || slices.Contains(witnesses, own.Name) {
		return limited, false, nil
	}
	before, known, now, uptime := map[string]types.Node{}, map[string]bool{}, time.Now(), c.Uptime()
	seen := c.heard.Seen(now, uptime)
	for name, n := range nodes {
		if n.Witness == nil || n.Foreign() || name >= own.Name && !slices.Contains(witnesses, name) {
			continue
		}
		if uptime-c.heard[name].First > types.WitnessFresh { // also one of unknown age, which others believe for longer
			continue
		}
		before[name] = n
	}
	for _, n := range notReady(others) {
		known[n.UID] = types.Answers(n, before, seen, now) != ""
	}
	return true, true, known
}

// others are the nodes but for the own one, and the missing ones; none where all
// of them are there and Ready, as hundreds may be for weeks.
func others(nodes map[string]types.Node, own types.Node, missing []types.Node) []types.Node {
	lost := len(missing) > 0
	for name, n := range nodes {
		lost = lost || name != own.Name && n.Ready != types.ConditionTrue
	}
	if !lost {
		return nil
	}
	all := make([]types.Node, 0, len(nodes)+len(missing))
	for name, n := range nodes {
		if name != own.Name {
			all = append(all, n)
		}
	}
	return append(all, missing...)
}

func (c *Component) apply(ctx context.Context, f facts, a action) error {
	c.remember(a)
	if a.cancel {
		c.dials.Cancel()
	}
	if a.tell != nil {
		c.published = *a.tell
		if a.tell.Round != 0 {
			c.round = a.tell.Round
		}
		w, node := *a.tell, f.own.Name
		ctx := types.Because(ctx, "", "reachability of a NotReady node published for the other nodes")
		c.word.Begin(ctx, wordTimeout, func(ctx context.Context) error { return c.Kube.Witness(ctx, node, w) })
	}
	if a.look != nil {
		c.last, c.next = f.uptime, f.uptime+a.interval
		c.dials.Begin(ctx, lookTimeout, func(ctx context.Context) []dial { return c.dialAll(ctx, a.look) })
	}
	if !f.seen {
		c.lastErr = nil // the silence is told by others
	}
	if a.again == 0 {
		return c.lastErr
	}
	return errors.Join(c.lastErr, loop.After(a.again))
}

// remember keeps what the looks have brought and logs where that has changed.
func (c *Component) remember(a action) {
	for uid, s := range a.streaks {
		log, old := c.Log.WithField("node", s.node), c.streaks[uid]
		switch {
		case s == old:
		case !s.alive && s.looks == types.WitnessSilent:
			log.Warn("the device of a NotReady node does not answer")
		case s.alive && !old.alive && old.looks >= types.WitnessSilent:
			log.Info("the device of a NotReady node answers again")
		}
	}
	if a.unreliable != c.unreliable && a.unreliable != "" {
		c.Log.Warn("cannot determine which nodes answer: " + a.unreliable)
	}
	c.streaks, c.unreliable = a.streaks, a.unreliable
}
