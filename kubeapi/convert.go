package kubeapi

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// Labels of docs/wire.md, "Nodes" and "Labels of app objects".
const (
	labelNodeUUID     = "node-uuid"
	labelTieBreaker   = "tie-breaker-node"
	labelControlPlane = "node-role.kubernetes.io/control-plane"
	labelMaster       = "node-role.kubernetes.io/master"
	labelEtcd         = "node-role.kubernetes.io/etcd"
	labelApp          = "app"
	labelAppDomain    = "App-Domain-Name"
	labelVMI          = "vm.kubevirt.io/name"
)

// nodeOf is the row of a Node.
func nodeOf(n *corev1.Node) types.Node {
	_, master := n.Labels[labelMaster]
	_, etcd := n.Labels[labelEtcd]
	row := types.Node{
		Name:            n.Name,
		UID:             string(n.UID),
		ResourceVersion: n.ResourceVersion,
		UUID:            n.Labels[labelNodeUUID],
		Created:         n.CreationTimestamp.Time,
		Unschedulable:   n.Spec.Unschedulable,
		ControlPlane:    n.Labels[labelControlPlane] == "true",
		Master:          master,
		Etcd:            etcd,
		TieBreaker:      n.Labels[labelTieBreaker] == "true",
		BootID:          n.Status.NodeInfo.BootID,
		KubeletVersion:  n.Status.NodeInfo.KubeletVersion,
		InternalIP:      address(n, corev1.NodeInternalIP),
		ExternalIP:      address(n, corev1.NodeExternalIP),
	}
	// Without managed fields it is a slim one: slimMeta has looked at them.
	if row.Unschedulable && (len(n.ManagedFields) == 0 || ownsCordon(n.ManagedFields)) {
		row.CordonedBy = ourCordon(n)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			row.Ready, row.ReadySince = types.ConditionStatus(c.Status), c.LastTransitionTime.Time
		}
	}
	return row
}

// address is the first of its kind; a dual-stack node has two.
func address(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return ""
}

// ourCordon is what zedkube wrote on the Node, nil if it wrote nothing.
func ourCordon(n *corev1.Node) *types.Cordon {
	var c types.Cordon
	if err := json.Unmarshal([]byte(n.Annotations[cordonAnnotation]), &c); err != nil || c.By != cordonedBy {
		return nil
	}
	return &c
}

// ownsCordon reports that the present value of spec.unschedulable is the one a
// Cordon wrote. kubectl uncordon leaves the annotation of ours where it is, and
// a cordon that somebody makes afterwards is theirs in spite of it.
func ownsCordon(managers []metav1.ManagedFieldsEntry) bool {
	for _, m := range managers {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if m.Manager != drainManager || m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Spec["f:unschedulable"]; ok {
			return true
		}
	}
	return false
}

// podOf is the row of a Pod.
func podOf(p *corev1.Pod) types.Pod {
	row := types.Pod{
		Namespace: p.Namespace,
		Name:      p.Name,
		UID:       string(p.UID),
		NodeName:  p.Spec.NodeName,
		Phase:     types.PodPhase(p.Status.Phase),
		IP:        p.Status.PodIP,
		Created:   p.CreationTimestamp.Time,
		App:       p.Labels[labelApp],
		AppDomain: p.Labels[labelAppDomain],
		VMI:       p.Labels[labelVMI],
	}
	if p.DeletionTimestamp != nil {
		row.Deleted = p.DeletionTimestamp.Time
	}
	if o := metav1.GetControllerOfNoCopy(p); o != nil {
		row.Owner = types.Owner{Kind: o.Kind, Name: o.Name, UID: string(o.UID)}
	}
	for _, s := range p.Status.ContainerStatuses {
		row.RestartCount += s.RestartCount
		if r := s.State.Running; s.RestartCount > 0 && r != nil && r.StartedAt.After(row.RestartedAt) {
			row.RestartedAt = r.StartedAt.Time
		}
	}
	return row
}

// slimNode keeps what nodeOf reads: a whole Node lists dozens of images.
func slimNode(n *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: slimMeta(n.ObjectMeta, labelNodeUUID, labelTieBreaker, labelControlPlane, labelMaster, labelEtcd),
		Spec:       corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable},
		Status: corev1.NodeStatus{
			Conditions: n.Status.Conditions,
			Addresses:  n.Status.Addresses,
			NodeInfo: corev1.NodeSystemInfo{
				BootID:         n.Status.NodeInfo.BootID,
				KubeletVersion: n.Status.NodeInfo.KubeletVersion,
			},
		},
	}
}

// slimPod keeps what podOf reads: a fifth of a pod.
func slimPod(p *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{
		ObjectMeta: slimMeta(p.ObjectMeta, labelApp, labelAppDomain, labelVMI),
		Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName},
		Status:     corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP},
	}
	for _, s := range p.Status.ContainerStatuses {
		slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, corev1.ContainerStatus{
			RestartCount: s.RestartCount,
			State:        corev1.ContainerState{Running: s.State.Running},
		})
	}
	return slim
}

func slimMeta(m metav1.ObjectMeta, labels ...string) metav1.ObjectMeta {
	slim := metav1.ObjectMeta{
		Namespace:         m.Namespace,
		Name:              m.Name,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp,
		OwnerReferences:   m.OwnerReferences,
		Labels:            map[string]string{},
	}
	for _, l := range labels {
		if v, ok := m.Labels[l]; ok {
			slim.Labels[l] = v
		}
	}
	if v, ok := m.Annotations[cordonAnnotation]; ok && ownsCordon(m.ManagedFields) {
		slim.Annotations = map[string]string{cordonAnnotation: v}
	}
	return slim
}
