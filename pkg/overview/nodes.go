package overview

import "github.com/zedkube/zedkube/types"

// NodesOf are the nodes as the API server has them, by name: for who has asked
// it. own is the name of the node that asks, "" for none.
func NodesOf(nodes []types.Node, own string) []ClusterNode {
	list := make([]ClusterNode, 0, len(nodes))
	for _, n := range nodes {
		list = append(list, ClusterNode{Name: n.Name, Own: n.Name == own})
	}
	return list
}
