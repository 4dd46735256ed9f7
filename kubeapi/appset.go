package kubeapi

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/zedkube/zedkube/types"
)

// appSet is the part that rows are made of of both a ReplicaSet and KubeVirt's
// VirtualMachineInstanceReplicaSet: in it they are alike.
type appSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              appSetSpec   `json:"spec"`
	Status            appSetStatus `json:"status"`
}

type appSetSpec struct {
	Replicas *int32         `json:"replicas"`
	Template appSetTemplate `json:"template"`
}

type appSetTemplate struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Affinity *corev1.Affinity `json:"affinity"`
		Volumes  []appSetVolume   `json:"volumes"`
	} `json:"spec"`
}

// appSetVolume names the claim that a volume is, in each of the ways there are.
type appSetVolume struct {
	Claim      *claimSource `json:"persistentVolumeClaim,omitempty"`
	DataVolume *struct {
		Name string `json:"name"`
	} `json:"dataVolume,omitempty"` // whose claim has its name
	Ephemeral *struct {
		Claim *claimSource `json:"persistentVolumeClaim,omitempty"`
	} `json:"ephemeral,omitempty"` // KubeVirt's: it is read only
}

type claimSource struct {
	Name string `json:"claimName"`
}

type appSetStatus struct {
	ReadyReplicas int32 `json:"readyReplicas"`
}

type appSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []appSet `json:"items"`
}

// DeepCopyObject implements runtime.Object. What its pointers hold is never
// changed.
func (s *appSet) DeepCopyObject() runtime.Object {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Template.Metadata.Labels = maps.Clone(s.Spec.Template.Metadata.Labels)
	c.Spec.Template.Spec.Affinity = s.Spec.Template.Spec.Affinity.DeepCopy()
	c.Spec.Template.Spec.Volumes = slices.Clone(s.Spec.Template.Spec.Volumes)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *appSetList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]appSet, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*appSet)
	}
	return &c
}

// appSetOf is the row of a replica set of that kind: an item of a list does not
// name its own. A set that does not say how many it wants wants one.
func appSetOf(kind string) func(*appSet) types.AppSet {
	return func(s *appSet) types.AppSet {
		row := types.AppSet{
			Kind:      kind,
			Name:      s.Name,
			UID:       string(s.UID),
			Version:   s.ResourceVersion,
			AppDomain: s.Labels[labelAppDomain],
			Created:   s.CreationTimestamp.Time,
			Wanted:    1,
			Ready:     s.Status.ReadyReplicas,
			Affinity:  setAffinityOf(s.Spec.Template.Spec.Affinity),
			Claims:    s.claims(),
		}
		if row.AppDomain == "" { // that of virtual machines has it on its template only
			row.AppDomain = s.Spec.Template.Metadata.Labels[labelAppDomain]
		}
		if s.Spec.Replicas != nil {
			row.Wanted = *s.Spec.Replicas
		}
		if s.DeletionTimestamp != nil {
			row.Deleted = s.DeletionTimestamp.Time
		}
		if note, ok := annotated[types.RepairNote](s.Annotations, repairAnnotation); ok {
			row.Note = note
		}
		return row
	}
}

// claims is nil for none.
func (s *appSet) claims() []string {
	var names []string
	for _, v := range s.Spec.Template.Spec.Volumes {
		switch {
		case v.Claim != nil:
			names = append(names, v.Claim.Name)
		case v.DataVolume != nil:
			names = append(names, v.DataVolume.Name)
		case v.Ephemeral != nil && v.Ephemeral.Claim != nil:
			names = append(names, v.Ephemeral.Claim.Name)
		}
	}
	return sorted(names)
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

// slimAppSet keeps what appSetOf reads.
func slimAppSet(s *appSet) *appSet {
	slim := *s
	slim.ObjectMeta = slimMeta(s.ObjectMeta, labelAppDomain)
	slim.Annotations = only(s.Annotations, repairAnnotation)
	slim.Spec.Template.Metadata.Labels = only(s.Spec.Template.Metadata.Labels, labelAppDomain)
	return &slim
}
