package types

import "time"

// ServiceStatus is how well a service of the cluster does, as EVE reports it.
type ServiceStatus int8

// The service states of docs/wire.md, "KubeClusterInfo": storage Health.
const (
	ServiceStatusUnset ServiceStatus = iota
	ServiceStatusFailed
	ServiceStatusDegraded
	ServiceStatusHealthy
)

// String returns the name of the value.
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

// String returns the name of the value.
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

// String returns the name of the value.
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

// String returns the name of the value.
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

// String returns the name of the value.
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

// String returns the name of the value.
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
