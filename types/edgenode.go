package types

import (
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// EdgeNodeInfo is zedagent's word on who this device is, under key "global".
type EdgeNodeInfo struct {
	DeviceName     string
	DeviceID       uuid.UUID
	ProjectName    string
	ProjectID      uuid.UUID
	EnterpriseName string
	EnterpriseID   string
}

// NodeName is the Kubernetes name that the kube container gives this device:
// lower case, "_" turned into "-" (docs/wire.md, "EdgeNodeInfo").
func (i EdgeNodeInfo) NodeName() string {
	return strings.ReplaceAll(strings.ToLower(i.DeviceName), "_", "-")
}

// ClusterType says what kind of cluster the controller configured.
type ClusterType uint8

// The cluster types of docs/wire.md, "EdgeNodeClusterConfig".
const (
	ClusterTypeNone ClusterType = iota
	ClusterTypeK3sBase
	ClusterTypeReplicatedStorage
	ClusterTypeHA
)

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

// TieBreaker is the UUID of the device that is the cluster's tie-breaker, "" for none.
func (c EdgeNodeClusterConfig) TieBreaker() string {
	if c.TieBreakerNodeID.UUID == uuid.Nil {
		return ""
	}
	return c.TieBreakerNodeID.UUID.String()
}

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

// OwnAddress is the address of this node in the cluster's network, without a zone;
// false where it has none.
func (s EdgeNodeClusterStatus) OwnAddress() (netip.Addr, bool) {
	if s.ClusterIPPrefix == nil {
		return netip.Addr{}, false
	}
	ip, ok := netip.AddrFromSlice(s.ClusterIPPrefix.IP)
	return ip.Unmap(), ok
}

// ListenAddress is where this node answers the others at a port, "" for nowhere: on
// the cluster address alone, and only while this node has it.
func (s EdgeNodeClusterStatus) ListenAddress(port int) string {
	ip, ok := s.OwnAddress()
	if !ok || !s.ClusterIPIsReady {
		return ""
	}
	if ip.IsLinkLocalUnicast() && ip.Is6() {
		ip = ip.WithZone(s.ClusterInterface) // without it the address is of no interface
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(port))
}

// ConfigGetStatus is how the last fetch of the configuration went.
type ConfigGetStatus uint8

// The fetch results; only success and a saved copy make a node eligible to
// report for the cluster.
const (
	ConfigGetUnset ConfigGetStatus = iota
	ConfigGetSuccess
	ConfigGetFail
	ConfigGetTemporaryFail
	ConfigGetReadSaved
)

func (s ConfigGetStatus) String() string {
	return enumName("ConfigGetStatus", []string{"Unset", "Success", "Fail", "TemporaryFail", "ReadSaved"}, s)
}

// ZedAgentKey is the key of ZedAgentStatus.
const ZedAgentKey = "zedagent"

// ZedAgentStatus is zedagent's word on its own state, under ZedAgentKey.
// Fields zedkube does not read are left out.
type ZedAgentStatus struct {
	ConfigGetStatus ConfigGetStatus
}

// configSettles is how long after its last status zedagent may still parse what it
// has read: it reports a fetch that succeeded before it looks at what came.
const configSettles = 5 * time.Minute

// ConfigArrival remembers since when zedagent has had a configuration. Until then
// its tables are complete and empty, after a boot without a controller for hours.
// The zero value has seen nothing.
type ConfigArrival struct{ since time.Time }

// Observe takes in zedagent's present status, and whether its table has anything.
// Until wait has passed, what the table does not have may be in it later; 0 means that
// it is not configured.
func (w *ConfigArrival) Observe(s ZedAgentStatus, any bool, now time.Time) (wait time.Duration) {
	switch read := s.ConfigGetStatus == ConfigGetSuccess || s.ConfigGetStatus == ConfigGetReadSaved; {
	case s.ConfigGetStatus == ConfigGetUnset: // it begins, or is not there
		w.since = time.Time{}
	case (read || any) && w.since.IsZero():
		w.since = now
	}
	if w.since.IsZero() {
		return configSettles
	}
	return max(0, configSettles-now.Sub(w.since))
}

// NodeAgentKey is the key of NodeAgentStatus.
const NodeAgentKey = "nodeagent"

// NodeAgentStatus is nodeagent's word on what becomes of the device, under
// NodeAgentKey (docs/wire.md, "NodeAgentStatus"). Fields zedkube does not read
// are left out.
type NodeAgentStatus struct {
	UpdateInprogress bool // the image that runs is new and under test
	DeviceReboot     bool // the device is about to reboot
	DeviceShutdown   bool // its applications are being stopped, and it stays up
	DevicePoweroff   bool // it is about to power off
}

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

// IoType says what kind of device an adapter is; EVE has more of them.
type IoType uint8

// The kinds zedkube tells apart.
const (
	IoNetEth   IoType = 1  // Ethernet port
	IoNetEthVF IoType = 12 // virtual function of an SR-IOV port
)

func (t IoType) String() string {
	return enumName("IoType", []string{IoNetEth: "IoNetEth", IoNetEthVF: "IoNetEthVF"}, t)
}

// VfInfo places a virtual function.
type VfInfo struct {
	Index   uint8
	PFIface string // Linux name of the port it belongs to, or ""
}

// IoBundle is the part of an adapter that zedkube reads. Only bundles of type
// IoNetEthVF with a PCI address count, and the number of the function is in
// Phylabel (docs/wire.md, "AssignableAdapters").
type IoBundle struct {
	Type         IoType
	Phylabel     string // <port>vf<number>
	Logicallabel string
	PciLong      string // PCI address, or ""
	VfParams     VfInfo
}

// AssignableAdapters is domainmgr's word on the devices that applications may
// get, under key "global". Fields zedkube does not read are left out.
type AssignableAdapters struct {
	Initialized  bool
	IoBundleList []IoBundle
}

// ConfigItemType says which value field of a ConfigItemValue counts.
type ConfigItemType uint8

// The item types of docs/wire.md, "ConfigItemValueMap".
const (
	ConfigItemInvalid ConfigItemType = iota
	ConfigItemInt
	ConfigItemBool
	ConfigItemString
	ConfigItemTriState
)

func (t ConfigItemType) String() string {
	return enumName("ConfigItemType", []string{"Invalid", "Int", "Bool", "String", "TriState"}, t)
}

// ConfigItemValue is one setting.
type ConfigItemValue struct {
	Key           string
	ItemType      ConfigItemType
	IntValue      uint32
	StrValue      string
	BoolValue     bool
	TriStateValue uint8
}

// ConfigItemValueMap is the device's settings, under key "global": the ones
// for everybody and the ones for one agent by name.
type ConfigItemValueMap struct {
	GlobalSettings map[string]ConfigItemValue
	AgentSettings  map[string]map[string]ConfigItemValue
}

// The settings zedkube reads (docs/wire.md, "Settings").
const (
	SettingDrainTimeout    = "kubernetes.drain.timeout"                  // hours
	SettingDrainUnused     = "kubernetes.drain.unused.timeout"           // hours
	SettingDrainSkipAPI    = "drain.skip.k8sapinotreachable.timeout"     // seconds
	SettingDrainAllNodes   = "kubernetes.drain.allnodes.config.multiple" // times the config interval
	SettingNodeDrainPolicy = "storage.longhorn.node-drain-policy"        // Longhorn's, for drains
	SettingDiskReserved    = "storage.longhorn.disk.reserved.gigabytes"  // of each of Longhorn's disks
	SettingSnapshotCron    = "storage.longhorn.snapshot.cron"            // "" for no snapshots
	SettingConfigInterval  = "timer.config.interval"                     // seconds
	SettingK3sVersion      = "k3s.version"                               // "" for the kube container's own
	SettingK3sSum          = "k3s.version.sha256"                        // of its binary; "" for the one in the release's list
	SettingK3sConsent      = "k3s.consent"                               // commit, each or none
	SettingK3sOverride     = "k3s.config.override"                       // base64 of a k3s configuration file
	SettingDescheduleOn    = "kubernetes.vmi.deschedule.events"          // comma-separated; "boot"
	SettingDefaultLogLevel = "debug.default.loglevel"                    // logrus level
	SettingAgentLogLevel   = "debug.loglevel"                            // logrus level, in AgentSettings
)

// SettingKeys are the settings zedkube reads.
var SettingKeys = []string{
	SettingDrainTimeout, SettingDrainSkipAPI, SettingDrainAllNodes, SettingNodeDrainPolicy, SettingDiskReserved, SettingSnapshotCron,
	SettingConfigInterval, SettingK3sVersion, SettingK3sSum, SettingK3sConsent, SettingK3sOverride, SettingDescheduleOn, SettingDefaultLogLevel, SettingAgentLogLevel,
}

// Duration is the integer setting key in units, or def where it is missing,
// of another type, or zero: EVE treats zero as "not set" for these. What is too
// long for a Duration is the longest one there is.
func (m ConfigItemValueMap) Duration(key string, unit, def time.Duration) time.Duration {
	item, ok := m.GlobalSettings[key]
	if !ok || item.ItemType != ConfigItemInt || item.IntValue == 0 {
		return def
	}
	return min(time.Duration(item.IntValue), math.MaxInt64/unit) * unit
}

// LogLevel is the log level set for agent, else the one for every agent, else "".
func (m ConfigItemValueMap) LogLevel(agent string) string {
	if item, ok := m.AgentSettings[agent][SettingAgentLogLevel]; ok && item.StrValue != "" {
		return item.StrValue
	}
	return m.GlobalSettings[SettingDefaultLogLevel].StrValue
}
