package types

import "net"

// EdgeNodeClusterStatus tells nim and the kube container how this node takes
// part in its cluster, under key "global"; it is withdrawn when the node has
// left (docs/wire.md, "EdgeNodeClusterStatus").
type EdgeNodeClusterStatus struct {
	ClusterName           string
	ClusterID             UUIDandVersion
	ClusterInterface      string // Linux name, "" while unknown
	ClusterIPPrefix       *net.IPNet
	ClusterIPIsReady      bool
	IsWorkerNode          bool
	JoinServerIP          net.IP
	BootstrapNode         bool
	EncryptedClusterToken string // clear text; the name is EVE's
	LBInterfaces          []LBInterface
	LBIPPrefixes          []string
	LBConfigError         ErrorDescription
	Error                 ErrorDescription
}
