package kubeapi

import corev1 "k8s.io/api/core/v1"

// isEdge reports that a Node is one of KubeEdge's: a device that takes pods from
// the cluster and belongs to no EVE device of it, and that may be out of reach for
// days. It is no member. No table and no list of Nodes that leaves this package has
// it, so no rule on members can count it (docs/wire.md, "Nodes").
//
// The label alone does not do: a person may put it on any Node, and a member that
// is missing has to leave. What bears a device's UUID or the role of a server is a
// member whatever else it bears.
func isEdge(n *corev1.Node) bool {
	has := func(label string) bool { _, ok := n.Labels[label]; return ok }
	return has(labelEdge) && !has(labelNodeUUID) && !has(labelControlPlane) && !has(labelMaster) && !has(labelEtcd)
}
