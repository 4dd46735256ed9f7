package apps

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zedkube/zedkube/types"
)

// redundant says for which volume there is no proof that its data is whole on a
// node that is ready, other than the lost one; "" for none. Where several
// volumes have been of one claim, each has to be.
func redundant(claims []string, lost string, s types.Storage, nodes []types.Node) string {
	for _, claim := range claims {
		known := false
		for _, v := range s.Volumes {
			if v.Claim != claim {
				continue
			}
			known = true
			if why := unsafe(v, lost, nodes); why != "" {
				return fmt.Sprintf("Its volume %s %s.", claim, why)
			}
		}
		if !known {
			return fmt.Sprintf("The replicas of its volume %s are unknown.", claim)
		}
	}
	return ""
}

// unsafe says why a volume must not be taken from the lost node, "" for nothing.
func unsafe(v types.Volume, lost string, nodes []types.Node) string {
	ready := func(name string) bool {
		return name != lost && slices.ContainsFunc(nodes, func(n types.Node) bool {
			return n.Name == name && n.Ready == types.ConditionTrue && !n.OutOfService
		})
	}
	switch {
	case len(v.Also) > 0:
		return "migrates"
	case v.Running && ready(v.Engine):
		return "" // it is attached elsewhere already
	case v.Robustness == "faulted":
		return "is faulted"
	case !slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return ready(r.Node) && healthyReplica(v, r) }):
		return "has no healthy replica on another Ready node"
	}
	return ""
}

// healthyReplica reports whether a replica has all data: whole when it was last seen, and
// in use by the engine that wrote last, where one is known.
func healthyReplica(v types.Volume, r types.Replica) bool {
	mode := func(r types.Replica) string { return cmp.Or(r.Mode, r.LastMode) }
	known := v.Running || slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return mode(r) != "" })
	return !r.HealthyAt.IsZero() && r.FailedAt.IsZero() && (!known || mode(r) == "RW")
}
