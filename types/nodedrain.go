package types

import (
	"time"
)

// DrainRequester says who asked for a drain.
type DrainRequester uint8

// The requesters of docs/wire.md, "NodeDrainRequest".
const (
	DrainRequesterUnset DrainRequester = iota
	DrainRequesterNone
	DrainRequesterDeviceOp // zedagent: reboot or shutdown
	DrainRequesterUpdate   // baseosmgr: base OS update
)

// String returns EVE's name of the requester.
func (r DrainRequester) String() string {
	return enumName("DrainRequester", []string{"UNSET", "NONE", "DEVICEOP", "UPDATE"}, r)
}

// DrainStatus is where a node stands on its way to being empty.
type DrainStatus uint8

// The states of docs/wire.md, "NodeDrainStatus".
const (
	DrainUnknown DrainStatus = iota
	DrainNotSupported
	DrainNotRequested
	DrainRequested
	DrainStarting
	DrainCordoned
	DrainFailedCordon
	DrainRetrying
	DrainFailedDrain
	DrainComplete
)

// String returns EVE's name of the state.
func (s DrainStatus) String() string {
	return enumName("DrainStatus", []string{
		"UNKNOWN", "NOTSUPPORTED", "NOTREQUESTED", "REQUESTED", "STARTING",
		"CORDONED", "FAILEDCORDON", "DRAINRETRYING", "FAILEDDRAIN", "COMPLETE",
	}, s)
}

// NodeDrainRequest asks for this node to be emptied, under key "global" of
// zedagent or of baseosmgr.
type NodeDrainRequest struct {
	RequestedAt time.Time
	RequestedBy DrainRequester
	Context     string
}

// NodeDrainStatus answers the requesters, under key "global". Each consumer
// drops a value whose RequestedBy is not its own.
type NodeDrainStatus struct {
	Status      DrainStatus
	RequestedBy DrainRequester
}
