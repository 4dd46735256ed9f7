//go:build linux

package kubeapi_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// manyWrite has more field managers write on the node than the API server keeps:
// it merges the oldest of those who update into "ancient-changes". Their times are
// whole seconds, and of two of the same second either may be the older one.
func manyWrite(t *testing.T, c *devcluster.Cluster, node, round string) {
	t.Helper()
	time.Sleep(1100 * time.Millisecond)
	for i := range 12 {
		writer := fmt.Sprintf("%s-%02d", round, i)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/%s":"x"}}}`, writer)
		_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), node, ktypes.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: writer})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// nodeNow is the Node as the API server has it.
func nodeNow(t *testing.T, c *devcluster.Cluster, node string) *corev1.Node {
	t.Helper()
	n, err := c.Client().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// forgottenWriters is about cordons whose writer the API server has forgotten.
func forgottenWriters(t *testing.T, c *devcluster.Cluster, a *agent, node string) {
	const note = "zedkube.github.io/cordon"
	kubectl := func(verb string) {
		t.Helper()
		if out, err := c.Kubectl(t.Context(), verb, node); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := a.Cordon(t.Context(), node, types.Cordon{Reason: "update", Since: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	manyWrite(t, c, node, "first")
	forgotten := false
	for _, m := range nodeNow(t, c, node).ManagedFields {
		forgotten = forgotten || m.Manager == "ancient-changes"
	}
	if !forgotten {
		t.Fatal("the API server has forgotten nobody: this test shows nothing")
	}
	row(t, a, node, "the cordon is still ours", func(n types.Node) bool { return n.CordonedBy != nil && n.CordonedBy.Reason == "update" })
	if err := a.Uncordon(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if n := nodeNow(t, c, node); n.Spec.Unschedulable || n.Annotations[note] != "" {
		t.Errorf("after uncordon unschedulable is %v with %q", n.Spec.Unschedulable, n.Annotations[note])
	}

	// Somebody undoes ours and makes a cordon that is forgotten as well: it is theirs.
	if err := a.Cordon(t.Context(), node, types.Cordon{Reason: "again", Since: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	manyWrite(t, c, node, "second")
	kubectl("uncordon")
	kubectl("cordon")
	manyWrite(t, c, node, "third")
	row(t, a, node, "the cordon is theirs", func(n types.Node) bool { return n.Unschedulable && n.CordonedBy == nil })
	if err := a.Uncordon(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if n := nodeNow(t, c, node); !n.Spec.Unschedulable || n.Annotations[note] == "" {
		t.Errorf("a foreign cordon became unschedulable %v with %q", n.Spec.Unschedulable, n.Annotations[note])
	}
	kubectl("uncordon")
	if err := a.Uncordon(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if n := nodeNow(t, c, node); n.Annotations[note] != "" {
		t.Errorf("without a cordon the note stands: %q", n.Annotations[note])
	}
}

// earlierCordons are those that a former release wrote with a merge patch.
func earlierCordons(t *testing.T, c *devcluster.Cluster, a *agent, node string) {
	patch := `{"metadata":{"annotations":{"zedkube.github.io/cordon":"{\"by\":\"zedkube\",\"reason\":\"earlier\",\"since\":\"2026-01-02T03:04:05Z\"}"}},"spec":{"unschedulable":true}}`
	_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), node, ktypes.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "zedkube-drain"})
	if err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "it is ours", func(n types.Node) bool { return n.CordonedBy != nil && n.CordonedBy.Reason == "earlier" })
	if err := a.Cordon(t.Context(), node, types.Cordon{Reason: "taken over", Since: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	manyWrite(t, c, node, "fourth")
	row(t, a, node, "it is still ours", func(n types.Node) bool { return n.CordonedBy != nil && n.CordonedBy.Reason == "taken over" })
	if err := a.Uncordon(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if n := nodeNow(t, c, node); n.Spec.Unschedulable {
		t.Error("it was not undone")
	}
}

// noNodeIsMade: to apply what does not exist creates it, which a cordon that comes
// late must not.
func noNodeIsMade(t *testing.T, c *devcluster.Cluster, _ *agent, _ string) {
	text := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"removed","uid":"0c7d6b1e-5e0f-4a8c-9f5d-2c1d5a8e7b10","resourceVersion":"5"},"spec":{"unschedulable":true}}`
	_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), "removed", ktypes.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "zedkube-drain", Force: new(true)})
	if !apierrors.IsConflict(err) {
		t.Errorf("to apply a Node with the uid of one that is gone brings %v", err)
	}
}
