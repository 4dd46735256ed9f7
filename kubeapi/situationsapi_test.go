package kubeapi

import (
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// lists is an API server of lists by path; what it does not know is not found.
type lists map[string]any

const (
	podsPath    = "/api/v1/pods"
	nodesPath   = "/api/v1/nodes"
	volumesPath = "/api/v1/persistentvolumes"
	budgetsPath = "/apis/policy/v1/poddisruptionbudgets"
	vmisPath    = "/apis/kubevirt.io/v1/virtualmachineinstances"
)

func (l lists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch answer := l[r.URL.Path].(type) {
	case nil:
		reply(w, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound))
	case http.HandlerFunc:
		answer(w, r)
	default:
		reply(w, http.StatusOK, answer)
	}
}

// counting counts what is asked for, by path.
type counting struct {
	lists
	mu    sync.Mutex
	asked map[string]int
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked[r.URL.Path]++
	c.mu.Unlock()
	c.lists.ServeHTTP(w, r)
}

// meets is a client of a server of that handler.
func meets(t *testing.T, handler http.Handler) *Client {
	t.Helper()
	c, _ := newTestClient(t)
	s := lively(t.Context())
	conn, err := newConnection(t.Context(), &rest.Config{Host: "https://kube"}, &kubetest.InMemory{Handler: handler}, s)
	if err != nil {
		t.Fatal(err)
	}
	c.session.Swap(conn)
	return c
}

func typed(kind, version string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: version}
}

func nodeList(nodes ...corev1.Node) corev1.NodeList {
	return corev1.NodeList{TypeMeta: typed("NodeList", "v1"), ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: nodes}
}

func budgetList(budgets ...policyv1.PodDisruptionBudget) policyv1.PodDisruptionBudgetList {
	return policyv1.PodDisruptionBudgetList{
		TypeMeta: typed("PodDisruptionBudgetList", "policy/v1"), ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: budgets,
	}
}

func volumeList(volumes ...corev1.PersistentVolume) corev1.PersistentVolumeList {
	return corev1.PersistentVolumeList{TypeMeta: typed("PersistentVolumeList", "v1"), ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: volumes}
}

func machinesOf(items ...any) map[string]any {
	return map[string]any{
		"kind": "VirtualMachineInstanceList", "apiVersion": "kubevirt.io/v1",
		"metadata": map[string]any{"resourceVersion": "8"}, "items": items,
	}
}

// trapped is a pod with one of everything, and the lists that say so.
func trapped() (types.Pod, lists) {
	pod := kubetest.TestPod("shop", "till", "n1")
	grace := int64(90)
	pod.UID, pod.Labels = "1", map[string]string{access.LabelVMI: "vm", "app": "till"}
	pod.Finalizers, pod.Spec.TerminationGracePeriodSeconds = []string{"a.io/x"}, &grace
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubelet", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:nodeName":{}}}`)},
		{Manager: "maker", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{}}}`)},
	}
	budget := func(namespace, name string, selector *metav1.LabelSelector) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 4, DesiredHealthy: 3, ExpectedPods: 5},
		}
	}
	broken := budget("shop", "broken", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "till"}})
	broken.Status = policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{
		{Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason, Message: "found no controller"},
	}}
	return types.Pod{Namespace: "shop", Name: "till", UID: "1", VMI: "vm"}, lists{
		podsPath:    podList(pod, kubetest.TestPod("shop", "other", "n1")),
		nodesPath:   nodeList(ready("n1"), ready("n2")),
		volumesPath: volumeList(),
		budgetsPath: budgetList(
			budget("shop", "every", &metav1.LabelSelector{}), budget("shop", "none", nil), budget("depot", "far", &metav1.LabelSelector{}),
			budget("shop", "others", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "door"}}), broken,
		),
		vmisPath: machinesOf(map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": "vm"},
			"spec":     map[string]any{"evictionStrategy": "LiveMigrate"},
			"status": map[string]any{"conditions": []any{
				map[string]any{"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "disk is local"},
				map[string]any{"type": "Ready", "status": "False", "reason": "Guest"},
			}},
		}),
	}
}

// ready is a node with room for ten pods.
func ready(name string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Allocatable = room("4", "8Gi", "10")
	return n
}
