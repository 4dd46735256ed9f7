package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/zedkube/zedkube/kubeapi/access"
)

func TestAnEdgeNodeIsNoOtherNodeForAPod(t *testing.T) {
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	kube := fake.NewClientset(node("a", nil), node("b", nil), node("e", map[string]string{"node-role.kubernetes.io/edge": ""}))
	s := clusterSnapshot{node: "a", conn: &access.Connection{Kube: kube}}
	if err := s.seeNodes(t.Context()); err != nil || len(s.nodes) != 1 {
		t.Errorf("a drain counts on %d other nodes, %v", len(s.nodes), err)
	}
}
