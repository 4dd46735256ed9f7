package types

import (
	"strconv"
)

// VirtualizationMode says how an application runs.
type VirtualizationMode uint8

// The modes; everything but NoHyper is a virtual machine.
const (
	VirtualizationPV VirtualizationMode = iota
	VirtualizationHVM
	VirtualizationFiller
	VirtualizationFML
	VirtualizationNoHyper
	VirtualizationLegacy
)

// String returns the name of the value.
func (m VirtualizationMode) String() string {
	return enumName("VirtualizationMode", []string{"PV", "HVM", "Filler", "FML", "NOHYPER", "LEGACY"}, m)
}

// AffinityType says whether an application may run away from its designated node.
type AffinityType uint8

// The affinities.
const (
	AffinityPreferred AffinityType = iota
	AffinityRequired
)

// String returns the name of the value.
func (a AffinityType) String() string {
	return enumName("AffinityType", []string{"Preferred", "Required"}, a)
}

// VMConfig is the part of an application's resources that zedkube reads.
type VMConfig struct {
	VirtualizationMode VirtualizationMode
	EnableVnc          bool
	VncDisplay         uint32
}

// IoAdapter is a device passed through to an application. The Name of an
// IoNetEth is used as the Linux interface name.
type IoAdapter struct {
	Type IoType
	Name string
}

// AppInstanceOpsCmd counts how often an operation was asked for.
type AppInstanceOpsCmd struct {
	Counter   uint32
	ApplyTime string
}

// AppInstanceConfig is zedagent's word on one application, keyed by its UUID.
// Fields zedkube does not read are left out.
type AppInstanceConfig struct {
	UUIDandVersion     UUIDandVersion
	DisplayName        string
	FixedResources     VMConfig
	Activate           bool
	DisableLogs        bool
	RemoteConsole      bool
	IoAdapterList      []IoAdapter
	PurgeCmd           AppInstanceOpsCmd
	LocalPurgeCmd      AppInstanceOpsCmd
	IsDesignatedNodeID bool
	AffinityType       AffinityType
}

// kubeNameBase is how much of a display name fits in a Kubernetes object
// name: 32 less a dash and five characters of the UUID.
const kubeNameBase = 26

// KubeName is the name of the (VMI) replica set that domainmgr creates for the
// present generation of the application (docs/wire.md, "Names of app objects").
func (c AppInstanceConfig) KubeName() string {
	name := make([]byte, 0, len(c.DisplayName))
	for _, r := range []byte(c.DisplayName) {
		switch {
		case 'A' <= r && r <= 'Z':
			name = append(name, r+'a'-'A')
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			name = append(name, r)
		case r == '_' || r == '.' || r == '-':
			if n := len(name); n == 0 || name[n-1] != '-' { // several become one
				name = append(name, '-')
			}
		}
	}
	generation := uint64(c.PurgeCmd.Counter) + uint64(c.LocalPurgeCmd.Counter)
	return string(name[:min(len(name), kubeNameBase)]) + "-" + c.UUIDandVersion.UUID.String()[:5] + "-" + strconv.FormatUint(generation, 10)
}

// IsVMI reports whether the application runs as a KubeVirt virtual machine.
func (c AppInstanceConfig) IsVMI() bool {
	return c.FixedResources.VirtualizationMode != VirtualizationNoHyper
}
