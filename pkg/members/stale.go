package members

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func (t told) isTie(n types.Node) bool {
	id, err := uuid.Parse(n.UUID)
	return err == nil && t.tie != uuid.Nil && id == t.tie
}

// same reports that the controller says the same of the members.
func (t told) same(other told) bool {
	return t.cluster == other.cluster && t.tie == other.tie && t.device == other.device && sameSet(t.masters, other.masters)
}

func (t told) names(n types.Node) bool {
	id, err := uuid.Parse(n.UUID)
	return err == nil && slices.Contains(t.masters, id)
}

// server reports that a Node is one of the control plane.
func server(n types.Node) bool { return n.ControlPlane || n.Master || n.Etcd }

// stale lists the control-plane Nodes whose devices are no masters. A Node that
// does not say which device it is may be anybody's, and is left alone; so is
// every Node while the list is empty, which is no opinion.
func stale(nodes []types.Node, t told) []types.Node {
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

// unfit says why the stale node n is not to be removed now, "" for it is. It is
// asked again, of Nodes read afresh, under the right to repair.
func unfit(n types.Node, nodes []types.Node, t told) string {
	if !slices.Contains(t.masters, t.device) {
		return "the controller does not name this node as a master"
	}
	if t.isTie(n) {
		return "the controller does not name node " + n.Name + " as a master, but as the tie-breaker"
	}
	if n.Ready == types.ConditionTrue && n.Agent != nil {
		return "node " + n.Name + " is Ready and runs a zedkube, which drains it before it leaves"
	}
	if why := disagreement(nodes, t); why != "" {
		return why
	}
	if lack := types.LacksQuorum(nodes, n.Name); lack != "" {
		return "without node " + n.Name + " " + lack
	}
	return ""
}

// disagreement says which Ready member has not been told of the same masters,
// "" for none. Each says so in its own stamp (docs/wire.md, "Nodes").
func disagreement(nodes []types.Node, t told) string {
	for _, n := range nodes {
		if n.Ready != types.ConditionTrue || !server(n) {
			continue
		}
		stamp := n.Agent
		has := stamp != nil && len(stamp.Masters) > 0
		_, anybody := uuid.Parse(n.UUID)
		switch {
		case anybody == nil && !t.names(n) && (!has || stamp.Cluster != t.cluster):
			// It is no member, or knows that it is none.
		case stamp == nil:
			return fmt.Sprintf("node %s has no zedkube that says of which masters it was told", n.Name)
		case !has || stamp.Cluster != t.cluster || !sameSet(stamp.Masters, t.masters):
			return fmt.Sprintf("node %s has not been told of the same masters", n.Name)
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
