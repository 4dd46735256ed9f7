package types

import "time"

// KubeClusterMetrics is what the kubelets of all nodes measure, published by
// the node that reports for the cluster, under key "global" (docs/wire.md,
// "KubeClusterMetrics").
type KubeClusterMetrics struct {
	Nodes     []ClusterNodeMetrics `json:"pubsub-large-Nodes"` // by name
	Apps      []ClusterAppMetrics  `json:"pubsub-large-Apps"`  // pods of eve-kube-app but launchers, by name
	VMIs      []ClusterAppMetrics  `json:"pubsub-large-VMIs"`  // by the name of the virtual machine instance
	Truncated int                  // entries left out, as it would be too large
}

// ClusterNodeMetrics is one node.
type ClusterNodeMetrics struct {
	Name   string
	At     time.Time // of the look; zero where none succeeded yet
	Stale  string    `json:",omitempty"` // why the last look failed
	Cores  int
	CPU    *uint64 // nanocores
	Memory *uint64 // bytes in the working set
	Total  *uint64 // bytes of memory; nil for unknown
}

// ClusterAppMetrics is one pod or virtual machine.
type ClusterAppMetrics struct {
	Name   string
	App    string `json:",omitempty"` // the application's name at the controller; "" while it is not known
	Node   string
	CPU    *uint64 // nanocores
	Memory *uint64 // bytes in the working set
}

// KubeNodeMetrics is what the kubelet of this node measures, under key
// "global" (docs/wire.md, "KubeNodeMetrics"). What the container runtime leaves
// out is nil, not zero.
type KubeNodeMetrics struct {
	Node    string
	At      time.Time // of the newest look
	Every   time.Duration
	Stale   string // why no newer look succeeded, a sentence; "" where the newest did
	Metrics NodeMetrics
	Samples []NodeSample `json:",omitempty"` // of the node, the oldest first, at most eight
	Pods    []PodMetrics `json:"pubsub-large-Pods"`
	Omitted int          // pods and containers left out, as it would be too large
}

// NodeMetrics is one node at one moment.
type NodeMetrics struct {
	Cores           int     // allocatable or present; 0 for unknown
	CPU             *uint64 // nanocores in use
	CPUSeconds      *uint64 // nanoseconds of all cores since boot
	MemoryUsage     *uint64 // bytes
	MemoryWorking   *uint64 // bytes in the working set
	MemoryAvailable *uint64 // bytes
	NetworkReceived *uint64 // bytes since boot, of the interface the kubelet takes for the main one, else of all
	NetworkSent     *uint64 // bytes since boot
	FS              *FSMetrics
}

// NodeSample is a node as its kubelet measured it at one moment.
type NodeSample struct {
	At time.Time
	NodeMetrics
}

// FSMetrics is a file system or what a pod may use of it, in bytes.
type FSMetrics struct {
	Available *uint64
	Capacity  *uint64
	Used      *uint64
}

// PodMetrics is a pod with its last samples.
type PodMetrics struct {
	Namespace  string
	Name       string
	UID        string
	Samples    []PodSample // the oldest first, at most eight
	Ephemeral  *FSMetrics
	Volumes    []VolumeMetrics    `json:",omitzero"` // by name
	Containers []ContainerMetrics `json:",omitzero"` // by name
}

// PodSample is a pod at one moment.
type PodSample struct {
	At              time.Time
	CPU             *uint64 // nanocores
	CPUSeconds      *uint64 // nanoseconds since it began
	MemoryUsage     *uint64 // bytes
	MemoryWorking   *uint64 // bytes
	NetworkReceived *uint64 // bytes since it began
	NetworkSent     *uint64 // bytes since it began
}

// VolumeMetrics is a volume that a pod mounts.
type VolumeMetrics struct {
	Name  string
	Claim string // "" where it is none
	FSMetrics
}

// ContainerMetrics is a container with its last samples.
type ContainerMetrics struct {
	Name    string
	Started time.Time         `json:",omitzero"` // of this instance; zero for unknown
	Samples []ContainerSample // the oldest first, at most eight
}

// ContainerSample is a container at one moment. Counters are since it began.
type ContainerSample struct {
	At              time.Time
	CPU             *uint64 // nanocores
	CPUSeconds      *uint64 // nanoseconds
	MemoryUsage     *uint64 // bytes
	MemoryWorking   *uint64 // bytes in the working set
	Swap            *uint64 // bytes
	NetworkReceived *uint64 // bytes, of its pod
	NetworkSent     *uint64 // bytes, of its pod
	ReadBytes       *uint64
	WrittenBytes    *uint64
	IOBytes         *uint64 // both
	Reads           *uint64
	Writes          *uint64
	IOs             *uint64       // both
	FSUsed          *uint64       // bytes of its own file systems
	FileSystems     []DeviceUsage `json:",omitempty"` // by device, at most eight
}

// DeviceUsage is what a container takes of one file system.
type DeviceUsage struct {
	Device string // a block device; where only the kubelet's summary says something, rootfs or logs
	Used   uint64 // bytes
}

// MetricsLook asks the agent to look often for as long as it is renewed, under
// any key of zedkube-cli: someone watches.
type MetricsLook struct {
	At time.Time // of this renewal
}

// KubeletStats is one answer of a kubelet about its node (docs/wire.md,
// "KubeNodeMetrics"). What it does not say, or says senselessly, is nil.
type KubeletStats struct {
	Node    NodeMetrics // without Cores
	NodeAt  time.Time   // when that was measured
	Pods    []PodStats  // in the kubelet's order, each UID once
	Omitted int         // pods and containers left out, as there are too many
}

// PodStats is a pod as the kubelet measured it last.
type PodStats struct {
	Namespace  string
	Name       string
	UID        string
	Sample     PodSample
	Ephemeral  *FSMetrics
	Volumes    []VolumeMetrics // by name
	Containers []ContainerStats
}

// ContainerStats is a container as the kubelet measured it last.
type ContainerStats struct {
	Name    string
	Started time.Time // of this instance; zero for unknown
	Sample  ContainerSample
}

// ContainerID names a container of a pod; without Container the pod.
type ContainerID struct {
	Namespace string
	Pod       string
	Container string
}
