package evereport

import (
	"github.com/lf-edge/eve-api/go/info"

	"github.com/zedkube/zedkube/types"
)

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
