package types

import (
	"net"

	"github.com/google/uuid"
)

// ClusterType says what kind of cluster the controller configured.
type ClusterType uint8

// The cluster types of docs/wire.md, "EdgeNodeClusterConfig".
const (
	ClusterTypeNone ClusterType = iota
	ClusterTypeK3sBase
	ClusterTypeReplicatedStorage
	ClusterTypeHA
)

// String returns the name of the value.
func (t ClusterType) String() string {
	return enumName("ClusterType", []string{"None", "K3sBase", "ReplicatedStorage", "HA"}, t)
}

// LBInterface is one interface that may carry load-balancer addresses.
// Interface is a logical label in EdgeNodeClusterConfig and a Linux name in
// EdgeNodeClusterStatus; IPPrefix is a CIDR.
type LBInterface struct {
	Interface string
	IPPrefix  string
}

// EdgeNodeClusterConfig is zedagent's word on the cluster this device belongs
// to, under key "global". The key exists on every device, clustered or not:
// only Initialized and Valid tell (docs/wire.md, "EdgeNodeClusterConfig").
type EdgeNodeClusterConfig struct {
	Initialized                        bool
	Valid                              bool
	ClusterName                        string
	ClusterID                          UUIDandVersion
	ClusterInterface                   string // logical label
	ClusterIPPrefix                    *net.IPNet
	IsWorkerNode                       bool
	JoinServerIP                       net.IP
	BootstrapNode                      bool
	CipherToken                        CipherBlockStatus
	CipherGzipRegistrationManifestYaml CipherBlockStatus
	ClusterType                        ClusterType
	TieBreakerNodeID                   UUIDandVersion
	EnableNativeK8SOrchestration       bool
	LBInterfaces                       []LBInterface
	MasterNodeIDs                      []uuid.UUID
}

// Lack says what a valid configuration lacks to be acted on, "" for nothing.
// Of one that names no cluster, the kube container would be told to leave.
func (c EdgeNodeClusterConfig) Lack() string {
	switch {
	case c.ClusterID.UUID == uuid.Nil:
		return "the cluster configuration has no cluster UUID"
	case c.ClusterIPPrefix == nil || len(c.ClusterIPPrefix.IP) == 0:
		return "the cluster configuration has no cluster address"
	}
	return ""
}
