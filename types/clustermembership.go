package types

import (
	"time"

	"github.com/google/uuid"
)

// Membership is whether this device belongs to a cluster.
type Membership string

// The memberships.
const (
	MembershipNever    Membership = "never"    // there has been no valid configuration yet
	MembershipMember   Membership = "member"   // there is one
	MembershipDoubtful Membership = "doubtful" // there was one, and nothing shows yet that the controller removed this device
	MembershipLeaving  Membership = "leaving"  // it is decided; the node is drained and deleted first
	MembershipLeft     Membership = "left"
)

// ClusterMembership is what zedkube makes of EdgeNodeClusterConfig over time,
// under key "global" of a persistent topic of its own (docs/wire.md,
// "ClusterMembership").
type ClusterMembership struct {
	State        Membership
	Reason       string                 // a sentence
	Config       *EdgeNodeClusterConfig // the last valid one, its token still encrypted; nil where never or left
	InvalidSince time.Time              // wall clock; zero while the configuration is valid
	ByOperator   bool                   // the leave was asked for at the device
	Consent      *LeaveConsent          `json:",omitempty"` // to the loss of data by the leave under way; nil for none
	Without      *WithoutDecision       `json:",omitempty"` // this leave is one without the cluster; nil for no such
}

// Belongs reports whether the device is to be treated as a member.
func (m ClusterMembership) Belongs() bool {
	return m.State == MembershipMember || m.State == MembershipDoubtful || m.State == MembershipLeaving
}

// WithoutIt reports that this device has left, or is leaving, the cluster of that
// ID without it.
func (m ClusterMembership) WithoutIt(cluster uuid.UUID) bool {
	return m.Without != nil && m.Without.Cluster == cluster
}

// ClusterLeaveRequest is an operator's wish that this node leave its cluster,
// under key "global" of zedkube-cli.
type ClusterLeaveRequest struct {
	RequestedAt time.Time
	Context     string
	Consent     *LeaveConsent `json:",omitempty"` // to the loss of data; nil for none

	WithoutCluster *LeaveWithoutCluster `json:",omitempty"` // it is to leave although nobody else answers; nil for no such wish
	Undo           bool                 `json:",omitempty"` // a decided leave without the cluster is withdrawn; then it is no request to leave
}
