package kubeapi

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// edgeNode is a Node that reports, with these labels beside the one of an edge
// node.
func edgeNode(name string, labels ...string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: ktypes.UID("uid-" + name), ResourceVersion: "5", Labels: map[string]string{access.LabelEdge: ""}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, l := range labels {
		n.Labels[l] = "true"
	}
	return n
}

func TestWhichNodeIsOfKubeEdge(t *testing.T) {
	if !access.IsEdge(edgeNode("n1")) || !access.IsEdge(edgeNode("n1", "node-role.kubernetes.io/agent")) {
		t.Error("an edge node is taken for a member")
	}
	if access.IsEdge(&corev1.Node{}) {
		t.Error("a node without labels is taken for an edge node")
	}
	for _, label := range []string{access.LabelNodeUUID, types.LabelControlPlane, types.LabelMaster, types.LabelEtcd} {
		if n := edgeNode("n1", label); access.IsEdge(n) {
			t.Errorf("a member with label %s is taken for an edge node", label)
		}
	}
}

func TestAnEdgeNodeIsInNoTable(t *testing.T) {
	var table pubsub.Table[types.Node]
	var seen pubsub.Table[types.NodeClock]
	rows := nodeRows(&table, nodes.NewClocks(kubetest.Quiet(), &seen), &nodes.Stamps{})
	member, edge := edgeNode("m", access.LabelNodeUUID), edgeNode("e")
	streamed, err := rows.Transformer()(edge)
	if err == nil {
		err = rows.Replace([]any{member, edge, streamed}, "7")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Update(edge); err != nil {
		t.Fatal(err)
	}
	if all := table.All(); len(all) != 1 || all["m"].Name != "m" {
		t.Errorf("the table has %v", all)
	}
	plain := edgeNode("e")
	plain.Labels = nil // KubeEdge labels it after it has made it
	if err := rows.Update(plain); err != nil {
		t.Fatal(err)
	}
	if err := rows.Update(edge); err != nil {
		t.Fatal(err)
	}
	if _, there := table.Get("e"); there {
		t.Error("one that was labelled later stays in the table")
	}
	if err := rows.Delete(edge); err != nil {
		t.Error(err)
	}
}

func TestAnEdgeNodeCountsInNoRule(t *testing.T) {
	server := func(name string, ready corev1.ConditionStatus) corev1.Node {
		n := edgeNode(name, access.LabelNodeUUID, types.LabelEtcd, types.LabelControlPlane)
		delete(n.Labels, access.LabelEdge)
		n.Status.Conditions[0].Status = ready
		return *n
	}
	list := []corev1.Node{server("a", corev1.ConditionTrue), server("b", corev1.ConditionUnknown), *edgeNode("e")}
	list[0].Annotations = map[string]string{
		nodes.AgentAnnotation:   `{"version":"1"}`,
		nodes.WitnessAnnotation: `{"round":1,"sightings":[{"node":"b","uid":"uid-b","alive":"","silent":3}]}`,
	}
	fresh, err := nodes.Joined(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	nodes, now := map[string]types.Node{}, kubetest.At(1).Time
	for _, n := range fresh {
		nodes[n.Name] = n
	}
	if q := types.QuorumOf(fresh); q.Voters != 2 || len(fresh) != 2 {
		t.Errorf("quorum counts %+v of %d nodes", q, len(fresh))
	}
	if c := types.ReachClusterOf(fresh); c.Nodes != 2 {
		t.Errorf("who joins is told of %d nodes", c.Nodes)
	}
	if gone, why := types.Gone(nodes["b"], nodes, map[string]time.Time{"a": now}, now); gone {
		t.Errorf("with an edge node for the second that is Ready a node is called gone: %s", why)
	}
}
