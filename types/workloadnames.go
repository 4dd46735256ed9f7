package types

import (
	"net"
	"strings"

	"github.com/google/uuid"
)

// AppNetworkStatus is zedrouter's word on the networks of one workload, keyed by its
// UUID (docs/wire.md, "AppNetworkStatus"). Fields zedkube does not read are left out.
type AppNetworkStatus struct {
	UUIDandVersion                                                    UUIDandVersion
	Activated, PendingAdd, PendingModify, PendingDelete, ConfigInSync bool
	DisplayName, Error                                                string
	KubeApp                                                           *KubeAppInfo // nil for an application of the controller
	AppNetAdapterList                                                 []AppNetAdapterStatus
}

// AppNetAdapterStatus is one adapter of a workload.
type AppNetAdapterStatus struct {
	Network           uuid.UUID
	Mac               net.HardwareAddr // base64 in JSON
	AssignedAddresses struct{ IPv4Addrs, IPv6Addrs []AssignedAddr }
}

// AssignedAddr is one of its addresses.
type AssignedAddr struct{ Address net.IP }

func (a AssignedAddr) String() string { return a.Address.String() }

// Ready reports that zedrouter has set up all that it was asked for.
func (s AppNetworkStatus) Ready() bool {
	return s.Activated && s.ConfigInSync && !s.PendingAdd && !s.PendingModify && !s.PendingDelete && s.Error == ""
}

// Allocation is what zedrouter assigned to a workload on a network (docs/wire.md, "Names
// of workloads").
type Allocation struct {
	AppUUID       string   `json:"appUUID"`
	AppName       string   `json:"appName"`
	Namespace     string   `json:"namespace"`
	NIUUID        string   `json:"niUUID"`
	NIDisplayName string   `json:"niDisplayName"`
	NodeName      string   `json:"nodeName"`
	MACs          []string `json:"macs,omitempty"`
	IPv4          []string `json:"ipv4,omitempty"`
	IPv6          []string `json:"ipv6,omitempty"`
}

// Valid reports that names can be made of it, no matter who wrote it.
func (a Allocation) Valid() bool {
	return IsLabel(a.AppName) && IsLabel(a.Namespace) && IsLabel(a.NIDisplayName)
}

// AllocationsName is the name of the ConfigMap with the Allocations of a network.
func AllocationsName(network string) string { return "eve-ni-" + network + "-allocations" }

// NetworkAllocations is what such a ConfigMap holds.
type NetworkAllocations struct {
	Network string                // UUID of the network instance, as its label says
	Entries map[string]Allocation // by UUID of the workload
	Why     string                // why it cannot be read, a part of a sentence; "" if it can
}

// The objects of CoreDNS in kube-system.
const (
	DNSConfigMap  = "coredns-custom"
	DNSDeployment = "coredns"
)

// DNSServer is the ConfigMap with additions to the configuration of CoreDNS.
type DNSServer struct {
	Text  string // zedkube's part; "" for none
	Clash string // another key that serves the zone internal; "" for none
}

// DNSRollout is what CoreDNS was last restarted for: a hash, "" for nothing of ours.
type DNSRollout struct{ Hash string }

// IsLabel reports whether a name can be a label of DNS, as Kubernetes writes them.
func IsLabel(name string) bool {
	return len(name) <= 63 && IsObjectName(name) && !strings.Contains(name, ".")
}
