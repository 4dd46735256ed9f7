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

// String returns the name of the value.
func (s KubeNodeStatus) String() string {
	return enumName("KubeNodeStatus", []string{"Unknown", "Ready", "NotReady", "NotReachable"}, s)
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

// String returns the name of the value.
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

// String returns the name of the value.
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

// String returns the name of the value.
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

// String returns the name of the value.
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
	PodCount          uint32
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
