package kubeapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/kubeapi/pods"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func entry(manager, subresource, fields string, minute int) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate, Time: new(kubetest.At(minute)),
		APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestWhoWroteLabelsAndTheCordonIsKnown(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", ManagedFields: []metav1.ManagedFieldsEntry{
			entry("kubectl", "", `{"f:spec":{"f:unschedulable":{}}}`, 5),
			entry("k3s", "", `{"f:metadata":{"f:labels":{".":{},"f:node-role.kubernetes.io/control-plane":{},"f:kubernetes.io/os":{}}},"f:spec":{"f:podCIDR":{}}}`, 1),
			entry("k3s", "status", `{"f:metadata":{"f:labels":{"f:node-uuid":{}}},"f:status":{}}`, 9),
			entry("kubectl-label", "", `{"f:metadata":{"f:labels":{"f:node-uuid":{},"f:tie-breaker-node":{}}}}`, 3),
			entry("virt-handler", "", `{"f:metadata":{"f:annotations":{"f:kubevirt.io/heartbeat":{}}}}`, 9),
			entry("odd", "", `{"f:spec":["f:unschedulable"],"x":"f:node-uuid"`, 9),
			{Manager: "empty"},
		}},
		Spec: corev1.NodeSpec{Unschedulable: true},
	}
	want := []types.FieldWriter{
		{Field: "node-role.kubernetes.io/control-plane", Manager: "k3s", At: kubetest.At(1).Time},
		{Field: "node-uuid", Manager: "kubectl-label", At: kubetest.At(3).Time},
		{Field: types.FieldCordon, Manager: "kubectl", At: kubetest.At(5).Time},
		{Field: "tie-breaker-node", Manager: "kubectl-label", At: kubetest.At(3).Time},
	}
	if diff := cmp.Diff(want, nodes.NodeOf(n).Writers); diff != "" {
		t.Error(diff)
	}
	n.Spec.Unschedulable = false // somebody owns that it is not
	if got := nodes.NodeOf(n).Writers; len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func TestTheNodeSaysWhatConnectsItsPods(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{"flannel.alpha.coreos.com/backend-type": "vxlan"}}}
	if got := nodes.NodeOf(n).CNI; got != "flannel vxlan" {
		t.Errorf("%q", got)
	}
	if got := nodes.NodeOf(&corev1.Node{}).CNI; got != "" {
		t.Errorf("%q", got)
	}
}

func TestPartsOfTheSystemHaveAVersion(t *testing.T) {
	for _, row := range []struct {
		namespace, label, value, image string
		part, version                  string
	}{
		{"kubevirt", "kubevirt.io", "virt-handler", "quay.io/kubevirt/virt-handler:v1.6.0", "KubeVirt", "v1.6.0"},
		{"kubevirt", "kubevirt.io", "virt-api", "quay.io/kubevirt/virt-api:v1.6.0", "", ""},
		{"longhorn-system", "app", "longhorn-manager", "longhornio/longhorn-manager:v1.9.1@sha256:0123", "Longhorn", "v1.9.1"},
		{"kube-system", "app", "multus", "registry:5000/multus-cni", "multus", ""},
		{"eve-kube-app", "app", "longhorn-manager", "x:v1", "", ""},
		{"kubevirt", "kubevirt.io", "virt-handler", "registry:5000/kubevirt/virt-handler@sha256:0123", "KubeVirt", ""},
	} {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: row.namespace, Name: "p", Labels: map[string]string{row.label: row.value}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: row.image}}},
		}
		if got := pods.PodOf(p); got.Part != row.part || got.Version != row.version {
			t.Errorf("%s %s: %q %q", row.value, row.image, got.Part, got.Version)
		}
		p.Spec.Containers = nil
		if got := pods.PodOf(p); got.Part != "" {
			t.Errorf("a %s without containers is %q", row.value, got.Part)
		}
	}
}
