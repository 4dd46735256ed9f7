package kubeapi

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/types"
)

// podSetOf is the row of a ReplicaSet.
func podSetOf(s *appsv1.ReplicaSet) types.AppSet {
	template := &s.Spec.Template
	row := appSetOf(types.KindReplicaSet, s.ObjectMeta, s.Spec.Replicas, template.Labels, template.Spec.Affinity)
	row.Ready = s.Status.ReadyReplicas
	var claims []string
	for _, v := range template.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims = append(claims, v.PersistentVolumeClaim.ClaimName)
		}
	}
	row.Claims = sorted(claims)
	return row
}

// vmiSetOf is the row of a VirtualMachineInstanceReplicaSet.
func vmiSetOf(s *kubevirtv1.VirtualMachineInstanceReplicaSet) types.AppSet {
	template := s.Spec.Template
	if template == nil {
		template = &kubevirtv1.VirtualMachineInstanceTemplateSpec{}
	}
	row := appSetOf(types.KindVMIReplicaSet, s.ObjectMeta, s.Spec.Replicas, template.ObjectMeta.Labels, template.Spec.Affinity)
	row.Ready = s.Status.ReadyReplicas
	var claims []string
	for _, v := range template.Spec.Volumes {
		claims = append(claims, machineClaim(v.VolumeSource))
	}
	row.Claims = sorted(claims)
	return row
}

// machineClaim names the claim that a volume of a virtual machine is; "" for none.
func machineClaim(v kubevirtv1.VolumeSource) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.DataVolume != nil: // whose claim has its name
		return v.DataVolume.Name
	case v.Ephemeral != nil && v.Ephemeral.PersistentVolumeClaim != nil: // it is only read
		return v.Ephemeral.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// appSetOf is what the rows of both kinds have in common. A set that does not
// say how many replicas it wants wants one.
func appSetOf(kind string, meta metav1.ObjectMeta, replicas *int32, templateLabels map[string]string, affinity *corev1.Affinity) types.AppSet {
	row := types.AppSet{
		Kind:      kind,
		Name:      meta.Name,
		UID:       string(meta.UID),
		Version:   meta.ResourceVersion,
		AppDomain: meta.Labels[labelAppDomain],
		Created:   meta.CreationTimestamp.Time,
		Wanted:    1,
		Affinity:  setAffinityOf(affinity),
	}
	if row.AppDomain == "" { // that of virtual machines has it on its template only
		row.AppDomain = templateLabels[labelAppDomain]
	}
	if replicas != nil {
		row.Wanted = *replicas
	}
	if meta.DeletionTimestamp != nil {
		row.Deleted = meta.DeletionTimestamp.Time
	}
	if note, ok := annotated[types.RepairNote](meta.Annotations, repairAnnotation); ok {
		row.Note = note
	}
	return row
}

// sorted is names without the empty one, each once; nil for none.
func sorted(names []string) []string {
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
	if len(names) == 0 {
		return nil
	}
	return names
}

// slimPodSet keeps what podSetOf reads.
func slimPodSet(s *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	slim := &appsv1.ReplicaSet{ObjectMeta: slimSetMeta(s.ObjectMeta)}
	slim.Spec.Replicas, slim.Status.ReadyReplicas = s.Spec.Replicas, s.Status.ReadyReplicas
	slim.Spec.Template.Labels = only(s.Spec.Template.Labels, labelAppDomain)
	slim.Spec.Template.Spec.Affinity = s.Spec.Template.Spec.Affinity
	for _, v := range s.Spec.Template.Spec.Volumes {
		if claim := v.PersistentVolumeClaim; claim != nil {
			slim.Spec.Template.Spec.Volumes = append(slim.Spec.Template.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}})
		}
	}
	return slim
}

// slimVMISet keeps what vmiSetOf reads.
func slimVMISet(s *kubevirtv1.VirtualMachineInstanceReplicaSet) *kubevirtv1.VirtualMachineInstanceReplicaSet {
	slim := &kubevirtv1.VirtualMachineInstanceReplicaSet{ObjectMeta: slimSetMeta(s.ObjectMeta)}
	slim.Spec.Replicas, slim.Status.ReadyReplicas = s.Spec.Replicas, s.Status.ReadyReplicas
	if s.Spec.Template == nil {
		return slim
	}
	template := &kubevirtv1.VirtualMachineInstanceTemplateSpec{}
	template.ObjectMeta.Labels = only(s.Spec.Template.ObjectMeta.Labels, labelAppDomain)
	template.Spec.Affinity = s.Spec.Template.Spec.Affinity
	for _, v := range s.Spec.Template.Spec.Volumes {
		if machineClaim(v.VolumeSource) != "" {
			template.Spec.Volumes = append(template.Spec.Volumes, v)
		}
	}
	slim.Spec.Template = template
	return slim
}

func slimSetMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	slim := slimMeta(m, labelAppDomain)
	slim.Annotations = only(m.Annotations, repairAnnotation)
	return slim
}
