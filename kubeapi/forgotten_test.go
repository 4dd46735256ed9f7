package kubeapi

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/types"
)

// othersWrite has twelve field managers update the node, more than are remembered.
func othersWrite(t *testing.T, kube *fake.Clientset, round string) {
	t.Helper()
	for i := range 12 {
		time.Sleep(time.Minute)
		who := fmt.Sprintf("%s-%d", round, i)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/%s":"x"}}}`, who)
		_, err := kube.CoreV1().Nodes().Patch(t.Context(), "n1", ktypes.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: who})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The same on a real API server is in devcluster_managers_test.go.
func TestACordonIsWhoseItWasAfterManyOthersHaveWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, kube := withFake(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "5"}})
		see := func() *corev1.Node {
			n, err := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(c.Cordon(t.Context(), "n1", types.Cordon{Reason: "update"}))
		othersWrite(t, kube, "a")
		if nodes.NodeOf(see()).CordonedBy == nil {
			t.Errorf("ours is a stranger's: %+v", see().ManagedFields)
		}
		must(c.Uncordon(t.Context(), "n1"))
		if n := see(); n.Spec.Unschedulable || n.Annotations[nodes.CordonAnnotation] != "" {
			t.Errorf("after uncordon: unschedulable %v, %q", n.Spec.Unschedulable, n.Annotations[nodes.CordonAnnotation])
		}

		must(c.Cordon(t.Context(), "n1", types.Cordon{Reason: "again"}))
		for _, patch := range []string{`{"spec":{"unschedulable":null}}`, `{"spec":{"unschedulable":true}}`} { // what kubectl sends
			time.Sleep(time.Minute)
			_, err := kube.CoreV1().Nodes().Patch(t.Context(), "n1", ktypes.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"})
			must(err)
		}
		othersWrite(t, kube, "b")
		if by := nodes.NodeOf(see()).CordonedBy; by != nil {
			t.Errorf("a stranger's is %+v", by)
		}
		must(c.Uncordon(t.Context(), "n1"))
		if n := see(); !n.Spec.Unschedulable || n.Annotations[nodes.CordonAnnotation] == "" {
			t.Errorf("a stranger's became unschedulable %v, %q", n.Spec.Unschedulable, n.Annotations[nodes.CordonAnnotation])
		}
	})
}
