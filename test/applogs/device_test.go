//go:build linux

package applogs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bootNode switches a device on, with its node.
func (s *stage) bootNode(t *testing.T, i int) {
	t.Helper()
	if err := s.Cluster.HealNode(i); err != nil {
		t.Fatal(err)
	}
	s.Boot(t, i)
	s.claims.agent(i, true)
}

// kill takes a device's power, with all that runs there.
func (s *stage) kill(t *testing.T, i int) {
	t.Helper()
	s.killAgent(i)
	if err := s.Cluster.KillHost(i); err != nil {
		t.Fatal(err)
	}
	s.Fleet.Members[i].PowerOff()
}

func (s *stage) cut(t *testing.T, i int) {
	t.Helper()
	if err := s.Cluster.CutNode(i); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) heal(t *testing.T, i int) {
	t.Helper()
	if err := s.Cluster.HealNode(i); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) killAgent(i int) {
	s.claims.agent(i, false)
	s.Fleet.Members[i].KillProgram()
	s.books[i].killed()
}

func (s *stage) startAgent(t *testing.T, i int) {
	t.Helper()
	if err := s.Fleet.Members[i].StartProgram(); err != nil {
		t.Error(err)
		return
	}
	s.claims.agent(i, true)
}

// node is a device's Node; nil while nobody tells.
func (s *stage) node(t *testing.T, i int) *corev1.Node {
	node, err := s.Cluster.Client().CoreV1().Nodes().Get(t.Context(), s.Name(i), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return node
}

func readiness(node *corev1.Node) corev1.NodeCondition {
	if node != nil {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c
			}
		}
	}
	return corev1.NodeCondition{}
}

func isFenced(node *corev1.Node) bool {
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			return true
		}
	}
	return false
}
