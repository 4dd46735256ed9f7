// Package types stands in for EVE's: what the patch reads.
package types

import "github.com/lf-edge/eve-api/go/info"

type UUID string

func (u UUID) String() string { return string(u) }

type UUIDandVersion struct {
	UUID    UUID
	Version string
}

type SwState int

func (s SwState) ZSwState() info.ZSwState { return info.ZSwState(s) }

type AppInstanceStatus struct {
	UUIDandVersion            UUIDandVersion
	DisplayName               string
	DomainName                string
	State                     SwState
	Activated                 bool
	NoUploadStatsToController bool
}

func (s AppInstanceStatus) Key() string { return s.UUIDandVersion.UUID.String() }

type EdgeNodeClusterConfig struct{ ClusterID UUIDandVersion }

type AppKubeStatus uint8

const (
	AppKubeStatusUnknown AppKubeStatus = iota
	AppKubeStatusAPIUnreachable
)

type ENClusterAppStatus struct {
	ScheduledOnThisNode bool
	AppKubeStatus       AppKubeStatus
}
