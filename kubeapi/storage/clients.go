package storage

import (
	"net/http"
	"slices"
	"sync/atomic"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
)

// Clients are for the objects of Longhorn, of which they decode what we
// read.
type Clients struct {
	installed atomic.Bool // the namespace was found

	Volumes   *gentype.ClientWithList[*VolumePart, *PartList[VolumePart]]
	Engines   *gentype.ClientWithList[*EnginePart, *PartList[EnginePart]]
	Replicas  *gentype.ClientWithList[*ReplicaPart, *PartList[ReplicaPart]]
	Snapshots *gentype.ClientWithList[*SnapshotPart, *PartList[SnapshotPart]]
	Nodes     *gentype.ClientWithList[*NodePart, *PartList[NodePart]]
}

// Connect makes them for a connection.
func Connect(conn *access.Connection) error {
	client, codec, err := partClient(conn.Cfg, conn.Via, longhornv1.SchemeGroupVersion, map[string]runtime.Object{
		"Volume": &VolumePart{}, "VolumeList": &PartList[VolumePart]{},
		"Engine": &EnginePart{}, "EngineList": &PartList[EnginePart]{},
		"Replica": &ReplicaPart{}, "ReplicaList": &PartList[ReplicaPart]{},
		"Snapshot": &SnapshotPart{}, "SnapshotList": &PartList[SnapshotPart]{},
		"Node": &NodePart{}, "NodeList": &PartList[NodePart]{},
	})
	if err != nil {
		return err
	}
	c := access.Kept[Clients](conn)
	c.Volumes = longhornParts("volumes", client, codec, func() *VolumePart { return &VolumePart{} })
	c.Engines = longhornParts("engines", client, codec, func() *EnginePart { return &EnginePart{} })
	c.Replicas = longhornParts("replicas", client, codec, func() *ReplicaPart { return &ReplicaPart{} })
	c.Snapshots = longhornParts("snapshots", client, codec, func() *SnapshotPart { return &SnapshotPart{} })
	c.Nodes = longhornParts("nodes", client, codec, func() *NodePart { return &NodePart{} })
	return nil
}

// SlimPart is a pointer to a part of an object.
type SlimPart[T any] interface {
	*T
	metav1.Object
	runtime.Object
}

func longhornParts[T any, P SlimPart[T]](resource string, client rest.Interface, codec runtime.ParameterCodec, object func() P) *gentype.ClientWithList[P, *PartList[T]] {
	return gentype.NewClientWithList(resource, client, codec, access.LonghornNamespace, object,
		func() *PartList[T] { return &PartList[T]{} })
}

// partClient is a client for kinds of one group, each with the type it is
// decoded to.
func partClient(cfg *rest.Config, rt http.RoundTripper, gv schema.GroupVersion, kinds map[string]runtime.Object) (rest.Interface, runtime.ParameterCodec, error) {
	scheme := runtime.NewScheme()
	for kind, object := range kinds {
		scheme.AddKnownTypeWithName(gv.WithKind(kind), object)
	}
	metav1.AddToGroupVersion(scheme, gv)
	cfg = access.InJSON(cfg)
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := access.ClientOver(cfg, rt, rest.RESTClientForConfigAndClient)
	return client, runtime.NewParameterCodec(scheme), err
}

// The parts of Longhorn's objects that rows are made of. An Engine carries all
// its snapshots along, and a Node every replica on it: only what is here is
// decoded of them. What their pointers hold is never changed.
type (
	// VolumePart is a Volume.
	VolumePart struct {
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

	// EnginePart is an Engine.
	EnginePart struct {
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

	// ReplicaPart is a Replica.
	ReplicaPart struct {
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

	// SnapshotPart is a Snapshot.
	SnapshotPart struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Volume string `json:"volume"`
		} `json:"spec"`
		Status struct {
			Size int64 `json:"size"`
		} `json:"status"`
	}

	// NodePart is a Node of Longhorn.
	NodePart struct {
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

// PartList is a list of one of them.
type PartList[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []T `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *PartList[T]) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (v *VolumePart) DeepCopyObject() runtime.Object {
	c := *v
	v.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (e *EnginePart) DeepCopyObject() runtime.Object {
	c := *e
	e.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (r *ReplicaPart) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (s *SnapshotPart) DeepCopyObject() runtime.Object {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (n *NodePart) DeepCopyObject() runtime.Object {
	c := *n
	n.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}
