package types

import "time"

// KubeClusterMetrics is what the kubelets of all nodes measure, published by
// the node that reports for the cluster, under key "global" (docs/wire.md,
// "KubeClusterMetrics").
type KubeClusterMetrics struct {
	Nodes     []ClusterNodeMetrics `json:"pubsub-large-Nodes"` // by name
	Apps      []ClusterAppMetrics  `json:"pubsub-large-Apps"`  // pods of eve-kube-app but launchers, by name
	VMIs      []ClusterAppMetrics  `json:"pubsub-large-VMIs"`  // by the name of the virtual machine instance
	Truncated int                  // entries left out, as it would be too large
}

// ClusterNodeMetrics is one node.
type ClusterNodeMetrics struct {
	Name   string
	At     time.Time // of the look; zero where none succeeded yet
	Stale  string    `json:",omitempty"` // why the last look failed
	Cores  int
	CPU    *uint64 // nanocores
	Memory *uint64 // bytes in the working set
	Total  *uint64 // bytes of memory; nil for unknown
}

// ClusterAppMetrics is one pod or virtual machine.
type ClusterAppMetrics struct {
	Name   string
	App    string `json:",omitempty"` // the application's name at the controller; "" while it is not known
	Node   string
	CPU    *uint64 // nanocores
	Memory *uint64 // bytes in the working set
}
