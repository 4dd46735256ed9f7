package evereport

import (
	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/info"

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
		AdmissionStatus:   admissions.toEVE(n.Admission),
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
			all = append(all, &info.KubeNodeCondition{Type: conditions.toEVE(c.Type), Set: c.Set, LastTransitionTime: stamp(c.Since)})
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
	special := podReasons.toEVE(reason)
	if special == info.KubePodStatus_KUBE_POD_STATUS_UNSPECIFIED || phase == types.KubePodSucceeded {
		return phases.toEVE(phase)
	}
	return special
}

func vmi(v types.KubeVMIInfo) *info.KubeVMIInfo {
	return &info.KubeVMIInfo{
		Name: text(v.Name), Status: vmiPhases.toEVE(v.Status), CreationTime: stamp(v.CreationTime),
		LastTransitionTime: stamp(v.LastTransitionTime), IsReady: v.IsReady, NodeName: text(v.NodeName),
	}
}

func storage(s types.KubeStorageInfo) *info.KubeStorageInfo {
	return &info.KubeStorageInfo{
		Health: healths.toEVE(s.Health), TransitionTime: stamp(s.TransitionTime), Volumes: each(s.Volumes, volume),
	}
}

func volume(v types.KubeVolumeInfo) *info.KubeVolumeInfo {
	return &info.KubeVolumeInfo{
		Name: text(v.Name), State: volumeStates.toEVE(v.State), Robustness: robustnesses.toEVE(v.Robustness),
		CreationTimestamp: stamp(v.CreatedAt), ProvisionedBytes: v.ProvisionedBytes, AllocatedBytes: v.AllocatedBytes,
		PvcStatus: claimStates.toEVE(v.PvcStatus), Replica: each(v.Replicas, replica),
		RobustnessSubstate: substates.toEVE(v.RobustnessSubstate), VolumeId: text(v.VolumeID),
	}
}

func replica(r types.KubeVolumeReplicaInfo) *info.KubeVolumeReplicaInfo {
	return &info.KubeVolumeReplicaInfo{
		Name: text(r.Name), OwnerNode: text(r.OwnerNode),
		RebuildProgressPercentage: uint32(r.RebuildProgressPercentage), Status: replicaStates.toEVE(r.Status),
	}
}

// OwnNode is how the cluster sees the device's own node.
type OwnNode struct {
	Answers bool                  // the API server does
	Ready   types.ConditionStatus // the Ready condition; "" for none, or for no Node
}

// Node is the message of the own node. One that the cluster does not list is
// not ready.
func Node(n OwnNode) *info.ZInfoClusterNode {
	switch {
	case !n.Answers:
		return &info.ZInfoClusterNode{NodeStatus: info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_DOWN}
	case n.Ready == types.ConditionTrue:
		return &info.ZInfoClusterNode{NodeStatus: info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_READY}
	}
	return &info.ZInfoClusterNode{NodeStatus: info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_NOTREADY}
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
		Component:   components.toEVE(u.Component),
		Status:      updates.toEVE(u.Status),
		Error:       errorInfo(u.ErrorDescription),
		ClusterId:   id(cluster),
	}
}

func errorInfo(e types.ErrorDescription) *info.ErrorInfo {
	if e.Error == "" {
		return nil
	}
	m := &info.ErrorInfo{
		Description: text(e.Error), Timestamp: stamp(e.ErrorTime), Severity: severities.toEVE(e.ErrorSeverity),
		RetryCondition: text(e.ErrorRetryCondition),
	}
	for _, entity := range e.ErrorEntities {
		if entity != nil {
			m.Entities = append(m.Entities, &info.DeviceEntity{Entity: kind(entity.EntityType), EntityId: text(entity.EntityID)})
		}
	}
	return m
}

// kind is the type of an entity, whose numbers EVE takes from eve-api.
func kind(number int32) info.Entity {
	if _, known := info.Entity_name[number]; !known {
		return info.Entity_ENTITY_UNSPECIFIED
	}
	return info.Entity(number)
}
