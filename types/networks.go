package types

import (
	"cmp"
	"fmt"
	"net"

	"github.com/google/uuid"
)

// NativeOrchestration reports whether Kubernetes itself orchestrates in this cluster,
// next to the controller (docs/wire.md, "EdgeNodeClusterConfig").
func (c EdgeNodeClusterConfig) NativeOrchestration() bool {
	return c.ClusterType == ClusterTypeK3sBase || c.ClusterType == ClusterTypeReplicatedStorage && c.EnableNativeK8SOrchestration
}

// NativeOrchestration reports whether this device is a member of such a cluster, also
// after a restart and while its configuration is invalid.
func (m ClusterMembership) NativeOrchestration() bool {
	return m.Belongs() && m.Config != nil && m.Config.NativeOrchestration()
}

// NetworkInstanceType is what kind of network an instance is.
type NetworkInstanceType int32

// The types of docs/wire.md, "NetworkInstanceStatus", that pods can attach to.
const (
	NetworkInstanceSwitch NetworkInstanceType = 1
	NetworkInstanceLocal  NetworkInstanceType = 2
)

// NetworkInstanceStatus is the part of zedrouter's status of a network instance that
// zedkube reads, under the UUID of the instance.
type NetworkInstanceStatus struct {
	DisplayName string
	Type        NetworkInstanceType
	ClusterWide bool
}

// NetworkNAD is the network attachment of a network instance.
type NetworkNAD struct {
	Name string
	ID   uuid.UUID // of the network instance
}

// NetworkNADPrefix begins the names of such attachments.
const NetworkNADPrefix = "ni-"

// NADOf is the attachment of the instance under that key of the topic; false where it
// gets none. It is an error where an object cannot have the name that EVE gives it.
func (s NetworkInstanceStatus) NADOf(key string) (nad NetworkNAD, ok bool, err error) {
	if !s.ClusterWide || s.Type != NetworkInstanceSwitch && s.Type != NetworkInstanceLocal {
		return nad, false, nil
	}
	if nad.ID, err = uuid.Parse(key); err != nil {
		return nad, false, fmt.Errorf("network instance %q: its key is not a UUID", key)
	}
	nad.Name = NetworkNADPrefix + cmp.Or(kubeFragment(s.DisplayName), nad.ID.String())
	if nad.Name = nad.Name[:min(len(nad.Name), maxObjectName)]; !IsObjectName(nad.Name) {
		return nad, false, fmt.Errorf("network instance %s: %q is not a valid name of a Kubernetes object", key, nad.Name)
	}
	return nad, true, nil
}

// AppNetworkConfig asks zedrouter for the networks of a workload that the controller
// does not know, under the UUID of the workload. Fields that EVE has for other
// applications are absent (docs/wire.md, "AppNetworkConfig").
type AppNetworkConfig struct {
	UUIDandVersion    UUIDandVersion
	DisplayName       string
	Activate          bool
	AppNetAdapterList []AppNetAdapterConfig
	KubeApp           *KubeAppInfo
}

// KubeAppInfo is by what zedrouter finds the workload of a pod.
type KubeAppInfo struct{ Namespace, OwnerName string }

// AppNetAdapterConfig is one interface of a workload. zedrouter chooses what is nil.
type AppNetAdapterConfig struct {
	Name            string
	AppMacAddr      net.HardwareAddr
	AppIPAddr       net.IP
	IntfOrder       uint32
	Network         uuid.UUID // of the network instance
	ACLs            []ACE
	DefaultRouteVia net.IP
}

// ACEIngress is the direction of a rule for what comes to the workload; 0 is both.
const ACEIngress uint8 = 1

// ACE is a rule of an interface; without an action it allows.
type ACE struct {
	Matches []ACEMatch
	Actions []ACEAction
	Name    string
	RuleID  int32
	Dir     uint8
}

// ACEMatch is one property of the traffic that a rule is for.
type ACEMatch struct{ Type, Value string }

// ACEAction maps a port of the network to a port of the workload.
type ACEAction struct {
	PortMap    bool
	TargetPort int
}

// PodMarkers is the journal of the markers of this node's pods, under key "global" of
// a persistent topic (docs/wire.md, "PodMarkers").
type PodMarkers struct {
	Cluster uuid.UUID         // of which the device was a member; uuid.Nil for none
	Markers map[string]string `json:"pubsub-large-Markers"` // content by the file's name
}

// MaxPodMarkers bounds the journal to what a large field can hold.
const MaxPodMarkers = 2000
