package evereport

import (
	"time"

	"github.com/lf-edge/eve-api/go/info"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/zedkube/zedkube/types"
)

// ClusterInfo is the report that the message was made of, as far as it tells.
// Lost are UsesEtcd and ExternalIP of a node, whether one that is not Ready is
// reachable, the reason of a pod whose state is its phase, and the phase of one
// whose state is its reason.
func ClusterInfo(m *info.ZInfoKubeCluster) types.KubeClusterInfo {
	return types.KubeClusterInfo{
		Nodes:     each(m.GetNodes(), nodeBack),
		AppPods:   each(m.GetEveApps(), podBack),
		AppVMIs:   each(m.GetEveVmApps(), vmiBack),
		Storage:   storageBack(m.GetStorage()),
		PodNsInfo: each(m.GetPodNameSpaces(), namespaceBack),
	}
}

func nodeBack(m *info.KubeNodeInfo) types.KubeNodeInfo {
	n := types.KubeNodeInfo{
		Name: m.GetName(), IsMaster: m.GetRoleServer(), CreationTime: moment(m.GetCreationTimestamp()),
		KubeletVersion: m.GetApiServerSersion(), InternalIP: m.GetInternalIp(), Schedulable: m.GetSchedulable(),
		Admission: types.KubeNodeAdmission(m.GetAdmissionStatus()), NodeID: m.GetNodeId(),
	}
	for _, c := range m.GetConditions() {
		since := moment(c.GetLastTransitionTime())
		switch {
		case c.GetType() != info.KubeNodeConditionType_KUBE_NODE_CONDITION_TYPE_READY:
			n.Conditions = append(n.Conditions, types.KubeNodeCondition{Type: types.KubeNodeConditionType(c.GetType()), Set: c.GetSet(), Since: since})
		case c.GetSet():
			n.Status, n.LastTransitionTime = types.KubeNodeReady, since
		default:
			n.Status, n.LastTransitionTime = types.KubeNodeNotReady, since
		}
	}
	return n
}

func namespaceBack(m *info.KubePodNameSpaceInfo) types.KubePodNameSpaceInfo {
	return types.KubePodNameSpaceInfo{
		Name: m.GetName(), PodCount: m.GetPodCount(), PodRunningCount: m.GetPodRunningCount(), PodPendingCount: m.GetPodPendingCount(),
		PodFailedCount: m.GetPodFailedCount(), PodSucceededCount: m.GetPodSucceededCount(),
	}
}

func podBack(m *info.KubeEVEAppPodInfo) types.KubePodInfo {
	back := podStates[m.GetStatus()]
	return types.KubePodInfo{
		Name: m.GetName(), Status: back.phase, RestartCount: m.GetRestartCount(),
		RestartTimestamp: types.TextTime(moment(m.GetRestartTimestamp())), CreationTimestamp: types.TextTime(moment(m.GetCreationTimestamp())),
		PodIP: m.GetIpAddress(), NodeName: m.GetNodeName(), Reason: back.reason,
	}
}

func vmiBack(m *info.KubeVMIInfo) types.KubeVMIInfo {
	return types.KubeVMIInfo{
		Name: m.GetName(), Status: types.KubeVMIStatus(m.GetStatus()), CreationTime: moment(m.GetCreationTime()),
		LastTransitionTime: moment(m.GetLastTransitionTime()), IsReady: m.GetIsReady(), NodeName: m.GetNodeName(),
	}
}

func storageBack(m *info.KubeStorageInfo) types.KubeStorageInfo {
	return types.KubeStorageInfo{
		Health: types.ServiceStatus(m.GetHealth()), TransitionTime: moment(m.GetTransitionTime()), Volumes: each(m.GetVolumes(), volumeBack),
	}
}

func volumeBack(m *info.KubeVolumeInfo) types.KubeVolumeInfo {
	return types.KubeVolumeInfo{
		Name: m.GetName(), State: types.StorageVolumeState(m.GetState()), Robustness: types.StorageVolumeRobustness(m.GetRobustness()),
		CreatedAt: moment(m.GetCreationTimestamp()), ProvisionedBytes: m.GetProvisionedBytes(), AllocatedBytes: m.GetAllocatedBytes(),
		PvcStatus: types.StorageVolumePvcStatus(m.GetPvcStatus()), Replicas: each(m.GetReplica(), replicaBack),
		RobustnessSubstate: types.StorageHealthStatus(m.GetRobustnessSubstate()), VolumeID: m.GetVolumeId(),
	}
}

func replicaBack(m *info.KubeVolumeReplicaInfo) types.KubeVolumeReplicaInfo {
	return types.KubeVolumeReplicaInfo{
		Name: m.GetName(), OwnerNode: m.GetOwnerNode(),
		RebuildProgressPercentage: uint8(min(m.GetRebuildProgressPercentage(), 255)), Status: types.StorageVolumeReplicaStatus(m.GetStatus()),
	}
}

// podStates are the phase that a pod of a state has as a rule, and its reason where
// the state is that: both are lost on the way.
var podStates = map[info.KubePodStatus]struct {
	phase  types.KubePodStatus
	reason string
}{
	info.KubePodStatus_KUBE_POD_STATUS_PENDING:            {types.KubePodPending, ""},
	info.KubePodStatus_KUBE_POD_STATUS_RUNNING:            {types.KubePodRunning, ""},
	info.KubePodStatus_KUBE_POD_STATUS_SUCCEEDED:          {types.KubePodSucceeded, ""},
	info.KubePodStatus_KUBE_POD_STATUS_FAILED:             {types.KubePodFailed, ""},
	info.KubePodStatus_KUBE_POD_STATUS_EVICTED:            {types.KubePodFailed, "Evicted"},
	info.KubePodStatus_KUBE_POD_STATUS_CONTAINER_CREATING: {types.KubePodPending, "ContainerCreating"},
	info.KubePodStatus_KUBE_POD_STATUS_CRASHLOOP_BACKOFF:  {types.KubePodRunning, "CrashLoopBackOff"},
	info.KubePodStatus_KUBE_POD_STATUS_ERROR:              {types.KubePodFailed, "Error"},
}

// moment is the time of a stamp, zero for none.
func moment(s *timestamppb.Timestamp) time.Time {
	if !s.IsValid() {
		return time.Time{}
	}
	return s.AsTime()
}
