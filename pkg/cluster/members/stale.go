package members

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func (t configured) isTie(n types.Node) bool {
	id, err := uuid.Parse(n.UUID)
	return err == nil && t.tie != uuid.Nil && id == t.tie
}

// same reports that the controller says the same of the members.
func (t configured) same(other configured) bool {
	return t.cluster == other.cluster && t.tie == other.tie && t.device == other.device && sameSet(t.masters, other.masters)
}

func (t configured) names(n types.Node) bool {
	id, err := uuid.Parse(n.UUID)
	return err == nil && slices.Contains(t.masters, id)
}

// server reports that a Node is one of the control plane.
func server(n types.Node) bool { return n.ControlPlane || n.Master || n.Etcd }

// rules is what a removal is judged by, beside the Nodes.
type rules struct {
	configured configured
	past       past
	interval   time.Duration // between two times that zedagent asks the controller
}

// stale lists the control-plane Nodes whose devices are no masters. A Node that
// does not say which device it is may be anyone's, and is left alone; so is
// every Node while the list is empty, which is no opinion.
func stale(nodes []types.Node, t configured) []types.Node {
	if len(t.masters) == 0 {
		return nil
	}
	var out []types.Node
	for _, n := range nodes {
		id, err := uuid.Parse(n.UUID)
		if err == nil && server(n) && id != t.device && !t.names(n) {
			out = append(out, n)
		}
	}
	return out
}

// notRemovable says why the stale node n is not to be removed now, "" for it is. It is
// asked again, of Nodes that were just read, under the repair lease.
func (r rules) notRemovable(n types.Node, nodes []types.Node) string {
	switch {
	case !slices.Contains(r.configured.masters, r.configured.device):
		return "the controller does not name this node as a master"
	case r.configured.isTie(n):
		return "the controller does not name node " + n.Name + " as a master, but as the tie-breaker"
	case n.Ready == types.ConditionTrue && !n.Foreign():
		return "node " + n.Name + " is Ready and runs zedkube, which drains it before it leaves"
	case !r.past.wasNamed(n):
		return "the controller has never named node " + n.Name + " as a master, as far as this node knows: it may be about to join; " + command(n)
	case !r.past.answered(n, r.interval):
		return fmt.Sprintf("the controller must omit node %s for %d configuration intervals first", n.Name, intervals)
	}
	if why := r.differentlyConfigured(nodes, onMasters); why != "" {
		return why
	}
	if lack := types.LacksQuorum(nodes, n.Name); lack != "" {
		return "without node " + n.Name + " " + lack
	}
	if goesDown(n) && !r.past.long(n) {
		return "node " + n.Name + " is being drained or rebooted: waiting for it for " + patience.String() + " at most; " + command(n)
	}
	return ""
}

// goesDown reports that a drain or a reboot is under way on n. EVE's zedkube
// cordons without saying what for.
func goesDown(n types.Node) bool {
	return n.CordonedBy != nil || n.Unschedulable && n.MaybeForeign() || n.DrainInProgress == types.ConditionTrue || n.Drained == types.ConditionTrue
}

// command is what an operator who knows more than zedkube can do.
func command(n types.Node) string {
	return "if it is gone for good: zedkube members remove " + n.Name
}

// subject is something that all members are told alike.
type subject int

const (
	onMasters subject = iota
	onTie
)

func (s subject) String() string {
	if s == onTie {
		return "tie-breaker"
	}
	return "masters"
}

// agrees reports that a stamp says the same on s as t.
func (t configured) agrees(stamp types.AgentStamp, s subject) bool {
	if s == onTie {
		return stamp.Cluster == t.cluster && stamp.TieBreaker == t.tie
	}
	return stamp.Cluster == t.cluster && sameSet(stamp.Masters, t.masters)
}

// differentlyConfigured says which node of the cluster was given something else on s, ""
// for none. Each says so in its own stamp (docs/wire.md, "Nodes"). A server that
// is Ready has to; the stamp of one that is not Ready, and that of a worker, counts
// while it is current.
func (r rules) differentlyConfigured(nodes []types.Node, s subject) string {
	t := r.configured
	for _, n := range nodes {
		if !r.past.counts(n) {
			continue
		}
		stamp := n.Agent
		if n.Ready == types.ConditionTrue && n.Foreign() {
			stamp = nil // what stands there is of an agent that has ended
		}
		has := stamp != nil && stamp.Cluster == t.cluster && (len(stamp.Masters) > 0 || len(t.masters) == 0)
		_, anybody := uuid.Parse(n.UUID)
		switch {
		case (n.Ready != types.ConditionTrue || !server(n)) && !has:
			// It need not say anything, and what it said last is no list of this cluster.
		case len(t.masters) > 0 && anybody == nil && !t.names(n) && !has:
			// It is no member, or knows that it is none.
		case stamp == nil:
			return fmt.Sprintf("node %s has no zedkube that reports which %s it was configured with", n.Name, s)
		case !t.agrees(*stamp, s):
			return fmt.Sprintf("node %s has not been configured with the same %s", n.Name, s)
		}
	}
	return ""
}

func sameSet(a, b []uuid.UUID) bool {
	for _, id := range a {
		if !slices.Contains(b, id) {
			return false
		}
	}
	for _, id := range b {
		if !slices.Contains(a, id) {
			return false
		}
	}
	return true
}
