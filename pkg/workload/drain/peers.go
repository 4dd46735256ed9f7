package drain

import (
	"context"
	"errors"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// fresh is how recently a node's kubelet has to have renewed its Lease.
	fresh = 20 * time.Second
	// renewsWithin is how long to look for a renewal that no clock bears out: a
	// kubelet renews its Lease every ten seconds.
	renewsWithin = 12 * time.Second
	lookEvery    = 2 * time.Second
	// clocksDiffer is how far two clocks that are in step may differ.
	clocksDiffer = 2 * time.Second
)

// renewal is the last renewal of a node's Lease that was seen.
type renewal struct {
	at     time.Time     // by that node's clock
	after  time.Time     // it came after this, by the boot clock; zero for unknown
	looked time.Time     // by the boot clock
	ahead  time.Duration // how far in the future a renewal was at most, by our clock
}

var errOtherCluster = errors.New("this node is not in the list of nodes: the list is of another cluster, or the Node has just been deleted")

// freshNodes lists the nodes; one whose kubelet has not renewed its Lease
// within fresh is not Ready, whatever its condition says. The clocks of two
// devices need not agree: where they do not bear a renewal out, one is waited
// for, so that it does not matter how long ago the last look was. A list without
// the own node is an error, but for a look that is made because it is missing.
func (c *Component) freshNodes(ctx context.Context, in call) ([]types.Node, error) {
	begin := c.now()
	for {
		nodes, err := c.Kube.FreshNodes(ctx)
		if err != nil {
			return nil, err
		}
		if _, ok := nodeNamed(nodes, in.node.Name); !ok && (in.verb != lookHere || len(nodes) == 0) {
			return nil, errOtherCluster
		}
		// To make up for a lost drain is urgent: its cordon comes after this look.
		if c.doubt(nodes, in) == 0 || in.verb == cordonAfterDeadAPI || c.now().Sub(begin) >= renewsWithin {
			return nodes, nil
		}
		timer := time.NewTimer(lookEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// doubt makes Ready Unknown where no recent renewal bears it out, and counts
// those nodes.
func (c *Component) doubt(nodes []types.Node, in call) (doubted int) {
	now := c.now()
	if c.renewals == nil {
		c.renewals = map[string]renewal{}
	}
	for i := range nodes {
		n := &nodes[i]
		n.TieBreaker = breaksTies(*n, in.tie)
		was := c.renewals[n.Name]
		if !was.at.Equal(n.RenewedAt) {
			was.at, was.after = n.RenewedAt, was.looked
		}
		was.looked, was.ahead = now, max(was.ahead, time.Until(n.RenewedAt))
		c.renewals[n.Name] = was
		if n.Ready == types.ConditionTrue && !c.renewed(n.Name, was, now) {
			n.Ready = types.ConditionUnknown
			doubted++
		}
	}
	return doubted
}

// renewed reports that a node's last renewal is recent: it was seen to come, or
// it is by the clocks. Of a clock that is ahead a renewal looks younger than it
// is, and one that is further ahead than anybody knows proves nothing.
func (c *Component) renewed(node string, r renewal, now time.Time) bool {
	if !r.after.IsZero() && now.Sub(r.after) <= fresh {
		return true
	}
	clock, _ := c.Clocks.Get(node)
	ahead := max(0, clock.Ahead)
	return r.ahead <= ahead+clocksDiffer && time.Since(r.at)+ahead <= fresh
}
