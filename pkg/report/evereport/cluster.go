package evereport

import (
	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/info"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/zedkube/zedkube/types"
)

// Cluster is the message of a cluster's report. Unlike zedagent's it tells
// servers from workers, has the conditions beside Ready, the states of pods
// that follow from their reason, and the counts of namespaces.
func Cluster(r types.KubeClusterInfo, cluster uuid.UUID) *info.ZInfoKubeCluster {
	return &info.ZInfoKubeCluster{
		Nodes:         each(r.Nodes, nodeInfo),
		PodNameSpaces: each(r.PodNsInfo, namespace),
		EveApps:       each(r.AppPods, pod),
		Storage:       storage(r.Storage),
		ClusterId:     id(cluster),
		EveVmApps:     each(r.AppVMIs, vmi),
	}
}

func nodeInfo(n types.KubeNodeInfo) *info.KubeNodeInfo {
	return &info.KubeNodeInfo{
		Name:              text(n.Name),
		Conditions:        nodeConditions(n),
		RoleServer:        n.IsMaster,
		CreationTimestamp: stamp(n.CreationTime),
		ApiServerSersion:  text(n.KubeletVersion),
		InternalIp:        text(n.InternalIP),
		Schedulable:       n.Schedulable,
		AdmissionStatus:   enum[info.NodeAdmission](n.Admission),
		NodeId:            text(n.NodeID),
	}
}

// nodeConditions is Ready, which a node without such a condition has not, and
// the others. A node that is not reachable is not Ready: the message knows no
// third state.
func nodeConditions(n types.KubeNodeInfo) []*info.KubeNodeCondition {
	var all []*info.KubeNodeCondition
	if n.Status != types.KubeNodeUnknown {
		all = append(all, &info.KubeNodeCondition{
			Type:               info.KubeNodeConditionType_KUBE_NODE_CONDITION_TYPE_READY,
			Set:                n.Status == types.KubeNodeReady,
			LastTransitionTime: stamp(n.LastTransitionTime),
		})
	}
	for _, c := range n.Conditions {
		if c.Type != types.KubeNodeConditionReady { // Status has told it
			all = append(all, &info.KubeNodeCondition{Type: enum[info.KubeNodeConditionType](c.Type), Set: c.Set, LastTransitionTime: stamp(c.Since)})
		}
	}
	return all
}

func namespace(n types.KubePodNameSpaceInfo) *info.KubePodNameSpaceInfo {
	return &info.KubePodNameSpaceInfo{
		Name: text(n.Name), PodCount: n.PodCount, PodRunningCount: n.PodRunningCount, PodPendingCount: n.PodPendingCount,
		PodFailedCount: n.PodFailedCount, PodSucceededCount: n.PodSucceededCount,
	}
}

func pod(p types.KubePodInfo) *info.KubeEVEAppPodInfo {
	return &info.KubeEVEAppPodInfo{
		Name: text(p.Name), Status: podState(p.Status, p.Reason), RestartCount: p.RestartCount,
		RestartTimestamp: stamp(p.RestartTimestamp.Time()), CreationTimestamp: stamp(p.CreationTimestamp.Time()),
		IpAddress: text(p.PodIP), NodeName: text(p.NodeName),
	}
}

// podState is what eve-api's more special state says, where the reason gives
// one, and else the phase. An image that cannot be pulled and a pod that cannot
// be scheduled have no state of their own: they are pending, and not creating,
// which would look like progress. What has succeeded has, whatever ended on the
// way.
func podState(phase types.KubePodStatus, reason string) info.KubePodStatus {
	if special := podReasons[reason]; special != info.KubePodStatus_KUBE_POD_STATUS_UNSPECIFIED && phase != types.KubePodSucceeded {
		return special
	}
	return phases[phase]
}

func vmi(v types.KubeVMIInfo) *info.KubeVMIInfo {
	return &info.KubeVMIInfo{
		Name: text(v.Name), Status: enum[info.KubeVMIStatus](v.Status), CreationTime: stamp(v.CreationTime),
		LastTransitionTime: stamp(v.LastTransitionTime), IsReady: v.IsReady, NodeName: text(v.NodeName),
	}
}

func storage(s types.KubeStorageInfo) *info.KubeStorageInfo {
	return &info.KubeStorageInfo{
		Health: enum[info.ServiceStatus](s.Health), TransitionTime: stamp(s.TransitionTime), Volumes: each(s.Volumes, volume),
	}
}

func volume(v types.KubeVolumeInfo) *info.KubeVolumeInfo {
	return &info.KubeVolumeInfo{
		Name: text(v.Name), State: enum[info.StorageVolumeState](v.State), Robustness: enum[info.StorageVolumeRobustness](v.Robustness),
		CreationTimestamp: stamp(v.CreatedAt), ProvisionedBytes: v.ProvisionedBytes, AllocatedBytes: v.AllocatedBytes,
		PvcStatus: enum[info.StorageVolumePVCStatus](v.PvcStatus), Replica: each(v.Replicas, replica),
		RobustnessSubstate: enum[info.StorageHealthStatus](v.RobustnessSubstate), VolumeId: text(v.VolumeID),
	}
}

func replica(r types.KubeVolumeReplicaInfo) *info.KubeVolumeReplicaInfo {
	return &info.KubeVolumeReplicaInfo{
		Name: text(r.Name), OwnerNode: text(r.OwnerNode),
		RebuildProgressPercentage: uint32(r.RebuildProgressPercentage), Status: enum[info.StorageVolumeReplicaStatus](r.Status),
	}
}

// Node is the message of the own node, whose enum has the same numbers.
func Node(s types.KubeNodeStatus) *info.ZInfoClusterNode {
	return &info.ZInfoClusterNode{NodeStatus: enum[info.ZInfoClusterNodeStatus](s)}
}

// App is the part of an application's message that zedkube knows: which one it
// is, and whether it is scheduled on this node, in whatever state. Its other
// fields are zedmanager's, and stay empty.
func App(a types.ENClusterAppStatus, cfg types.AppInstanceConfig) *info.ZInfoApp {
	return &info.ZInfoApp{
		AppID: id(a.AppUUID), AppVersion: text(cfg.UUIDandVersion.Version), AppName: text(cfg.DisplayName),
		ClusterAppRunning: a.ScheduledOnThisNode,
	}
}

// Update is the message of an update of the kube container's components. It
// has an error only where there is one; the version that is updated to has no
// field.
func Update(u types.KubeClusterUpdateStatus, cluster uuid.UUID) *info.ZInfoKubeClusterUpdateStatus {
	return &info.ZInfoKubeClusterUpdateStatus{
		CurrentNode: text(u.CurrentNode),
		Component:   enum[info.KubeComp](u.Component),
		Status:      enum[info.KubeCompUpdateStatus](u.Status),
		Error:       errorInfo(u.ErrorDescription),
		ClusterId:   id(cluster),
	}
}

func errorInfo(e types.ErrorDescription) *info.ErrorInfo {
	if e.Error == "" {
		return nil
	}
	m := &info.ErrorInfo{
		Description: text(e.Error), Timestamp: stamp(e.ErrorTime), Severity: enum[info.Severity](e.ErrorSeverity),
		RetryCondition: text(e.ErrorRetryCondition),
	}
	for _, entity := range e.ErrorEntities {
		if entity != nil {
			m.Entities = append(m.Entities, &info.DeviceEntity{Entity: enum[info.Entity](entity.EntityType), EntityId: text(entity.EntityID)})
		}
	}
	return m
}

// eveEnum is an enum of eve-api.
type eveEnum interface {
	~int32
	protoreflect.Enum
}

// enum is the same value in eve-api, from which EVE has the numbers of its enums; unspecified where it lacks the
// number.
func enum[M eveEnum, T ~int8 | ~uint8 | ~int32](v T) M {
	var unspecified M
	if unspecified.Descriptor().Values().ByNumber(protoreflect.EnumNumber(v)) == nil {
		return unspecified
	}
	return M(v)
}

// phases are the states of a pod as its phase tells them: here the numbers differ.
var phases = map[types.KubePodStatus]info.KubePodStatus{
	types.KubePodPending:   info.KubePodStatus_KUBE_POD_STATUS_PENDING,
	types.KubePodRunning:   info.KubePodStatus_KUBE_POD_STATUS_RUNNING,
	types.KubePodSucceeded: info.KubePodStatus_KUBE_POD_STATUS_SUCCEEDED,
	types.KubePodFailed:    info.KubePodStatus_KUBE_POD_STATUS_FAILED,
}

// podReasons are the states of a pod that eve-api tells from its phase, by the reason.
var podReasons = map[string]info.KubePodStatus{
	"Evicted":            info.KubePodStatus_KUBE_POD_STATUS_EVICTED,
	"ContainerCreating":  info.KubePodStatus_KUBE_POD_STATUS_CONTAINER_CREATING,
	"PodInitializing":    info.KubePodStatus_KUBE_POD_STATUS_CONTAINER_CREATING,
	"CrashLoopBackOff":   info.KubePodStatus_KUBE_POD_STATUS_CRASHLOOP_BACKOFF,
	"Error":              info.KubePodStatus_KUBE_POD_STATUS_ERROR,
	"OOMKilled":          info.KubePodStatus_KUBE_POD_STATUS_ERROR,
	"StartError":         info.KubePodStatus_KUBE_POD_STATUS_ERROR,
	"ContainerCannotRun": info.KubePodStatus_KUBE_POD_STATUS_ERROR,
}
