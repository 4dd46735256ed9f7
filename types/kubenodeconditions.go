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
	StateK3sCertificates   NodeStateType = "K3sCertificatesValid"
	StateVersion           NodeStateType = "VersionAsExpected"
	StateLabels            NodeStateType = "LabelsAsExpected"
	StateCordon            NodeStateType = "CordonOurs"
	StateMembers           NodeStateType = "MembersAsConfigured"
	StateClock             NodeStateType = "ClockInStep"
	StateLeader            NodeStateType = "LeaderPresent"
	StateReport            NodeStateType = "ReportFresh"
	StatePermissions       NodeStateType = "PermissionsGranted"
)

// NodeStateTypes are all conditions, in the order in which they are published.
func NodeStateTypes() []NodeStateType {
	return []NodeStateType{
		StateClientCertificate, StateCACertificate, StateServerCertificate, StateK3sCertificates, StateVersion, StateLabels,
		StateCordon, StateMembers, StateClock, StateLeader, StateReport, StatePermissions,
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
	Name     string // "client", "CA" or "server"; "k3s" and "k3s-CA": the first of K3sCertificates to expire
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

// ClusterNodeStatus is how the cluster sees this node, for the message
// ZInfoClusterNode, under key "global" (docs/wire.md, "ClusterNodeStatus").
type ClusterNodeStatus struct {
	Status KubeNodeStatus // Ready, NotReady, or NotReachable where the API server is
	Since  time.Time      // when Status last changed, wall clock
}

// OwnNodeStatus is how the cluster sees this node; ready is its Ready condition,
// "" where it has none or is not listed.
func OwnNodeStatus(answers bool, ready ConditionStatus) KubeNodeStatus {
	switch {
	case !answers:
		return KubeNodeNotReachable
	case ready == ConditionTrue:
		return KubeNodeReady
	}
	return KubeNodeNotReady
}

// KubeLeaderElectInfo says who reports for the cluster, under key "global".
type KubeLeaderElectInfo struct {
	InLeaderElection bool
	IsStatsLeader    bool
	ElectionRunning  bool
	LeaderIdentity   string
	LatestChange     time.Time
	LeaderSince      time.Time `json:",omitzero"` // when LeaderIdentity took the Lease, as the Lease says; zero for not known yet
}

// The tables of the cluster, as TableStatus names them.
const (
	TableNodes             = "nodes"
	TableAppPods           = "app pods"
	TableVMIs              = "virtual machine instances"
	TablePodCounts         = "pod counts"
	TableClaims            = "volume claims"
	TableLonghornVolumes   = "volumes of Longhorn"
	TableLonghornEngines   = "engines of Longhorn"
	TableLonghornReplicas  = "replicas of Longhorn"
	TableLonghornSnapshots = "snapshots of Longhorn"
	TableLonghornNodes     = "nodes of Longhorn"
	TableLonghornDaemons   = "daemon sets of Longhorn"
	TableServices          = "services"
	TableIngresses         = "ingresses"
	TableKubeVIP           = "configuration of kube-vip"
	TableLonghornNode      = "own node of Longhorn"
	TableOwnVolumes        = "own volumes of Longhorn"
	TableOwnAttachments    = "own volume attachments"
	TableDrainPolicy       = "drain policy of Longhorn"
	TableSnapshotJob       = "snapshot job of Longhorn"
	TableAllocations       = "addresses on networks"
	TableDNSServer         = "configuration of CoreDNS"
	TableDNSRollout        = "deployment of CoreDNS"
	TableKubeconfigs       = "issued kubeconfigs"
	TableCDI               = "deployment of CDI"
	TableMachines          = "virtual machines"
	TableDisabled          = "disabled workloads"
)

// TableStatus says how well one table of the cluster is seen, under its name.
// A table that is not kept, because this node does not report for the cluster,
// has none.
type TableStatus struct {
	Complete bool      // it holds a complete list and follows the changes
	Since    time.Time // when Complete last changed, wall clock
	Why      string    // why it is incomplete, a sentence; "" while it is
	Absent   bool      // the cluster has no such kind of object: the table is complete, and empty
	InDoubt  bool      // it holds a complete list, of which Why doubts some rows
}

// WatchdogBeat is zedkube's own topic, under key "global": the watchdog
// publishes it and reads it back through its socket, which proves that pubsub
// works in both directions. Nobody else reads it.
type WatchdogBeat struct {
	Count uint64 // grows by one at every beat
}
