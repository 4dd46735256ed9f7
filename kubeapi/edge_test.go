package kubeapi

import (
	"slices"
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
	unlabelled := &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.30.7-kubeedge-v1.20.0"}}}
	if !access.IsEdge(unlabelled) {
		t.Error("a node whose kubelet is KubeEdge's, and has no label yet, is taken for a member")
	}
	unlabelled.Labels = map[string]string{access.LabelNodeUUID: "u"}
	if access.IsEdge(unlabelled) {
		t.Error("a member disappears because someone has written a version into its status")
	}
	if access.IsEdge(&corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.34.4+k3s1"}}}) {
		t.Error("a member without labels is taken for an edge node")
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

func TestAnEdgeNodeIsInATableOfItsOwnAlone(t *testing.T) {
	var table, edges pubsub.Table[types.Node]
	var seen pubsub.Table[types.NodeClock]
	rows := nodeRows(&table, &edges, nodes.NewClocks(kubetest.Quiet(), &seen), &nodes.Stamps{})
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
	if all := edges.All(); len(all) != 1 || all["e"].Name != "e" {
		t.Errorf("the table of edge nodes has %v", all)
	}
	plain := edgeNode("e")
	plain.Labels = nil // KubeEdge labels it after it has made it
	if err := rows.Update(plain); err != nil {
		t.Fatal(err)
	}
	if _, there := edges.Get("e"); there {
		t.Error("one that has lost its label stays among the edge nodes")
	}
	if err := rows.Update(edge); err != nil {
		t.Fatal(err)
	}
	if _, there := table.Get("e"); there {
		t.Error("one that was labelled later stays in the table")
	}
	if _, there := edges.Get("e"); !there {
		t.Error("one that was labelled later is not among the edge nodes")
	}
	if err := rows.Delete(edge); err != nil || len(edges.All()) != 0 {
		t.Errorf("after it was deleted there are the edge nodes %v, %v", edges.All(), err)
	}
	if err := rows.Update(edge); err != nil {
		t.Fatal(err)
	}
	if err := rows.Replace([]any{member}, "8"); err != nil || len(edges.All()) != 0 {
		t.Errorf("a list without it leaves the edge nodes %v, %v", edges.All(), err)
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

func TestAnEdgeNodeInWhateverStateChangesNoListOfMembers(t *testing.T) {
	member := func(name string) corev1.Node {
		n := edgeNode(name, access.LabelNodeUUID, types.LabelEtcd, types.LabelControlPlane)
		delete(n.Labels, access.LabelEdge)
		return *n
	}
	members := []corev1.Node{member("a"), member("b"), member("c")}
	want, err := nodes.Joined(members, nil)
	if err != nil || len(want) != 3 {
		t.Fatal(want, err)
	}
	for state, change := range map[string]func(*corev1.Node){
		"Ready":     func(*corev1.Node) {},
		"not Ready": func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"cordoned":  func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"unlabelled": func(n *corev1.Node) {
			n.Labels, n.Status.NodeInfo.KubeletVersion = nil, "v1.30.7-kubeedge-v1.20.0"
		},
	} {
		e := edgeNode("e")
		change(e)
		got, err := nodes.Joined(append([]corev1.Node{*e}, members...), map[string]time.Time{"e": kubetest.At(1).Time})
		if err != nil || !slices.EqualFunc(got, want, types.Node.SameButWitness) {
			t.Errorf("%s: the members are %v, %v", state, got, err)
		}
	}
}
