package kubeapi

import (
	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/types"
)

// vmiOf is the row of a VirtualMachineInstance.
func vmiOf(v *kubevirtv1.VirtualMachineInstance) types.VMI {
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
		if c.Type == kubevirtv1.VirtualMachineInstanceReady && c.Status == corev1.ConditionTrue {
			row.Ready, row.ReadySince = true, c.LastTransitionTime.Time
		}
	}
	return row
}

// slimVMI keeps what vmiOf reads.
func slimVMI(v *kubevirtv1.VirtualMachineInstance) *kubevirtv1.VirtualMachineInstance {
	slim := &kubevirtv1.VirtualMachineInstance{ObjectMeta: slimMeta(v.ObjectMeta, labelAppDomain)}
	slim.Spec.Affinity = v.Spec.Affinity
	slim.Status.Phase, slim.Status.NodeName = v.Status.Phase, v.Status.NodeName
	for _, c := range v.Status.Conditions {
		if c.Type == kubevirtv1.VirtualMachineInstanceReady {
			slim.Status.Conditions = append(slim.Status.Conditions, c)
		}
	}
	return slim
}
