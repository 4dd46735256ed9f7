package evereport

import (
	"github.com/lf-edge/eve-api/go/info"

	"github.com/zedkube/zedkube/types"
)

var healths = table[types.ServiceStatus, info.ServiceStatus]{
	{types.ServiceStatusFailed, info.ServiceStatus_SERVICE_STATUS_FAILED},
	{types.ServiceStatusDegraded, info.ServiceStatus_SERVICE_STATUS_DEGRADED},
	{types.ServiceStatusHealthy, info.ServiceStatus_SERVICE_STATUS_HEALTHY},
}

var volumeStates = table[types.StorageVolumeState, info.StorageVolumeState]{
	{types.StorageVolumeStateCreating, info.StorageVolumeState_STORAGE_VOLUME_STATE_CREATING},
	{types.StorageVolumeStateAttached, info.StorageVolumeState_STORAGE_VOLUME_STATE_ATTACHED},
	{types.StorageVolumeStateDetached, info.StorageVolumeState_STORAGE_VOLUME_STATE_DETACHED},
	{types.StorageVolumeStateAttaching, info.StorageVolumeState_STORAGE_VOLUME_STATE_ATTACHING},
	{types.StorageVolumeStateDetaching, info.StorageVolumeState_STORAGE_VOLUME_STATE_DETACHING},
	{types.StorageVolumeStateDeleting, info.StorageVolumeState_STORAGE_VOLUME_STATE_DELETING},
}

var robustnesses = table[types.StorageVolumeRobustness, info.StorageVolumeRobustness]{
	{types.StorageVolumeRobustnessHealthy, info.StorageVolumeRobustness_STORAGE_VOLUME_ROBUSTNESS_HEALTHY},
	{types.StorageVolumeRobustnessDegraded, info.StorageVolumeRobustness_STORAGE_VOLUME_ROBUSTNESS_DEGRADED},
	{types.StorageVolumeRobustnessFaulted, info.StorageVolumeRobustness_STORAGE_VOLUME_ROBUSTNESS_FAULTED},
}

var claimStates = table[types.StorageVolumePvcStatus, info.StorageVolumePVCStatus]{
	{types.StorageVolumePvcStatusBound, info.StorageVolumePVCStatus_STORAGE_VOLUME_PVC_STATUS_BOUND},
	{types.StorageVolumePvcStatusPending, info.StorageVolumePVCStatus_STORAGE_VOLUME_PVC_STATUS_PENDING},
	{types.StorageVolumePvcStatusAvailable, info.StorageVolumePVCStatus_STORAGE_VOLUME_PVC_STATUS_AVAILABLE},
	{types.StorageVolumePvcStatusReleased, info.StorageVolumePVCStatus_STORAGE_VOLUME_PVC_STATUS_RELEASED},
	{types.StorageVolumePvcStatusFaulted, info.StorageVolumePVCStatus_STORAGE_VOLUME_PVC_STATUS_FAILED},
}

var replicaStates = table[types.StorageVolumeReplicaStatus, info.StorageVolumeReplicaStatus]{
	{types.StorageVolumeReplicaStatusRebuilding, info.StorageVolumeReplicaStatus_STORAGE_VOLUME_REPLICA_STATUS_REBUILDING},
	{types.StorageVolumeReplicaStatusOnline, info.StorageVolumeReplicaStatus_STORAGE_VOLUME_REPLICA_STATUS_ONLINE},
	{types.StorageVolumeReplicaStatusFailed, info.StorageVolumeReplicaStatus_STORAGE_VOLUME_REPLICA_STATUS_FAILED},
	{types.StorageVolumeReplicaStatusOffline, info.StorageVolumeReplicaStatus_STORAGE_VOLUME_REPLICA_STATUS_OFFLINE},
	{types.StorageVolumeReplicaStatusStarting, info.StorageVolumeReplicaStatus_STORAGE_VOLUME_REPLICA_STATUS_STARTING},
	{types.StorageVolumeReplicaStatusStopping, info.StorageVolumeReplicaStatus_STORAGE_VOLUME_REPLICA_STATUS_STOPPING},
}

var substates = table[types.StorageHealthStatus, info.StorageHealthStatus]{
	{types.StorageHealthStatusHealthy, info.StorageHealthStatus_STORAGE_HEALTH_STATUS_HEALTHY},
	{types.StorageHealthStatusDegraded2ReplicaAvailableReplicating, info.StorageHealthStatus_STORAGE_HEALTH_STATUS_DEGRADED_2_REPLICA_AVAILABLE_REPLICATING},
	{types.StorageHealthStatusDegraded2ReplicaAvailableNotReplicating, info.StorageHealthStatus_STORAGE_HEALTH_STATUS_DEGRADED_2_REPLICA_AVAILABLE_NOT_REPLICATING},
	{types.StorageHealthStatusDegraded1ReplicaAvailableReplicating, info.StorageHealthStatus_STORAGE_HEALTH_STATUS_DEGRADED_1_REPLICA_AVAILABLE_REPLICATING},
	{types.StorageHealthStatusDegraded1ReplicaAvailableNotReplicating, info.StorageHealthStatus_STORAGE_HEALTH_STATUS_DEGRADED_1_REPLICA_AVAILABLE_NOT_REPLICATING},
	{types.StorageHealthStatusFailed, info.StorageHealthStatus_STORAGE_HEALTH_STATUS_FAILED},
}
