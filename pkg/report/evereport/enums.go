package evereport

import (
	"github.com/lf-edge/eve-api/go/info"

	"github.com/zedkube/zedkube/types"
)

// pair is a value and the same in eve-api.
type pair[T, M comparable] struct {
	own T
	eve M
}

// table is an enum and the same in eve-api. Zero stands for unknown in both,
// and for what is not in the table.
type table[T, M comparable] []pair[T, M]

func (t table[T, M]) toEVE(v T) (m M) {
	for _, p := range t {
		if p.own == v {
			return p.eve
		}
	}
	return m
}

var admissions = table[types.KubeNodeAdmission, info.NodeAdmission]{
	{types.KubeNodeAdmissionNotClustered, info.NodeAdmission_NODE_ADMISSION_NOT_CLUSTERED},
	{types.KubeNodeAdmissionLeaving, info.NodeAdmission_NODE_ADMISSION_LEAVING},
	{types.KubeNodeAdmissionJoining, info.NodeAdmission_NODE_ADMISSION_JOINING},
	{types.KubeNodeAdmissionJoined, info.NodeAdmission_NODE_ADMISSION_JOINED},
}

var conditions = table[types.KubeNodeConditionType, info.KubeNodeConditionType]{
	{types.KubeNodeConditionReady, info.KubeNodeConditionType_KUBE_NODE_CONDITION_TYPE_READY},
	{types.KubeNodeConditionMemoryPressure, info.KubeNodeConditionType_KUBE_NODE_CONDITION_TYPE_MEMORY_PRESSURE},
	{types.KubeNodeConditionDiskPressure, info.KubeNodeConditionType_KUBE_NODE_CONDITION_TYPE_DISK_PRESSURE},
	{types.KubeNodeConditionPIDPressure, info.KubeNodeConditionType_KUBE_NODE_CONDITION_TYPE_PID_PRESSURE},
	{types.KubeNodeConditionNetworkUnavailable, info.KubeNodeConditionType_KUBE_NODE_CONDITION_TYPE_NETWORK_UNAVAIL},
}

var phases = table[types.KubePodStatus, info.KubePodStatus]{
	{types.KubePodPending, info.KubePodStatus_KUBE_POD_STATUS_PENDING},
	{types.KubePodRunning, info.KubePodStatus_KUBE_POD_STATUS_RUNNING},
	{types.KubePodSucceeded, info.KubePodStatus_KUBE_POD_STATUS_SUCCEEDED},
	{types.KubePodFailed, info.KubePodStatus_KUBE_POD_STATUS_FAILED},
}

// podReasons are the states of a pod that eve-api tells from its phase, by the
// reason; the first of a state is the one that it is read back as.
var podReasons = table[string, info.KubePodStatus]{
	{"Evicted", info.KubePodStatus_KUBE_POD_STATUS_EVICTED},
	{"ContainerCreating", info.KubePodStatus_KUBE_POD_STATUS_CONTAINER_CREATING},
	{"PodInitializing", info.KubePodStatus_KUBE_POD_STATUS_CONTAINER_CREATING},
	{"CrashLoopBackOff", info.KubePodStatus_KUBE_POD_STATUS_CRASHLOOP_BACKOFF},
	{"Error", info.KubePodStatus_KUBE_POD_STATUS_ERROR},
	{"OOMKilled", info.KubePodStatus_KUBE_POD_STATUS_ERROR},
	{"StartError", info.KubePodStatus_KUBE_POD_STATUS_ERROR},
	{"ContainerCannotRun", info.KubePodStatus_KUBE_POD_STATUS_ERROR},
}

var vmiPhases = table[types.KubeVMIStatus, info.KubeVMIStatus]{
	{types.KubeVMIPending, info.KubeVMIStatus_KUBE_VMI_STATUS_PENDING},
	{types.KubeVMIScheduling, info.KubeVMIStatus_KUBE_VMI_STATUS_SCHEDULING},
	{types.KubeVMIScheduled, info.KubeVMIStatus_KUBE_VMI_STATUS_SCHEDULED},
	{types.KubeVMIRunning, info.KubeVMIStatus_KUBE_VMI_STATUS_RUNNING},
	{types.KubeVMISucceeded, info.KubeVMIStatus_KUBE_VMI_STATUS_SUCCEEDED},
	{types.KubeVMIFailed, info.KubeVMIStatus_KUBE_VMI_STATUS_FAILED},
	{types.KubeVMIUnknown, info.KubeVMIStatus_KUBE_VMI_STATUS_UNKNOWN},
}

var components = table[types.KubeComp, info.KubeComp]{
	{types.KubeCompContainerd, info.KubeComp_KUBE_COMP_CONTAINERD},
	{types.KubeCompK3s, info.KubeComp_KUBE_COMP_K3S},
	{types.KubeCompMultus, info.KubeComp_KUBE_COMP_MULTUS},
	{types.KubeCompKubevirt, info.KubeComp_KUBE_COMP_KUBEVIRT},
	{types.KubeCompCdi, info.KubeComp_KUBE_COMP_CDI},
	{types.KubeCompLonghorn, info.KubeComp_KUBE_COMP_LONGHORN},
}

var updates = table[types.KubeCompUpdateStatus, info.KubeCompUpdateStatus]{
	{types.KubeCompUpdateDownload, info.KubeCompUpdateStatus_KUBE_COMP_UPDATE_STATUS_DOWNLOAD},
	{types.KubeCompUpdateDownloadFailed, info.KubeCompUpdateStatus_KUBE_COMP_UPDATE_STATUS_DOWNLOAD_FAILED},
	{types.KubeCompUpdateInProgress, info.KubeCompUpdateStatus_KUBE_COMP_UPDATE_STATUS_IN_PROGRESS},
	{types.KubeCompUpdateFailed, info.KubeCompUpdateStatus_KUBE_COMP_UPDATE_STATUS_FAILED},
	{types.KubeCompUpdateCompleted, info.KubeCompUpdateStatus_KUBE_COMP_UPDATE_STATUS_COMPLETED},
}

var severities = table[types.ErrorSeverity, info.Severity]{
	{types.ErrorSeverityNotice, info.Severity_SEVERITY_NOTICE},
	{types.ErrorSeverityWarning, info.Severity_SEVERITY_WARNING},
	{types.ErrorSeverityError, info.Severity_SEVERITY_ERROR},
}

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
