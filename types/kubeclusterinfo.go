package types

import "time"

// KubeNodeStatus is a node's Ready condition as EVE reports it.
type KubeNodeStatus uint8

// The node states.
const (
	KubeNodeUnknown KubeNodeStatus = iota
	KubeNodeReady
	KubeNodeNotReady
	KubeNodeNotReachable
)

func (s KubeNodeStatus) String() string {
	return enumName("KubeNodeStatus", []string{"Unknown", "Ready", "NotReady", "NotReachable"}, s)
}

// KubeNodeStatusOf is the node state by the Ready condition, "" for none.
func KubeNodeStatusOf(ready ConditionStatus) KubeNodeStatus {
	return map[ConditionStatus]KubeNodeStatus{
		ConditionTrue: KubeNodeReady, ConditionFalse: KubeNodeNotReady, ConditionUnknown: KubeNodeNotReachable,
	}[ready]
}

// KubeNodeAdmission says how far a node has come into the cluster.
type KubeNodeAdmission uint8

// The admission states.
const (
	KubeNodeAdmissionUnspecified KubeNodeAdmission = iota
	KubeNodeAdmissionNotClustered
	KubeNodeAdmissionLeaving
	KubeNodeAdmissionJoining
	KubeNodeAdmissionJoined
)

func (a KubeNodeAdmission) String() string {
	return enumName("KubeNodeAdmission", []string{"Unspecified", "NotClustered", "Leaving", "Joining", "Joined"}, a)
}

// KubePodStatus is a pod's phase as EVE reports it.
type KubePodStatus uint8

// The pod states.
const (
	KubePodUnknown KubePodStatus = iota
	KubePodPending
	KubePodRunning
	KubePodSucceeded
	KubePodFailed
)

func (s KubePodStatus) String() string {
	return enumName("KubePodStatus", []string{"Unknown", "Pending", "Running", "Succeeded", "Failed"}, s)
}

// KubeVMIStatus is a virtual machine instance's phase as EVE reports it.
type KubeVMIStatus uint8

// The VMI states.
const (
	KubeVMIUnset KubeVMIStatus = iota
	KubeVMIPending
	KubeVMIScheduling
	KubeVMIScheduled
	KubeVMIRunning
	KubeVMISucceeded
	KubeVMIFailed
	KubeVMIUnknown
)

func (s KubeVMIStatus) String() string {
	return enumName("KubeVMIStatus", []string{"Unset", "Pending", "Scheduling", "Scheduled", "Running", "Succeeded", "Failed", "Unknown"}, s)
}

// KubeNodeInfo is one node of the report.
type KubeNodeInfo struct {
	Name               string
	Status             KubeNodeStatus
	IsMaster           bool
	UsesEtcd           bool
	CreationTime       time.Time
	LastTransitionTime time.Time
	KubeletVersion     string
	InternalIP         string
	ExternalIP         string
	Schedulable        bool
	Admission          KubeNodeAdmission
	NodeID             string
	// Conditions are those that Status does not tell; EVE's agents skip them.
	Conditions []KubeNodeCondition `json:",omitempty"`
}

// KubeNodeConditionType is a condition of a node, by eve-api's numbers.
type KubeNodeConditionType uint8

// The conditions of a node.
const (
	KubeNodeConditionUnspecified KubeNodeConditionType = iota
	KubeNodeConditionReady
	KubeNodeConditionMemoryPressure
	KubeNodeConditionDiskPressure
	KubeNodeConditionPIDPressure
	KubeNodeConditionNetworkUnavailable
)

func (c KubeNodeConditionType) String() string {
	return enumName("KubeNodeConditionType", []string{"Unspecified", "Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}, c)
}

// KubeNodeCondition is one condition of a node.
type KubeNodeCondition struct {
	Type  KubeNodeConditionType
	Set   bool
	Since time.Time // its last transition
}

// KubePodInfo is one application pod of the report.
type KubePodInfo struct {
	Name              string
	Status            KubePodStatus
	RestartCount      uint32
	RestartTimestamp  TextTime
	CreationTimestamp TextTime
	PodIP             string
	NodeName          string
	// Reason is why the pod is as it is, in Kubernetes' word: ContainerCreating,
	// CrashLoopBackOff, Error, Evicted and others; EVE's agents skip it.
	Reason string `json:",omitempty"`
}

// KubeVMIInfo is one virtual machine instance of the report.
type KubeVMIInfo struct {
	Name               string
	Status             KubeVMIStatus
	CreationTime       time.Time
	LastTransitionTime time.Time
	IsReady            bool
	NodeName           string
}

// KubePodNameSpaceInfo counts the pods of a namespace by phase.
type KubePodNameSpaceInfo struct {
	Name              string
	PodCount          uint32 // of all phases
	PodRunningCount   uint32
	PodPendingCount   uint32
	PodFailedCount    uint32
	PodSucceededCount uint32
}

// KubeClusterInfo is the leader's report on the whole cluster, under key
// "global"; nobody else publishes it. Three parts are large-tagged: on a
// socket they travel by file (docs/wire.md, "Large fields").
type KubeClusterInfo struct {
	Nodes     []KubeNodeInfo
	AppPods   []KubePodInfo   `json:"pubsub-large-AppPods"`
	AppVMIs   []KubeVMIInfo   `json:"pubsub-large-AppVMIs"`
	Storage   KubeStorageInfo `json:"pubsub-large-Storage"`
	PodNsInfo []KubePodNameSpaceInfo
}

// ServiceStatus is how well a service of the cluster does, as EVE reports it.
type ServiceStatus int8

// The service states of docs/wire.md, "KubeClusterInfo": storage Health.
const (
	ServiceStatusUnset ServiceStatus = iota
	ServiceStatusFailed
	ServiceStatusDegraded
	ServiceStatusHealthy
)

func (s ServiceStatus) String() string {
	return enumName("ServiceStatus", []string{"Unset", "Failed", "Degraded", "Healthy"}, s)
}

// StorageVolumeState is where a volume stands on its way to and from a node.
type StorageVolumeState uint8

// The volume states of docs/wire.md, "KubeClusterInfo".
const (
	StorageVolumeStateUnknown StorageVolumeState = iota
	StorageVolumeStateCreating
	StorageVolumeStateAttached
	StorageVolumeStateDetached
	StorageVolumeStateAttaching
	StorageVolumeStateDetaching
	StorageVolumeStateDeleting
)

func (s StorageVolumeState) String() string {
	return enumName("StorageVolumeState", []string{"Unknown", "Creating", "Attached", "Detached", "Attaching", "Detaching", "Deleting"}, s)
}

// StorageVolumeRobustness is how many of a volume's replicas are good.
type StorageVolumeRobustness uint8

// The robustnesses of docs/wire.md, "KubeClusterInfo".
const (
	StorageVolumeRobustnessUnknown StorageVolumeRobustness = iota
	StorageVolumeRobustnessHealthy
	StorageVolumeRobustnessDegraded
	StorageVolumeRobustnessFaulted
)

func (r StorageVolumeRobustness) String() string {
	return enumName("StorageVolumeRobustness", []string{"Unknown", "Healthy", "Degraded", "Faulted"}, r)
}

// StorageVolumePvcStatus is the state of a volume's claim.
type StorageVolumePvcStatus uint8

// The claim states of docs/wire.md, "KubeClusterInfo".
const (
	StorageVolumePvcStatusUnknown StorageVolumePvcStatus = iota
	StorageVolumePvcStatusBound
	StorageVolumePvcStatusPending
	StorageVolumePvcStatusAvailable
	StorageVolumePvcStatusReleased
	StorageVolumePvcStatusFaulted
)

func (s StorageVolumePvcStatus) String() string {
	return enumName("StorageVolumePvcStatus", []string{"Unknown", "Bound", "Pending", "Available", "Released", "Faulted"}, s)
}

// StorageVolumeReplicaStatus is the state of one replica of a volume.
type StorageVolumeReplicaStatus uint8

// The replica states of docs/wire.md, "KubeClusterInfo".
const (
	StorageVolumeReplicaStatusUnknown StorageVolumeReplicaStatus = iota
	StorageVolumeReplicaStatusRebuilding
	StorageVolumeReplicaStatusOnline
	StorageVolumeReplicaStatusFailed
	StorageVolumeReplicaStatusOffline
	StorageVolumeReplicaStatusStarting
	StorageVolumeReplicaStatusStopping
)

func (s StorageVolumeReplicaStatus) String() string {
	return enumName("StorageVolumeReplicaStatus", []string{"Unknown", "Rebuilding", "Online", "Failed", "Offline", "Starting", "Stopping"}, s)
}

// StorageHealthStatus says how redundant a volume is and whether that gets
// better.
type StorageHealthStatus uint8

// The substates of docs/wire.md, "KubeClusterInfo": RobustnessSubstate.
const (
	StorageHealthStatusUnknown StorageHealthStatus = iota
	StorageHealthStatusHealthy
	StorageHealthStatusDegraded2ReplicaAvailableReplicating
	StorageHealthStatusDegraded2ReplicaAvailableNotReplicating
	StorageHealthStatusDegraded1ReplicaAvailableReplicating
	StorageHealthStatusDegraded1ReplicaAvailableNotReplicating
	StorageHealthStatusFailed
)

func (s StorageHealthStatus) String() string {
	return enumName("StorageHealthStatus", []string{
		"Unknown", "Healthy",
		"Degraded2ReplicaAvailableReplicating", "Degraded2ReplicaAvailableNotReplicating",
		"Degraded1ReplicaAvailableReplicating", "Degraded1ReplicaAvailableNotReplicating",
		"Failed",
	}, s)
}

// KubeVolumeReplicaInfo is one replica of a volume.
type KubeVolumeReplicaInfo struct {
	Name                      string
	OwnerNode                 string
	RebuildProgressPercentage uint8
	Status                    StorageVolumeReplicaStatus
}

// KubeVolumeInfo is one replicated volume of the report.
type KubeVolumeInfo struct {
	Name               string // of its claim
	State              StorageVolumeState
	Robustness         StorageVolumeRobustness
	CreatedAt          time.Time
	ProvisionedBytes   uint64
	AllocatedBytes     uint64
	PvcStatus          StorageVolumePvcStatus
	Replicas           []KubeVolumeReplicaInfo
	RobustnessSubstate StorageHealthStatus
	VolumeID           string // Name without its suffix -pvc-0
}

// KubeStorageInfo is the cluster's storage, a part of KubeClusterInfo.
type KubeStorageInfo struct {
	Health         ServiceStatus
	TransitionTime time.Time
	Volumes        []KubeVolumeInfo
}

// KubeReportHealth says how far what this node reports can be trusted, under
// key "global" (docs/wire.md, "KubeReportHealth").
type KubeReportHealth struct {
	Reports  bool            // this node reports for the cluster: it publishes KubeClusterInfo
	Sections []ReportSection // by name
}

// The sections of KubeReportHealth.
const (
	SectionNodes         = "Nodes"
	SectionAppPods       = "AppPods"
	SectionAppVMIs       = "AppVMIs"
	SectionStorage       = "Storage" // the volumes
	SectionNamespaces    = "PodNsInfo"
	SectionAllocated     = "AllocatedBytes" // the snapshots' part of the volumes
	SectionStorageHealth = "StorageHealth"
	SectionServices      = "UserService"
	SectionIngresses     = "UserIngress"
	SectionLBPool        = "LBPoolStatus"
)

// ReportSection is one part of a report.
type ReportSection struct {
	Name       string
	Known      bool      // it has been seen whole since this node began; else it is empty, or from a former run
	Updated    time.Time // when its content last changed here
	StaleSince time.Time // since when it cannot be brought up to date, wall clock; zero while it is
	Why        string    // why not, a sentence; "" while it is up to date
	Absent     bool      // the cluster has no such kind of object
	Total      int       // entries there are
	Truncated  int       // of them left out of the report, as it would be too large
	Without    string    // the field that every entry goes without for the same reason; "" for none
}

// FormerReports is what is known of the reports that a former run of the agent
// has left behind.
type FormerReports struct {
	Alive time.Time            // when that run was last seen to work, wall clock; zero if nobody knows of one
	Stale map[string]time.Time // by section: since when that run called it stale
}

// Since is since when a section may be untrue that is as the former run has left
// it. This run began at the given time.
func (f FormerReports) Since(section string, began time.Time) time.Time {
	for _, since := range []time.Time{f.Alive, f.Stale[section]} {
		if !since.IsZero() && since.Before(began) {
			began = since
		}
	}
	return began
}
