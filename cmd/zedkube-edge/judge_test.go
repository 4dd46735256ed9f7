package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// TestOneRuleForEdgeNodes: the agent and this program, which share no code for it, take the same Nodes for edge nodes.
func TestOneRuleForEdgeNodes(t *testing.T) {
	labels := append(join.MemberLabels(), join.EdgeRole)
	edges := 0
	for _, version := range []string{"v1.34.4+k3s1", "v1.30.7-kubeedge-v1.20.0"} {
		for set := range 1 << len(labels) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{}}}
			n.Status.NodeInfo.KubeletVersion = version
			for i, label := range labels {
				if set>>i&1 == 1 {
					n.Labels[label] = ""
				}
			}
			plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(n)
			if err != nil {
				t.Fatal(err)
			}
			_, _, _, edge := cloud.Edge(map[object.Ref]object.Object{{Kind: object.Node, Name: "n"}: plain}, "n")
			if edge != access.IsEdge(n) {
				t.Errorf("%s with %v: an edge node is %v here, and %v for the agent", version, n.Labels, edge, access.IsEdge(n))
			}
			if edge {
				edges++
			}
		}
	}
	if edges == 0 {
		t.Error("nothing is an edge node")
	}
}
