package types

import (
	"time"

	"github.com/google/uuid"
)

// ClusterPeers is what this node knows of the other nodes of its cluster, and of
// the data on its own disks, for when the cluster cannot be asked any more: under
// key "global" of a persistent topic (docs/wire.md, "ClusterPeers").
type ClusterPeers struct {
	Cluster   uuid.UUID
	Seen      time.Time     // when the cluster last told of the peers, wall clock, to the hour
	Peers     []ClusterPeer // by name
	Words     []PeerWord    // what they last said of each other
	Volumes   []LeaveVolume // with a replica on this node, at most MaxLeaveVolumes
	Omitted   int           // how many more there are
	VolumesAt time.Time     // when they were last looked at, wall clock; zero for never
}

// ClusterPeer is another node of the cluster.
type ClusterPeer struct {
	Name      string
	UUID      string   // of its device, "" for unknown
	Addresses []string // where it may answer
}

// PeerWord is what a witness last said of a node that was not Ready.
type PeerWord struct {
	By    string
	Of    string
	Alive string    // where it answered; "" where it was silent
	At    time.Time // when this node heard of it, wall clock
}

// LeaveWithoutCluster is an operator's word that the cluster is dead
// (docs/wire.md, "ClusterLeaveRequest").
type LeaveWithoutCluster struct {
	Dead []string // names of all the other nodes, which he knows to be off
}

// WithoutClusterState is how far the evidence for a leave without the cluster is.
type WithoutClusterState string

// The states of the evidence.
const (
	WithoutLooking WithoutClusterState = "looking" // nothing has answered so far
	WithoutProved  WithoutClusterState = "proved"  // nothing has for ten minutes
	WithoutRefused WithoutClusterState = "refused" // the request is over; it can be made again
)

// WithoutCluster is what this node finds out about a request to leave without
// the cluster, under key "global" (docs/wire.md, "WithoutCluster").
type WithoutCluster struct {
	RequestedAt time.Time // of that request
	State       WithoutClusterState
	Reason      string        // a sentence
	Proved      time.Duration `json:",omitempty"` // since the boot, when it was proved; 0 for not
	SilentSince time.Time     // since when nothing has answered, wall clock; zero while the count has not begun
}

// WithoutDecision is a decided leave without the cluster. It is stronger than a
// configuration of the same cluster that is still valid.
type WithoutDecision struct {
	Cluster uuid.UUID
	At      time.Time // wall clock
	Dead    []string  // the nodes that were named
	Consent *LeaveConsent
}
