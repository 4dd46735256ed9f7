package kubeapi

import (
	"slices"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The parts of Longhorn's objects that rows are made of. An Engine carries all
// its snapshots along, and a Node every replica on it: only what is here is
// decoded of them. What their pointers hold is never changed.
type (
	volumePart struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Size             int64 `json:"size,string"`
			NumberOfReplicas int   `json:"numberOfReplicas"`
		} `json:"spec"`
		Status struct {
			State         string      `json:"state"`
			Robustness    string      `json:"robustness"`
			CurrentNodeID string      `json:"currentNodeID"`
			ActualSize    int64       `json:"actualSize"`
			Kubernetes    volumeClaim `json:"kubernetesStatus"`
		} `json:"status"`
	}
	volumeClaim struct {
		PVStatus     string `json:"pvStatus"`
		Namespace    string `json:"namespace"`
		PVCName      string `json:"pvcName"`
		LastPVCRefAt string `json:"lastPVCRefAt"`
	}

	enginePart struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			VolumeName string `json:"volumeName"`
			NodeID     string `json:"nodeID"`
		} `json:"spec"`
		Status struct {
			CurrentState longhornv1.InstanceState          `json:"currentState"`
			Modes        map[string]longhornv1.ReplicaMode `json:"replicaModeMap"`
			Addresses    map[string]string                 `json:"currentReplicaAddressMap"`
			Rebuilds     map[string]*rebuildPart           `json:"rebuildStatus"`
		} `json:"status"`
	}
	rebuildPart struct {
		Progress int `json:"progress"`
	}

	replicaPart struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			VolumeName  string                   `json:"volumeName"`
			NodeID      string                   `json:"nodeID"`
			EngineName  string                   `json:"engineName"`
			DesireState longhornv1.InstanceState `json:"desireState"`
			HealthyAt   string                   `json:"healthyAt"`
			FailedAt    string                   `json:"failedAt"`
		} `json:"spec"`
		Status struct {
			CurrentState        longhornv1.InstanceState `json:"currentState"`
			OwnerID             string                   `json:"ownerID"`
			InstanceManagerName string                   `json:"instanceManagerName"`
			CurrentImage        string                   `json:"currentImage"`
			IP                  string                   `json:"ip"`
			Port                int                      `json:"port"`
		} `json:"status"`
	}

	snapshotPart struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Volume string `json:"volume"`
		} `json:"spec"`
		Status struct {
			Size int64 `json:"size"`
		} `json:"status"`
	}

	nodePart struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			AllowScheduling bool                `json:"allowScheduling"`
			Disks           map[string]diskPart `json:"disks"`
		} `json:"spec"`
		Status struct {
			Conditions []conditionPart            `json:"conditions"`
			Disks      map[string]*diskStatusPart `json:"diskStatus"`
		} `json:"status"`
	}
	diskPart struct {
		Path            string `json:"path"`
		AllowScheduling bool   `json:"allowScheduling"`
		StorageReserved int64  `json:"storageReserved"`
	}
	diskStatusPart struct {
		Conditions     []conditionPart `json:"conditions"`
		StorageMaximum int64           `json:"storageMaximum"`
	}
	conditionPart struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	}
)

// partList is a list of one of them.
type partList[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []T `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *partList[T]) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (v *volumePart) DeepCopyObject() runtime.Object {
	c := *v
	v.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (e *enginePart) DeepCopyObject() runtime.Object {
	c := *e
	e.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (r *replicaPart) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (s *snapshotPart) DeepCopyObject() runtime.Object {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (n *nodePart) DeepCopyObject() runtime.Object {
	c := *n
	n.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}
