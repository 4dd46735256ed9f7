package types

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// The values of Longhorn's setting node-drain-policy that let a node go down
// with the last replica of a volume on it.
const (
	DrainPolicyAlwaysAllow  = "always-allow"
	DrainPolicyAllowStopped = "allow-if-replica-is-stopped"
)

// Storage is the volumes of the cluster, read on demand.
type Storage struct {
	Longhorn    bool   // it is installed
	Policy      string // its setting node-drain-policy, "" for unknown
	Volumes     []Volume
	Attachments []Attachment // VolumeAttachments of one node that are attached
}

// Volume is a Longhorn volume.
type Volume struct {
	UID        string
	Name       string
	Claim      string // namespace/name of its claim, "" for none
	State      string // attached, detached, attaching, ...
	Robustness string // healthy, degraded, faulted, unknown
	Replicas   []Replica
	Wanted     int      // how many replicas it should have
	Engine     string   // the node its engine is on, "" for none
	Running    bool     // the engine runs
	Also       []string // further nodes on which an engine of it is not known to be stopped: it migrates

	Created    time.Time
	Size       int64  // bytes it offers
	Used       int64  // bytes that it takes of each disk, its snapshots left out
	Snapshots  int64  // bytes of its snapshots, its head left out
	ClaimState string // of its PersistentVolume: Bound, Released, Available, Failed; "" for unknown
	LastClaim  string // namespace/name of the claim it is not bound to any more, "" for none
}

// Replica is one copy of a volume's data.
type Replica struct {
	Name      string
	Node      string
	Running   bool
	Mode      string // RW, WO, ERR as the running engine has it; "" where it has none
	LastMode  string // the same of an engine that cannot be asked, as it was last known; "" where one runs or none is known
	HealthyAt time.Time
	FailedAt  time.Time
	Percent   int       // of its rebuild, while Mode is WO
	State     string    // running, stopped, error, starting, stopping; "" for unknown
	Started   bool      // it has been somewhere: it has an owner, an instance manager or an image
	Deleted   time.Time // deletionTimestamp; zero while it is not being deleted
}

// Healthy reports whether the data of the replica is whole, and stays: the running
// engine reads and writes it, or it was whole when the volume was detached. An engine may
// use one that is being deleted until its data is gone.
func (v Volume) Healthy(r Replica) bool {
	if !r.Deleted.IsZero() {
		return false
	}
	if v.Running {
		return r.Mode == "RW"
	}
	return !r.HealthyAt.IsZero() && r.FailedAt.IsZero()
}

// Unused reports that the volume has never been attached: Longhorn calls a replica healthy,
// or failed, only once an engine has used it.
func (v Volume) Unused() bool {
	return !v.Running && !slices.ContainsFunc(v.Replicas, func(r Replica) bool { return !r.HealthyAt.IsZero() || !r.FailedAt.IsZero() })
}

// HealthyReplicas counts them.
func (v Volume) HealthyReplicas() int {
	n := 0
	for _, r := range v.Replicas {
		if v.Healthy(r) {
			n++
		}
	}
	return n
}

// HealthyOn reports whether the volume has a healthy replica on node.
func (v Volume) HealthyOn(node string) bool {
	return slices.ContainsFunc(v.Replicas, func(r Replica) bool { return r.Node == node && v.Healthy(r) })
}

// On reports whether the volume has a replica on node.
func (v Volume) On(node string) bool {
	return slices.ContainsFunc(v.Replicas, func(r Replica) bool { return r.Node == node })
}

// Attachment is a VolumeAttachment.
type Attachment struct {
	Name   string
	UID    string
	Node   string
	Volume string // PersistentVolume; Longhorn calls its volume the same

	Daemons bool // only in a Storage: another node serves the volume, and here pods of DaemonSets alone use it
}

// LonghornNode is the part of Longhorn's Node that components reason about, with
// nothing in it that changes time and again.
type LonghornNode struct {
	Name    string // of the Kubernetes Node too
	UID     string
	Ready   ConditionStatus
	Allowed bool           // spec.allowScheduling
	Disks   []LonghornDisk // by name
}

// LonghornDisk is a disk of a LonghornNode.
type LonghornDisk struct {
	Name        string
	Allowed     bool  // spec.allowScheduling
	Reserved    int64 // spec.storageReserved, bytes
	Maximum     int64 // status.storageMaximum, bytes; 0 for unknown
	Ready       ConditionStatus
	Schedulable ConditionStatus
}

// The objects that zedkube keeps in Longhorn for the whole cluster.
const (
	LonghornDrainPolicy = "node-drain-policy"             // a LonghornSetting
	SnapshotJobName     = "default-eve-kube-app-snapshot" // EVE's own zedkube calls it the same
)

// LonghornSetting is one of Longhorn's Settings.
type LonghornSetting struct {
	Name    string
	UID     string
	Version string // resourceVersion
	Value   string
}

// SnapshotJob is a RecurringJob of Longhorn.
type SnapshotJob struct {
	Name        string
	UID         string
	Version     string // resourceVersion
	Task        string
	Groups      []string
	Cron        string
	Retain      int
	Concurrency int
	Ours        bool // zedkube made it, or EVE's own
}

// DaemonSet is the part of a DaemonSet that components reason about.
type DaemonSet struct {
	Name   string
	Wanted int // pods it should have
	Ready  int // pods of it that are ready
}

// ClaimPhase is the phase of a PersistentVolumeClaim as Kubernetes names it.
type ClaimPhase string

// The claim phases of the Kubernetes API.
const (
	ClaimPending ClaimPhase = "Pending"
	ClaimBound   ClaimPhase = "Bound"
	ClaimLost    ClaimPhase = "Lost"
)

// Claim is the part of a PersistentVolumeClaim of eve-kube-app that components
// reason about.
type Claim struct {
	Name        string
	Volume      string // its PersistentVolume, "" for none yet; Longhorn calls its volume the same
	Phase       ClaimPhase
	Bytes       int64 // capacity, or what it asks for while it has none
	Created     time.Time
	Provisioner string // annotation volume.kubernetes.io/storage-provisioner
}

// KubeStorageStatus says how far Longhorn is as the device's settings want it,
// under key "global" (docs/wire.md, "KubeStorageStatus"). It is for people: no
// agent reads it.
type KubeStorageStatus struct {
	DiskReservation StorageLevel // storageReserved of each disk of this node, bytes
	SnapshotJob     StorageLevel // the schedule of Longhorn's snapshots
	DrainPolicy     StorageLevel // Longhorn's node-drain-policy
}

// StorageLevel is one thing that zedkube keeps in Longhorn.
type StorageLevel struct {
	Kept   bool      // by this node: by each for its own disks, by the elected one for the cluster
	Wanted string    // by the settings; "" for nothing, or while Why says that they are invalid
	Actual string    // as the cluster shows it; "" for nothing, or where this node does not see it
	Since  time.Time // when the rest last changed, wall clock
	Why    string    // what keeps it from being as wanted, or from staying so, a sentence; "" for nothing
}

// VolumeConfig is zedagent's word on one volume. Fields zedkube has no use for
// are left out. The last two are the controller's and not in EVE's topic.
type VolumeConfig struct {
	VolumeID          uuid.UUID
	MaxVolSize        uint64 // bytes
	ReadOnly          bool
	GenerationCounter int64 // one more is a volume built again
	DisplayName       string
	DesignatedNodeID  uuid.UUID   // the device that makes the volume; nil for every device
	ReplicaNodeIDs    []uuid.UUID // the devices that hold replicas; nil for "not given"
}
