package kubevirt

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// preferredWeight is that of EVE's term of a preferred affinity.
const preferredWeight = 100

// namesHost tells an expression that asks for host names from all others, which
// are none of ours.
func namesHost(e corev1.NodeSelectorRequirement) bool {
	return e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn
}

// SetAffinityOf sums up the affinity of a template. It is required where every
// one of the required terms, of which a node has to meet one, asks for the host.
func SetAffinityOf(a *corev1.Affinity) types.SetAffinity {
	if a == nil {
		return types.SetAffinity{}
	}
	row := types.SetAffinity{Other: a.PodAffinity != nil || a.PodAntiAffinity != nil}
	if a.NodeAffinity == nil {
		return row
	}
	var hosts []string
	look := func(t corev1.NodeSelectorTerm) (named bool) {
		for _, e := range t.MatchExpressions {
			if namesHost(e) {
				hosts, named = append(hosts, e.Values...), true
			} else {
				row.Other = true
			}
		}
		row.Other = row.Other || len(t.MatchFields) > 0
		return named
	}
	required, unbound := false, false
	if r := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		for _, t := range r.NodeSelectorTerms {
			named := look(t)
			required, unbound = required || named, unbound || !named
		}
	}
	for _, p := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		look(p.Preference)
	}
	if hosts = access.Sorted(hosts); len(hosts) == 1 && !(required && unbound) {
		row.Node, row.Required = hosts[0], required
	}
	return row
}

// WithHost is a with one host name in place of all that it asked for: in every
// required term, or in one preferred term. All else stays as it is, but for
// terms that asked for nothing else. It changes nothing of a.
func WithHost(a *corev1.NodeAffinity, node string, required bool) *corev1.NodeAffinity {
	host := []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}
	var terms []corev1.NodeSelectorTerm
	var preferred []corev1.PreferredSchedulingTerm
	if a != nil {
		if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			for _, t := range r.NodeSelectorTerms {
				if t, left := withoutHosts(t); left {
					terms = append(terms, t)
				}
			}
		}
		for _, p := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			if t, left := withoutHosts(p.Preference); left {
				preferred = append(preferred, corev1.PreferredSchedulingTerm{Weight: p.Weight, Preference: t})
			}
		}
	}
	only := corev1.NodeSelectorTerm{MatchExpressions: host}
	switch {
	case !required:
		preferred = append(preferred, corev1.PreferredSchedulingTerm{Weight: preferredWeight, Preference: only})
	case terms == nil:
		terms = []corev1.NodeSelectorTerm{only}
	default:
		for i := range terms {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, host...)
		}
	}
	out := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	if terms != nil {
		out.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	return out
}

// withoutHosts is t as far as it asks for anything but host names; left says
// that it does.
func withoutHosts(t corev1.NodeSelectorTerm) (rest corev1.NodeSelectorTerm, left bool) {
	rest = *t.DeepCopy()
	rest.MatchExpressions = slices.DeleteFunc(rest.MatchExpressions, namesHost)
	return rest, len(rest.MatchExpressions) > 0 || len(rest.MatchFields) > 0
}

// PodSetOf is the row of a ReplicaSet.
func PodSetOf(s *appsv1.ReplicaSet) types.AppSet {
	template := &s.Spec.Template
	row := appSetOf(types.KindReplicaSet, s.ObjectMeta, s.Spec.Replicas, template.Labels, template.Spec.Affinity)
	var claims []string
	for _, v := range template.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims = append(claims, v.PersistentVolumeClaim.ClaimName)
		}
	}
	row.Claims = access.Sorted(claims)
	return row
}

// VMISetOf is the row of a VirtualMachineInstanceReplicaSet.
func VMISetOf(s *kubevirtv1.VirtualMachineInstanceReplicaSet) types.AppSet {
	template := s.Spec.Template
	if template == nil {
		template = &kubevirtv1.VirtualMachineInstanceTemplateSpec{}
	}
	row := appSetOf(types.KindVMIReplicaSet, s.ObjectMeta, s.Spec.Replicas, template.ObjectMeta.Labels, template.Spec.Affinity)
	row.Claims = machineClaims(template.Spec.Volumes)
	row.Paused = s.Spec.Paused
	return row
}

func machineClaims(volumes []kubevirtv1.Volume) []string {
	var claims []string
	for _, v := range volumes {
		claims = append(claims, machineClaim(v.VolumeSource))
	}
	return access.Sorted(claims)
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
		AppDomain: meta.Labels[access.LabelAppDomain],
		Deleted:   ptr.Deref(meta.DeletionTimestamp, metav1.Time{}).Time,
		Wanted:    ptr.Deref(replicas, 1),
		Affinity:  SetAffinityOf(affinity),
	}
	if row.AppDomain == "" { // that of virtual machines has it on its template only
		row.AppDomain = templateLabels[access.LabelAppDomain]
	}
	row.Note, _ = access.Annotated[types.RepairNote](meta.Annotations, RepairAnnotation)
	row.Owned = metav1.GetControllerOfNoCopy(&meta) != nil
	if was, ok := access.Annotated[types.FormerScale](meta.Annotations, DisabledAnnotation); ok && was.UID == row.UID && was.Replicas > 0 {
		row.Former = &was
	}
	return row
}

// VMIOf is the row of a VirtualMachineInstance.
func VMIOf(v *kubevirtv1.VirtualMachineInstance) types.VMI {
	row := types.VMI{
		Name:      v.Name,
		UID:       string(v.UID),
		Phase:     types.VMIPhase(v.Status.Phase),
		NodeName:  v.Status.NodeName,
		Owner:     access.OwnerOf(v),
		AppDomain: v.Labels[access.LabelAppDomain],
		Created:   v.CreationTimestamp.Time,
		Deleted:   ptr.Deref(v.DeletionTimestamp, metav1.Time{}).Time,
		Affinity:  SetAffinityOf(v.Spec.Affinity),
		Claims:    machineClaims(v.Spec.Volumes),
	}
	for _, c := range v.Status.Conditions {
		if c.Type == kubevirtv1.VirtualMachineInstanceReady && c.Status == corev1.ConditionTrue {
			row.Ready, row.ReadySince = true, c.LastTransitionTime.Time
		}
	}
	return row
}
