package kubeapi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/zedkube/zedkube/types"
)

// vmi is the part of KubeVirt's VirtualMachineInstance that rows are made of.
// The types of KubeVirt itself would bring its whole specification along, to be
// decoded and thrown away.
type vmi struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              vmiSpec   `json:"spec"`
	Status            vmiStatus `json:"status"`
}

type vmiSpec struct {
	Affinity *corev1.Affinity `json:"affinity"`
}

type vmiStatus struct {
	Phase      string         `json:"phase"`
	NodeName   string         `json:"nodeName"`
	Conditions []vmiCondition `json:"conditions"`
}

type vmiCondition struct {
	Type   string                 `json:"type"`
	Status metav1.ConditionStatus `json:"status"`
	Since  metav1.Time            `json:"lastTransitionTime"`
}

type vmiList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []vmi `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (v *vmi) DeepCopyObject() runtime.Object {
	c := *v
	v.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Affinity = v.Spec.Affinity.DeepCopy()
	c.Status.Conditions = slices.Clone(v.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *vmiList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]vmi, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*vmi)
	}
	return &c
}

// vmiOf is the row of a VirtualMachineInstance.
func vmiOf(v *vmi) types.VMI {
	row := types.VMI{
		Name:      v.Name,
		UID:       string(v.UID),
		Version:   v.ResourceVersion,
		Phase:     types.VMIPhase(v.Status.Phase),
		NodeName:  v.Status.NodeName,
		Owner:     ownerOf(v),
		AppDomain: v.Labels[labelAppDomain],
		Created:   v.CreationTimestamp.Time,
		Affinity:  setAffinityOf(v.Spec.Affinity),
	}
	if v.DeletionTimestamp != nil {
		row.Deleted = v.DeletionTimestamp.Time
	}
	for _, c := range v.Status.Conditions {
		if c.Type == "Ready" && c.Status == metav1.ConditionTrue {
			row.Ready, row.ReadySince = true, c.Since.Time
		}
	}
	return row
}

// slimVMI keeps what vmiOf reads; the rest of the object was not even decoded.
func slimVMI(v *vmi) *vmi {
	slim := *v
	slim.ObjectMeta = slimMeta(v.ObjectMeta, labelAppDomain)
	return &slim
}
