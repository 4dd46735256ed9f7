package kubeapi

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// Labels of docs/wire.md, "App objects".
const (
	labelApp       = "app"
	labelAppDomain = "App-Domain-Name"
	labelVMI       = "vm.kubevirt.io/name"
)

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
		Reason:    p.Status.Reason,
	}
	if p.DeletionTimestamp != nil {
		row.Deleted = p.DeletionTimestamp.Time
	}
	row.Owner = ownerOf(p)
	row.Part, row.Version = systemPart(p)
	for _, s := range p.Status.ContainerStatuses {
		row.RestartCount += s.RestartCount
		if last := s.LastTerminationState.Terminated; s.RestartCount > 0 && last != nil && last.FinishedAt.After(row.RestartedAt) {
			row.RestartedAt = last.FinishedAt.Time
		}
	}
	return row
}

// ownerOf is zero where nothing controls o.
func ownerOf(o metav1.Object) types.Owner {
	c := metav1.GetControllerOfNoCopy(o)
	if c == nil {
		return types.Owner{}
	}
	return types.Owner{Kind: c.Kind, Name: c.Name, UID: string(c.UID)}
}

// slimPod keeps what podOf reads: a fifth of a pod.
func slimPod(p *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{
		ObjectMeta: slimMeta(p.ObjectMeta, labelApp, labelAppDomain, labelVMI, labelKubeVirt),
		Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName},
		Status:     corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP, Reason: p.Status.Reason},
	}
	if part, _ := systemPart(p); part != "" {
		slim.Spec.Containers = []corev1.Container{{Image: p.Spec.Containers[0].Image}}
	}
	for _, s := range p.Status.ContainerStatuses {
		kept := corev1.ContainerStatus{RestartCount: s.RestartCount}
		if last := s.LastTerminationState.Terminated; last != nil {
			kept.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: last.FinishedAt}
		}
		slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, kept)
	}
	return slim
}

// slimMeta keeps what rows are made of, and the version, by which a Reflector
// goes on.
func slimMeta(m metav1.ObjectMeta, labels ...string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:         m.Namespace,
		Name:              m.Name,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp,
		OwnerReferences:   m.OwnerReferences,
		Labels:            only(m.Labels, labels...),
	}
}

func only(m map[string]string, keys ...string) map[string]string {
	kept := map[string]string{}
	for _, k := range keys {
		if v, ok := m[k]; ok {
			kept[k] = v
		}
	}
	return kept
}
