// Package overview reads what lies on a device for people to be shown: this node, its
// cluster, its drain, its applications. It needs neither the agent nor the API server,
// and works on a copy of /run. What is wrong package health says.
package overview

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// Overview is all that a device's files say at one moment. Secrets are left
// out. Texts are as their writers left them: anyone who shows them cleans or
// escapes them. Times are wall clock, UTC.
type Overview struct {
	ReadAt     time.Time       // the moment that ages count from
	Copied     bool            `json:",omitzero"` // the files are a copy, taken at ReadAt: no process is looked for
	Problems   []types.Finding // the worst first; empty for none, nil where nobody has judged
	Node       Node
	Agent      Agent
	API        API
	Cluster    Cluster
	Drain      Drain
	Lease      Lease
	Report     Report
	Storage    Storage
	Apps       Apps
	Workloads  types.WorkloadsStatus `json:",omitzero"` // of the whole cluster; zero where nothing was seen of it
	Nodes      Nodes
	Conditions Conditions
	Override   *types.K3sOverrideStatus `json:",omitempty"` // nil where the setting is empty
	Change     *types.KubeLifecycle     `json:",omitempty"` // of the version of k3s
	K3s        []string                 `json:",omitempty"` // sentences: what changes k3s or the kube container; none while all is as always
	Disks      []Disk                   // file systems that the agent writes to
	Unreadable []Source                 // files that are there and cannot be read
}

// Source says where a fact was read and how old it is.
type Source struct {
	File string    // path on the device
	At   time.Time `json:",omitzero"` // when it was written; zero where it is not there
	Why  string    `json:",omitzero"` // why it cannot be read; "" where it can, or is not there
}

// Known reports that the file was there and could be read.
func (t Source) Known() bool { return !t.At.IsZero() && t.Why == "" }

// Node is who this device is.
type Node struct {
	Source
	Name       string `json:",omitzero"` // in Kubernetes; "" for unknown
	UUID       string `json:",omitzero"`
	DeviceName string `json:",omitzero"`
	NoCluster  string `json:",omitzero"` // why there is no Kubernetes here at all, a sentence; "" where there is or may be
}

// Agent is whether this node's agent is alive.
type Agent struct {
	Runs bool
	Hung bool      `json:",omitzero"` // its process is there, and has no heartbeat
	PID  int       `json:",omitzero"`
	Why  string    `json:",omitzero"` // why it is taken for dead or hung; "" where it runs
	Seen time.Time `json:",omitzero"` // its last heartbeat; zero for never
}

// API is how well the API server is reached, as far as files tell.
type API struct {
	Kubeconfig Source
	Answers    types.ConditionStatus // Unknown where nothing tells
	Since      time.Time             `json:",omitzero"` // since when that is so
	Why        string                `json:",omitzero"` // a sentence
}

// Cluster is what this node knows of its membership.
type Cluster struct {
	Source                 // EdgeNodeClusterStatus
	Name         string    `json:",omitzero"`
	ID           string    `json:",omitzero"`
	Type         string    `json:",omitzero"` // ClusterType of the last valid configuration
	Interface    string    `json:",omitzero"`
	Address      string    `json:",omitzero"` // CIDR
	AddressReady bool      `json:",omitzero"`
	Role         string    `json:",omitzero"` // bootstrap, server, worker
	JoinServer   string    `json:",omitzero"`
	Error        string    `json:",omitzero"`
	ErrorSince   time.Time `json:",omitzero"`
	LBError      string    `json:",omitzero"` // of the load balancer's addresses
	LBErrorSince time.Time `json:",omitzero"`
	Wanted       bool      `json:",omitzero"` // the controller's configuration is valid and names a cluster
	Membership   Membership
	Members      Members
	Object       Object
}

// Object is the cluster as one object, as far as nothing else here says it.
type Object struct {
	Source                              // ClusterObject
	Phase      types.ClusterPhase       `json:",omitzero"`
	Since      time.Time                `json:",omitzero"` // of Phase
	Why        string                   `json:",omitzero"`
	Conditions []types.ClusterCondition `json:",omitempty"` // those of EVE's kube container
}

// Membership is whether this device belongs to a cluster.
type Membership struct {
	Source
	State        types.Membership `json:",omitzero"`
	Reason       string           `json:",omitzero"`
	InvalidSince time.Time        `json:",omitzero"`
	ByOperator   bool             `json:",omitzero"`
}

// Members is what this node makes of the cluster's masters.
type Members struct {
	Source                         // ClusterMembers
	Masters    []string            `json:",omitempty"` // UUIDs, as the controller names them
	Stale      []types.StaleMember `json:",omitempty"`
	TieBreaker string              `json:",omitzero"` // node name
	Hindered   string              `json:",omitzero"` // why something is not put right yet, a sentence
	Repairing  bool                `json:",omitzero"`
}

// Drain is the drain of this node.
type Drain struct {
	Source                               // NodeDrainProgress
	Progress    *types.NodeDrainProgress `json:",omitempty"` // without its journal; nil for none that can be read
	Status      string                   `json:",omitzero"`  // what EVE sees
	RequestedBy string                   `json:",omitzero"`  // whom that is for
	Request     *types.NodeDrainRequest  `json:",omitempty"` // the operator's, while it exists
	Forced      []ForceFile              `json:",omitempty"` // force files that are present
	Held        *Source                  `json:",omitempty"` // the fault marker, which lets no drain complete
}

// ForceFile is a file by which an operator overrides what EVE sees of drains.
type ForceFile struct {
	Source
	Says    string `json:",omitzero"` // the status; "" where it counts for nothing
	Ignored string `json:",omitzero"` // why it counts for nothing; "" where it has its effect
}

// Lease is who reports for the cluster.
type Lease struct {
	Source
	Leader  string    `json:",omitzero"` // node name; "" for nobody
	Mine    bool      `json:",omitzero"`
	Takes   bool      `json:",omitzero"` // this node takes part in the election
	Running bool      `json:",omitzero"` // the election runs
	Since   time.Time `json:",omitzero"` // since when Leader has the Lease; without one, since when this agent knows none
}

// Report is what this node says of the cluster to the controller.
type Report struct {
	Source                         // KubeReportHealth
	Reports  bool                  `json:",omitzero"` // this node reports for the cluster
	Info     Source                // KubeClusterInfo
	Sections []types.ReportSection `json:",omitempty"`
}

// Storage is Longhorn's settings, and volumes where this node reports.
type Storage struct {
	Source                    // KubeStorageStatus
	Settings []StorageSetting `json:",omitempty"`
	Health   string           `json:",omitzero"` // ServiceStatus; "" where this node does not report
	Since    time.Time        `json:",omitzero"` // of Health
	Volumes  []Volume         `json:",omitempty"`

	NotMounted *types.MountRecovery `json:",omitempty"` // MountRecovery, while pods of this node wait for it
}

// StorageSetting is one thing that zedkube keeps in Longhorn.
type StorageSetting struct {
	Name string // DiskReservation, SnapshotJob, DrainPolicy
	types.StorageLevel
}

// Apps are the applications of this device.
type Apps struct {
	Source // AppInstanceConfig, the newest
	List   []App
}

// App is an application.
type App struct {
	Name       string // display name
	UUID       string
	KubeName   string
	VM         bool
	VolumeIDs  []string                `json:",omitempty"`
	Activate   bool                    // the controller wants it to run
	State      string                  `json:",omitzero"` // AppKubeStatus; "" for not published
	StateAt    time.Time               `json:",omitzero"`
	Designated bool                    `json:",omitzero"` // this node is its designated node
	Affinity   string                  `json:",omitzero"`
	Here       bool                    `json:",omitzero"`  // it is scheduled on this node
	Node       string                  `json:",omitzero"`  // where it runs; "" for nowhere or unknown
	Since      time.Time               `json:",omitzero"`  // since when it is as it is
	Restarts   *uint32                 `json:",omitempty"` // nil for unknown
	Repair     *types.AppRepairStatus  `json:",omitempty"`
	Console    *types.AppConsoleStatus `json:",omitempty"`
	Ports      []string                `json:",omitempty"` // protocol/port
	Pods       []types.KubePodInfo     `json:",omitempty"` // where this node reports
	VMIs       []types.KubeVMIInfo     `json:",omitempty"` // where this node reports
}

// Conditions is what this node's agent watches of what others change.
type Conditions struct {
	Source                                  // KubeNodeConditions
	List         []types.NodeStateCondition `json:",omitempty"`
	Kubernetes   string                     `json:",omitzero"` // versions
	KubeVirt     string                     `json:",omitzero"`
	CDI          string                     `json:",omitzero"`
	Longhorn     string                     `json:",omitzero"`
	CNI          string                     `json:",omitzero"`
	InstalledAt  time.Time                  `json:",omitzero"`
	Certificates []types.NodeCertificate    `json:",omitempty"`
}

// Disk is a file system.
type Disk struct {
	Path string // on the device
	Size uint64 // bytes
	Free uint64 // bytes, for root

	Files, FreeFiles uint64 `json:"-"` // that it can hold, and more; 0, 0 where it counts none
}

// Of returns the condition of that type, where it is known.
func (c Conditions) Of(t types.NodeStateType) (types.NodeStateCondition, bool) {
	s, found := types.KubeNodeConditions{Conditions: c.List}.Of(t)
	return s, found && c.Known()
}
