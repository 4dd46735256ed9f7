package types

import (
	"github.com/google/uuid"
)

// AppKubeStatus is what the cluster knows of an application.
type AppKubeStatus uint8

// The states of docs/wire.md, "ENClusterAppStatus".
const (
	AppKubeUnknown AppKubeStatus = iota
	AppKubeAPIUnreachable
	AppKubeNotInCluster
	AppKubeNotRunning
	AppKubeRunning
)

// String returns EVE's name of the state.
func (s AppKubeStatus) String() string {
	return enumName("AppKubeStatus", []string{"Unknown", "APIUnreachable", "NotInCluster", "NotRunningState", "RunningState"}, s)
}

// ENClusterAppStatus tells zedmanager where an application stands in the
// cluster, keyed by the application's UUID. StatusRunning is for builds of
// zedmanager older than AppKubeStatus.
type ENClusterAppStatus struct {
	AppUUID             uuid.UUID
	IsDNidNode          bool
	ScheduledOnThisNode bool
	StatusRunning       bool
	AppKubeStatus       AppKubeStatus
	AppIsVMI            bool
	VMIName             string
	VNCPort             uint32
}
