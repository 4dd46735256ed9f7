package storage

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Part is an object of Longhorn, of which only what rows are made of is decoded. What
// its pointers hold is never changed.
type Part[S, T any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              S `json:"spec"`
	Status            T `json:"status"`
}

// DeepCopyObject implements runtime.Object.
func (p *Part[S, T]) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// PartList is a list of them.
type PartList[S, T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Part[S, T] `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *PartList[S, T]) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	return &c
}

// PartClient is a client for one kind of object.
type PartClient[S, T any] = gentype.ClientWithList[*Part[S, T], *PartList[S, T]]

// Clients are for the objects of Longhorn.
type Clients struct {
	installed atomic.Bool // the namespace was found

	Volumes   *PartClient[volumeSpec, volumeStatus]
	Engines   *PartClient[engineSpec, engineStatus]
	Replicas  *PartClient[replicaSpec, replicaStatus]
	Snapshots *PartClient[snapshotSpec, snapshotStatus]
	Nodes     *PartClient[nodeSpec, nodeStatus]
}

// Connect makes them for a connection.
func Connect(conn *access.Connection) error {
	scheme, cfg, gv := runtime.NewScheme(), access.InJSON(conn.Cfg), longhornv1.SchemeGroupVersion
	metav1.AddToGroupVersion(scheme, gv)
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := access.ClientOver(cfg, conn.Via, rest.RESTClientForConfigAndClient)
	if err != nil {
		return err
	}
	c := access.Kept[Clients](conn)
	c.Volumes = partClient[volumeSpec, volumeStatus](client, scheme, "Volume")
	c.Engines = partClient[engineSpec, engineStatus](client, scheme, "Engine")
	c.Replicas = partClient[replicaSpec, replicaStatus](client, scheme, "Replica")
	c.Snapshots = partClient[snapshotSpec, snapshotStatus](client, scheme, "Snapshot")
	c.Nodes = partClient[nodeSpec, nodeStatus](client, scheme, "Node")
	return nil
}

func partClient[S, T any](client rest.Interface, scheme *runtime.Scheme, kind string) *PartClient[S, T] {
	gv := longhornv1.SchemeGroupVersion
	scheme.AddKnownTypeWithName(gv.WithKind(kind), &Part[S, T]{})
	scheme.AddKnownTypeWithName(gv.WithKind(kind+"List"), &PartList[S, T]{})
	return gentype.NewClientWithList(strings.ToLower(kind)+"s", client, runtime.NewParameterCodec(scheme), types.NamespaceLonghorn,
		func() *Part[S, T] { return &Part[S, T]{} }, func() *PartList[S, T] { return &PartList[S, T]{} })
}

// What rows are made of. An Engine carries all its snapshots along, and a Node every
// replica on it.
type (
	// VolumePart is a Volume.
	VolumePart = Part[volumeSpec, volumeStatus]
	volumeSpec struct {
		Size             int64 `json:"size,string"`
		NumberOfReplicas int   `json:"numberOfReplicas"`
	}
	volumeStatus struct {
		State         string      `json:"state"`
		Robustness    string      `json:"robustness"`
		CurrentNodeID string      `json:"currentNodeID"`
		ActualSize    int64       `json:"actualSize"`
		Kubernetes    volumeClaim `json:"kubernetesStatus"`
	}
	volumeClaim struct {
		PVStatus     string `json:"pvStatus"`
		Namespace    string `json:"namespace"`
		PVCName      string `json:"pvcName"`
		LastPVCRefAt string `json:"lastPVCRefAt"`
	}

	// EnginePart is an Engine.
	EnginePart = Part[engineSpec, engineStatus]
	engineSpec struct {
		VolumeName string `json:"volumeName"`
		NodeID     string `json:"nodeID"`
	}
	engineStatus struct {
		CurrentState longhornv1.InstanceState          `json:"currentState"`
		Modes        map[string]longhornv1.ReplicaMode `json:"replicaModeMap"`
		Addresses    map[string]string                 `json:"currentReplicaAddressMap"`
		Rebuilds     map[string]*rebuildPart           `json:"rebuildStatus"`
	}
	rebuildPart struct {
		Progress int `json:"progress"`
	}

	// ReplicaPart is a Replica.
	ReplicaPart = Part[replicaSpec, replicaStatus]
	replicaSpec struct {
		VolumeName  string                   `json:"volumeName"`
		NodeID      string                   `json:"nodeID"`
		EngineName  string                   `json:"engineName"`
		DesireState longhornv1.InstanceState `json:"desireState"`
		HealthyAt   string                   `json:"healthyAt"`
		FailedAt    string                   `json:"failedAt"`
	}
	replicaStatus struct {
		CurrentState        longhornv1.InstanceState `json:"currentState"`
		OwnerID             string                   `json:"ownerID"`
		InstanceManagerName string                   `json:"instanceManagerName"`
		CurrentImage        string                   `json:"currentImage"`
		IP                  string                   `json:"ip"`
		Port                int                      `json:"port"`
	}

	// SnapshotPart is a Snapshot.
	SnapshotPart = Part[snapshotSpec, snapshotStatus]
	snapshotSpec struct {
		Volume string `json:"volume"`
	}
	snapshotStatus struct {
		Size int64 `json:"size"`
	}

	// NodePart is a Node of Longhorn.
	NodePart = Part[nodeSpec, nodeStatus]
	nodeSpec struct {
		AllowScheduling bool                `json:"allowScheduling"`
		Disks           map[string]diskPart `json:"disks"`
	}
	nodeStatus struct {
		Conditions []conditionPart            `json:"conditions"`
		Disks      map[string]*diskStatusPart `json:"diskStatus"`
	}
	diskPart struct {
		AllowScheduling bool  `json:"allowScheduling"`
		StorageReserved int64 `json:"storageReserved"`
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

// ProvisionerAnnotation says who is to make or has made the volume of a claim.
const ProvisionerAnnotation = "volume.kubernetes.io/storage-provisioner"

// ClaimRow is the row of a PersistentVolumeClaim.
func ClaimRow(c *corev1.PersistentVolumeClaim) types.Claim {
	row := types.Claim{
		Name:        c.Name,
		Volume:      c.Spec.VolumeName,
		Phase:       types.ClaimPhase(c.Status.Phase),
		Created:     c.CreationTimestamp.Time,
		Provisioner: c.Annotations[ProvisionerAnnotation],
	}
	size, ok := c.Status.Capacity[corev1.ResourceStorage]
	if !ok {
		size = c.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	row.Bytes = size.Value()
	return row
}

// DaemonOf is the row of a DaemonSet.
func DaemonOf(d *appsv1.DaemonSet) types.DaemonSet {
	return types.DaemonSet{Name: d.Name, Wanted: int(d.Status.DesiredNumberScheduled), Ready: int(d.Status.NumberReady)}
}

// SnapshotLabel marks the RecurringJob that zedkube made.
const SnapshotLabel = "zedkube.github.io/snapshots"

// SettingOf is the row of a setting.
func SettingOf(s *longhornv1.Setting) types.LonghornSetting {
	return types.LonghornSetting{Name: s.Name, UID: string(s.UID), Version: s.ResourceVersion, Value: s.Value}
}

// SnapshotJobOf is the row of a recurring job.
func SnapshotJobOf(j *longhornv1.RecurringJob) types.SnapshotJob {
	return types.SnapshotJob{
		Name: j.Name, UID: string(j.UID), Version: j.ResourceVersion,
		Task: string(j.Spec.Task), Groups: slices.Clone(j.Spec.Groups), Cron: j.Spec.Cron,
		Retain: j.Spec.Retain, Concurrency: j.Spec.Concurrency, Ours: ourJob(j),
	}
}

// ourJob tells a job that zedkube made, and one that EVE's own zedkube did, who
// leaves no mark, from somebody else's of the same name.
func ourJob(j *longhornv1.RecurringJob) bool {
	eves := j.Spec.Task == longhornv1.RecurringJobTypeSnapshot && slices.Equal(j.Spec.Groups, []string{longhornv1.RecurringJobGroupDefault})
	return j.Labels[SnapshotLabel] == "true" || eves
}

// LonghornNodeOf is the row of a node of Longhorn without what changes time and
// again: the version and the free space.
func LonghornNodeOf(n *NodePart) types.LonghornNode {
	row := types.LonghornNode{
		Name: n.Name, UID: string(n.UID),
		Ready:   partCondition(n.Status.Conditions, "Ready"),
		Allowed: n.Spec.AllowScheduling,
	}
	for _, name := range slices.Sorted(maps.Keys(n.Spec.Disks)) {
		d := n.Spec.Disks[name]
		disk := types.LonghornDisk{Name: name, Allowed: d.AllowScheduling, Reserved: d.StorageReserved}
		if s := n.Status.Disks[name]; s != nil {
			disk.Maximum = s.StorageMaximum
			disk.Ready, disk.Schedulable = partCondition(s.Conditions, "Ready"), partCondition(s.Conditions, "Schedulable")
		}
		row.Disks = append(row.Disks, disk)
	}
	return row
}

func partCondition(conditions []conditionPart, kind string) types.ConditionStatus {
	for _, c := range conditions {
		if c.Type == kind {
			return types.ConditionStatus(c.Status)
		}
	}
	return ""
}
