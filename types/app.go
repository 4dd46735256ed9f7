package types

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
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
	UUIDandVersion      UUIDandVersion
	DisplayName         string
	FixedResources      VMConfig
	VolumeRefConfigList []VolumeRefConfig
	Activate            bool
	DisableLogs         bool
	RemoteConsole       bool
	IoAdapterList       []IoAdapter
	PurgeCmd            AppInstanceOpsCmd
	LocalPurgeCmd       AppInstanceOpsCmd
	IsDesignatedNodeID  bool
	AffinityType        AffinityType
}

// VolumeRefConfig names a volume of an application.
type VolumeRefConfig struct{ VolumeID uuid.UUID }

// kubeNameBase is how much of a display name fits in a Kubernetes object
// name: 32 less a dash and five characters of the UUID.
const kubeNameBase = 26

// KubeName is the name of the (VMI) replica set that domainmgr creates for the
// present generation of the application (docs/wire.md, "Names of app objects").
func (c AppInstanceConfig) KubeName() string {
	name := kubeFragment(c.DisplayName)
	generation := uint64(c.PurgeCmd.Counter) + uint64(c.LocalPurgeCmd.Counter)
	return name[:min(len(name), kubeNameBase)] + "-" + c.UUIDandVersion.UUID.String()[:5] + "-" + strconv.FormatUint(generation, 10)
}

// kubeFragment is what EVE makes of a display name for the name of an object.
func kubeFragment(display string) string {
	name := make([]byte, 0, len(display))
	for _, r := range []byte(display) {
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
	return string(name)
}

// IsVMI reports whether the application runs as a KubeVirt virtual machine.
func (c AppInstanceConfig) IsVMI() bool {
	return c.FixedResources.VirtualizationMode != VirtualizationNoHyper
}

// vmiSuffix is how many characters KubeVirt appends, without a separator, to
// the name of the VMI replica set to name a VMI.
const vmiSuffix = 5

// Owns reports whether p runs the current generation of the application. Names
// are compared whole: app-1 is not app-10 (docs/wire.md, "Names of app objects").
func (c AppInstanceConfig) Owns(p Pod) bool {
	name := c.KubeName()
	if !c.IsVMI() {
		return p.App == name || p.replicaSet() == name
	}
	if !c.launches(p) {
		return false
	}
	vmi := p.VMIName()
	return vmi == "" || strings.HasPrefix(vmi, name) && len(vmi) == len(name)+vmiSuffix
}

// OwnsAny reports whether p runs the current generation of the application or
// another one, such as the one that a purge replaces.
func (c AppInstanceConfig) OwnsAny(p Pod) bool {
	if c.IsVMI() {
		return c.launches(p)
	}
	name := unnumbered(c.KubeName())
	return unnumbered(p.App) == name || unnumbered(p.replicaSet()) == name
}

// launches reports whether p is the launcher pod of a virtual machine of the
// application.
func (c AppInstanceConfig) launches(p Pod) bool {
	id, _, _ := strings.Cut(p.AppDomain, ".")
	return strings.EqualFold(id, c.UUIDandVersion.UUID.String())
}

// unnumbered is the name of a replica set without its generation; "" where it
// has none.
func unnumbered(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return ""
	}
	return name[:i]
}

func (p Pod) replicaSet() string {
	if p.Owner.Kind != KindReplicaSet {
		return ""
	}
	return p.Owner.Name
}

// VMIName is the virtual machine instance that p launches, or "".
func (p Pod) VMIName() string {
	if p.VMI == "" && p.Owner.Kind == "VirtualMachineInstance" {
		return p.Owner.Name
	}
	return p.VMI
}

// AppOwners tells whose pod one is, among all applications: what OwnsAny of each
// of them would tell, without asking each.
type AppOwners struct {
	configs  map[string]AppInstanceConfig
	machines map[string]string // the first key by UUID, of virtual machines
	sets     map[string]string // the first key by name without the generation, of the others
}

// NewAppOwners looks at all configurations once; they are by key.
func NewAppOwners(configs map[string]AppInstanceConfig) AppOwners {
	o := AppOwners{configs: configs, machines: map[string]string{}, sets: map[string]string{}}
	for key, c := range configs {
		in, name := o.sets, ""
		if c.IsVMI() {
			in, name = o.machines, c.UUIDandVersion.UUID.String()
		} else {
			name = unnumbered(c.KubeName())
		}
		if first, ok := in[name]; !ok || key < first {
			in[name] = key
		}
	}
	return o
}

// Of returns the application of which p runs a generation; where there are
// several, that with the first key.
func (o AppOwners) Of(p Pod) (AppInstanceConfig, bool) {
	id, _, _ := strings.Cut(p.AppDomain, ".")
	first, found := "", false
	look := func(in map[string]string, name string) {
		if key, ok := in[name]; ok && (!found || key < first) {
			first, found = key, true
		}
	}
	look(o.machines, strings.ToLower(id))
	look(o.sets, unnumbered(p.App))
	look(o.sets, unnumbered(p.replicaSet()))
	return o.configs[first], found
}

// AppConsoleStatus says whether the remote console of an application is open on
// this node, keyed by the application's UUID, for every application that asks
// for one (docs/wire.md, "AppConsoleStatus"). It is for people.
type AppConsoleStatus struct {
	AppUUID uuid.UUID
	Open    bool
	VMIName string // "" while it is not known
	VNCPort uint32
	Why     string    // why it is not open, a sentence; "" while it is
	Since   time.Time // when that began, wall clock
}

// RepairPhase is how an application fares, in a word that people can read.
type RepairPhase string

// The phases.
const (
	RepairWell    RepairPhase = "Well"    // nothing is to be done
	RepairWaits   RepairPhase = "Waits"   // something is wrong that may recover by itself, or is not proved yet
	RepairActs    RepairPhase = "Acts"    // a node is at it
	RepairRefused RepairPhase = "Refused" // something is wrong and must not be repaired; Reason says why
	RepairGaveUp  RepairPhase = "GaveUp"  // repairs did not help; someone has to look
)

// AppRepairStatus is what this node makes of one application's health, keyed by
// the application's UUID (docs/wire.md, "AppRepairStatus"). It is for people:
// no agent reads it. Times are wall clock.
type AppRepairStatus struct {
	AppUUID  uuid.UUID
	Name     string // display name
	Phase    RepairPhase
	Act      RepairAct // what is done, or would be
	Reason   string    // a sentence
	Since    time.Time // when this reason began to hold
	Node     string    // where its live pod is, "" for nowhere
	Lost     string    // the node it is lost with, "" for none
	Stuck    int       // stuck virtual machines deleted since it last ran
	Evidence []string  // what was seen, sentences
	Steps    []RepairStep
	Heard    uuid.UUID // ID of the AppDetachRequest that this takes into account; zero for none
	Run      AppRun    `json:",omitzero"`

	BootID string        `json:",omitempty"` // with Unseen alone
	Unseen time.Duration `json:",omitempty"` // since the boot: when the cluster was last fully known; 0 while it is
}

// AppRun is how the pods of an application fare, as they say it themselves: no restart of an
// agent changes it.
type AppRun struct {
	Pod      string    `json:",omitempty"` // the one that speaks for the application; "" for none
	Since    time.Time `json:",omitzero"`  // since when that runs or does not; without one, since when there is none
	Restarts int       // of the containers of all its pods
}

// MountRecovery says which pods of this node wait for volumes that are there, and what is
// done about it, under key "global" of a persistent topic (docs/wire.md, "MountRecovery").
// Durations count from the boot.
type MountRecovery struct {
	Watch    bool     // pods have waited for so long that their volumes are watched
	Pods     []string // namespace/name of those whose volumes the kubelet does not mount, bounded
	Phase    RepairPhase
	Reason   string    // a sentence; "" while there is no such pod
	Since    time.Time // when this reason began to hold, wall clock
	BootID   string
	Began    time.Duration // when the first of them began to wait; 0 while there is none
	Last     time.Duration // when k3s was last restarted for it; 0 for not in this boot
	Attempts int           // restarts of k3s since Began
	Unknown  bool          // how many there were could not be read
}

// The times of a restart of k3s for MountRecovery.
const (
	// MountsBackAfter is when a kubelet that renews its Lease is not the former one any more.
	MountsBackAfter = 2 * time.Minute
	// MountsApart is between two restarts, and how long one may take to end k3s.
	MountsApart = 15 * time.Minute
)

// Restarted is when k3s was last restarted in this boot; 0 for never.
func (m MountRecovery) Restarted(boot string) time.Duration {
	if m.BootID != boot {
		return 0
	}
	return m.Last
}

// Restarts reports whether that may not be over: k3s may still have to end, or its kubelet is the former one.
// started is when the process of k3s did; 0 where only its supervisor knows.
func (m MountRecovery) Restarts(boot string, uptime, started time.Duration) bool {
	last := m.Restarted(boot)
	return last > 0 && (uptime < last+MountsBackAfter || started > 0 && started < last && uptime < last+MountsApart)
}

// RepairStep is one step of a repair by this node; the last few are kept.
type RepairStep struct {
	At     time.Time
	Act    RepairAct
	Step   string // a sentence
	Failed string // why it failed; "" for success
}

// AppDetachRequest asks for the failover of one application by hand, keyed by
// the application's UUID (docs/wire.md, "AppDetachRequest").
type AppDetachRequest struct {
	Node      string // the node that is gone
	AppDomain string // label App-Domain-Name, or an application's UUID
	Force     bool   // although storage is not proved redundant
	ID        uuid.UUID
	Asked     time.Time
	Uptime    time.Duration `json:",omitzero"` // since the boot, at Asked; 0 from an earlier release
}

// AskedWithin reports whether a request was made at most d ago: by the times since the boot, at of the
// request, as the clock may be set meanwhile; by the clock only where the request has none.
func AskedWithin(d time.Duration, asked, now time.Time, at, uptime time.Duration) bool {
	if at > 0 {
		return at <= uptime && uptime-at <= d
	}
	return now.Sub(asked).Abs() <= d
}

// AppKubeStatus is what the cluster knows of an application.
type AppKubeStatus uint8

// The states of docs/wire.md, "ENClusterAppStatus".
const (
	AppKubeUnknown AppKubeStatus = iota
	AppKubeAPIUnreachable
	AppKubeNotInCluster
	AppKubeNotRunning
	AppKubeRunning
)

func (s AppKubeStatus) String() string {
	return enumName("AppKubeStatus", []string{"Unknown", "APIUnreachable", "NotInCluster", "NotRunningState", "RunningState"}, s)
}

// ENClusterAppStatus tells zedmanager where an application stands in the
// cluster, keyed by the application's UUID. StatusRunning is for builds of
// zedmanager older than AppKubeStatus.
type ENClusterAppStatus struct {
	AppUUID             uuid.UUID
	IsDNidNode          bool
	ScheduledOnThisNode bool
	StatusRunning       bool
	AppKubeStatus       AppKubeStatus
	AppIsVMI            bool
	VMIName             string
	VNCPort             uint32
}

const (
	// mostDesignations is how many applications fit in the annotation.
	mostDesignations = 200
	// mostChanges bounds a count: what is beyond it is garbage.
	mostChanges = 1_000_000_000
)

// Designations are the applications whose designated node a node is according to
// its controller, as its zedkube writes it on its own Node (docs/wire.md,
// "Nodes").
type Designations struct {
	Apps    map[string]Designation `json:"apps,omitempty"`    // by UUID
	Omitted int                    `json:"omitted,omitempty"` // more than those
}

// Designation is what a node was configured with for one application. Of two nodes that both
// hold themselves for designated, the one with the higher count was told later.
type Designation struct {
	Count  int64 `json:"n"`            // grows with each time that the node became the designated one; at least 1
	Yields int64 `json:"to,omitempty"` // the higher count of another node, which this one accepts; 0 for none
}

// Get is the designation of an application; its count is 0 where there is none,
// or none that can be meant.
func (d *Designations) Get(app string) Designation {
	if d == nil {
		return Designation{}
	}
	if one := d.Apps[app]; one.Count > 0 && one.Count <= mostChanges && one.Yields >= 0 && one.Yields <= mostChanges {
		return one
	}
	return Designation{}
}

// Fit is d with as many applications as fit in an annotation, the first by UUID.
func (d Designations) Fit() Designations {
	if len(d.Apps) <= mostDesignations {
		return d
	}
	fit := Designations{Apps: map[string]Designation{}, Omitted: d.Omitted + len(d.Apps) - mostDesignations}
	for _, app := range slices.Sorted(maps.Keys(d.Apps))[:mostDesignations] {
		fit.Apps[app] = d.Apps[app]
	}
	return fit
}

// Equal reports whether both say the same.
func (d Designations) Equal(other Designations) bool {
	return d.Omitted == other.Omitted && maps.Equal(d.Apps, other.Apps)
}
