package types

import "github.com/google/uuid"

// VolumeConfig is zedagent's word on one volume. Fields zedkube has no use for
// are left out. The last two are the controller's and not in EVE's topic.
type VolumeConfig struct {
	VolumeID          uuid.UUID
	MaxVolSize        uint64 // bytes
	ReadOnly          bool
	GenerationCounter int64 // one more is a volume built again
	DisplayName       string
	DesignatedNodeID  uuid.UUID   // the device that makes the volume; nil for every device
	ReplicaNodeIDs    []uuid.UUID // the devices that hold replicas; nil for "not given"
}
