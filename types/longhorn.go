package types

import "time"

// LonghornNode is the part of Longhorn's Node that components reason about, with
// nothing in it that changes time and again.
type LonghornNode struct {
	Name        string // of the Kubernetes Node too
	UID         string
	Ready       ConditionStatus
	Schedulable ConditionStatus
	Allowed     bool           // spec.allowScheduling
	Disks       []LonghornDisk // by name
}

// LonghornDisk is a disk of a LonghornNode.
type LonghornDisk struct {
	Name        string
	Path        string
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
	UID         string
	Volume      string // its PersistentVolume, "" for none yet; Longhorn calls its volume the same
	Phase       ClaimPhase
	Bytes       int64 // capacity, or what it asks for while it has none
	Created     time.Time
	Deleted     time.Time // deletionTimestamp; zero while it is not being deleted
	Provisioner string    // annotation volume.kubernetes.io/storage-provisioner
}
