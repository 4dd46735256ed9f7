package types

import "time"

// KubeMembership is how the kube container stands to its cluster.
type KubeMembership string

// The memberships of docs/wire.md, "Kube container".
const (
	KubeMembershipSingle      KubeMembership = "Single"
	KubeMembershipJoinPending KubeMembership = "JoinPending"
	KubeMembershipJoining     KubeMembership = "Joining"
	KubeMembershipMember      KubeMembership = "Member"
	KubeMembershipLeaving     KubeMembership = "Leaving"
	KubeMembershipRestoring   KubeMembership = "Restoring"
	KubeMembershipUnknown     KubeMembership = "Unknown"
)

// KubeInitStatus is kube-init's word on its own progress, under key "global".
// Kube containers without kube-init never publish it (docs/wire.md, "Kube
// container").
type KubeInitStatus struct {
	AllComponentsInitialized bool
	State                    string
	Phase                    string
	Membership               KubeMembership
	ClusterID                string // a UUID
	Role                     string // Bootstrap, Server, Worker or ""
	TransitionStep           string
	JoinWatchdogActive       bool
	LastError                string
	UpdatedAt                time.Time
}
