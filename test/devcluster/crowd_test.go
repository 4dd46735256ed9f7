//go:build linux

package devcluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
)

func TestACrowdIsThereAndGrows(t *testing.T) {
	c, err := devcluster.Start(t.Context(), devcluster.Options{Log: t.Output(), Nodes: 1, Crowd: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, want := range []struct{ nodes, pods int }{{0, 3}, {5, 20}, {9, 40}} {
		if err := c.AddCrowd(t.Context(), want.nodes, want.pods); err != nil {
			t.Fatal(err)
		}
		nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != want.nodes+1 {
			t.Fatalf("%d nodes, %v, want %d and one of its own", len(nodes.Items), err, want.nodes)
		}
		for _, n := range nodes.Items {
			if len(n.Spec.Taints) > 0 {
				t.Errorf("%s has the taints %v", n.Name, n.Spec.Taints)
			}
		}
		pods, err := c.Client().CoreV1().Pods(devcluster.AppNamespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != want.pods {
			t.Fatalf("%d pods, %v, want %d", len(pods.Items), err, want.pods)
		}
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodRunning || p.Spec.NodeName == "" {
				t.Errorf("pod %s is %s on %q", p.Name, p.Status.Phase, p.Spec.NodeName)
			}
		}
	}
}
