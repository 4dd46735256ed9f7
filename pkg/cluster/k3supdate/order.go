package k3supdate

import (
	"cmp"
	"slices"

	"github.com/zedkube/zedkube/types"
)

// order is in which order the nodes change, computed alike on every node: first the servers,
// because no kubelet may be newer than an API server. Of these the tie-breaker comes first,
// which has no applications; the leader of etcd comes last, so that it changes once.
func order(nodes []types.Node) []types.Node {
	rank := func(n *types.Node) int {
		switch {
		case !n.IsServer():
			return 4
		case n.K3s != nil && n.K3s.Leader:
			return 3
		case n.K3s != nil && n.K3s.Joined:
			return 2
		case !n.TieBreaker:
			return 1
		}
		return 0
	}
	sorted := make([]*types.Node, len(nodes)) // Nodes are large to move
	for i := range nodes {
		sorted[i] = &nodes[i]
	}
	slices.SortFunc(sorted, func(a, b *types.Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	ordered := make([]types.Node, len(nodes))
	for i, n := range sorted {
		ordered[i] = *n
	}
	return ordered
}

// next is the first node that does not run the version; "" for none.
func next(ordered []types.Node, version string) string {
	for _, n := range ordered {
		if n.KubeletVersion != version {
			return n.Name
		}
	}
	return ""
}

// commits says why own's change to a version cannot be taken back, "" where it can. The
// data of etcd is that of the oldest member; with the last one it becomes that of the new version.
// The kubelet of a worker may be older than its servers.
func commits(own types.Node, nodes []types.Node, to string) string {
	if !own.IsServer() {
		return ""
	}
	for _, n := range nodes {
		if n.Name != own.Name && n.IsServer() && n.KubeletVersion != to {
			return ""
		}
	}
	return "This node is the last server to change: the cluster cannot return to the version before."
}
