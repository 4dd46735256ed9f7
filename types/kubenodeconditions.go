package types

import "time"

// KubeNodeConditions says how this node stands in its cluster, and since when,
// under key "global" of a persistent topic (docs/wire.md, "KubeNodeConditions").
type KubeNodeConditions struct {
	Conditions []NodeStateCondition // every one of NodeStateTypes, in that order

	// What else is known; "" and zero for what is not.
	Kubernetes   string    // version of the API server
	KubeVirt     string    // version of virt-handler on this node
	Longhorn     string    // version of longhorn-manager on this node
	CNI          string    // what connects pods on this node: "flannel vxlan, multus v4.1.4"
	InstalledAt  time.Time // when the cluster was, by its own clock
	Certificates []NodeCertificate
}

// NodeStateType names one condition of KubeNodeConditions. All of them are True
// while all is well.
type NodeStateType string

// The conditions.
const (
	StateClientCertificate NodeStateType = "ClientCertificateValid"
	StateCACertificate     NodeStateType = "CACertificateValid"
	StateServerCertificate NodeStateType = "ServerCertificateValid"
	StateVersion           NodeStateType = "VersionAsExpected"
	StateLabels            NodeStateType = "LabelsAsExpected"
	StateCordon            NodeStateType = "CordonOurs"
	StateMembers           NodeStateType = "MembersAsConfigured"
	StateClock             NodeStateType = "ClockInStep"
	StateLeader            NodeStateType = "LeaderPresent"
	StateReport            NodeStateType = "ReportFresh"
)

// NodeStateTypes are all conditions, in the order in which they are published.
func NodeStateTypes() []NodeStateType {
	return []NodeStateType{
		StateClientCertificate, StateCACertificate, StateServerCertificate, StateVersion, StateLabels,
		StateCordon, StateMembers, StateClock, StateLeader, StateReport,
	}
}

// NodeStateCondition is one condition of this node.
type NodeStateCondition struct {
	Type      NodeStateType
	Status    ConditionStatus
	Since     time.Time // when Status last changed, wall clock
	Reason    string    // CamelCase, from a fixed set
	Message   string    // a sentence for people
	ExpiresAt time.Time `json:",omitzero"` // when what it is about ends
}

// NodeCertificate is a certificate that this node's connection to the API server
// rests on.
type NodeCertificate struct {
	Name     string // "client", "CA" or "server"
	Subject  string // its common name
	NotAfter time.Time
}

// Of returns the condition of that type.
func (c KubeNodeConditions) Of(t NodeStateType) (NodeStateCondition, bool) {
	for _, s := range c.Conditions {
		if s.Type == t {
			return s, true
		}
	}
	return NodeStateCondition{}, false
}
