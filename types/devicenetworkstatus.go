package types

import "net"

// AddrInfo is one address of a port.
type AddrInfo struct {
	Addr net.IP
	Mask net.IPMask
}

// NetworkPortStatus is the part of nim's port status that zedkube reads.
type NetworkPortStatus struct {
	IfName        string
	Logicallabel  string
	IsL3Port      bool
	InvalidConfig bool
	AddrInfoList  []AddrInfo
	ClusterIPAddr string // "" while the port has no address in the cluster prefix
}

// DeviceNetworkStatus is nim's word on the ports, under key "global". Fields
// zedkube does not read are left out.
type DeviceNetworkStatus struct {
	Ports []NetworkPortStatus
}
