package drain

import (
	"cmp"
	"slices"

	"github.com/zedkube/zedkube/types"
)

// LastHere returns, by name, the volumes that would lose their data with node: it
// has a replica that has held data, and no other node of nodes that is Ready has
// one that is known to be whole. Longhorn's node-drain-policy is for reboots and
// has no say here.
func LastHere(s types.Storage, node string, nodes []types.Node) []types.Volume {
	var last []types.Volume
	ready := readyNodes(nodes)
	for _, v := range s.Volumes {
		if s.Longhorn && needsReplica(v, "", node) && !survives(v, node, ready) {
			last = append(last, v)
		}
	}
	slices.SortFunc(last, func(a, b types.Volume) int { return cmp.Compare(a.Name, b.Name) })
	return last
}
