package types

import "time"

// ContainerRun is one instance of a container.
type ContainerRun struct {
	ID       string    // the runtime's, "" for none
	Started  time.Time // zero while unknown
	Finished time.Time // zero while it runs
	ExitCode int32
	Reason   string // of its end, CamelCase
}

// Container is the part of a container's status that components reason about.
type Container struct {
	Name     string
	Init     bool         // it has to end before the others start
	Waiting  string       // why it does not run, CamelCase; "" while it runs or has ended
	Now      ContainerRun // the present instance, or the one that ended last; zero before the first
	Last     ContainerRun // the one before, whose log the kubelet still has; zero for none
	Restarts int32
}

// VMIPhase is the phase of a virtual machine instance as KubeVirt names it.
type VMIPhase string

// The phases of KubeVirt's API.
const (
	VMIUnset      VMIPhase = ""
	VMIPending    VMIPhase = "Pending"
	VMIScheduling VMIPhase = "Scheduling"
	VMIScheduled  VMIPhase = "Scheduled"
	VMIRunning    VMIPhase = "Running"
	VMISucceeded  VMIPhase = "Succeeded"
	VMIFailed     VMIPhase = "Failed"
	VMIUnknown    VMIPhase = "Unknown"
)

// VMI is the part of a KubeVirt VirtualMachineInstance of eve-kube-app that
// components reason about.
type VMI struct {
	Name       string
	UID        string
	Version    string // resourceVersion
	Phase      VMIPhase
	NodeName   string // "" until it is scheduled
	Owner      Owner  // its replica set
	AppDomain  string // label App-Domain-Name
	Created    time.Time
	Deleted    time.Time // deletionTimestamp; zero while it is not being deleted
	Ready      bool
	ReadySince time.Time   // last transition of its Ready condition while Ready; else zero
	Affinity   SetAffinity // what its set's template asked for when it was made: it never changes
}

// The kinds of AppSet.
const (
	KindVMIReplicaSet = "VirtualMachineInstanceReplicaSet"
	KindReplicaSet    = "ReplicaSet"
)

// AppSet is what domainmgr makes of an application in eve-kube-app: a replica
// set of virtual machines or of pods (docs/wire.md, "Names of app objects").
type AppSet struct {
	Kind      string
	Name      string
	UID       string
	Version   string // resourceVersion
	AppDomain string // label App-Domain-Name
	Created   time.Time
	Deleted   time.Time // deletionTimestamp; zero while it is not being deleted
	Wanted    int32     // spec.replicas
	Ready     int32     // status.readyReplicas
	Affinity  SetAffinity
	Claims    []string   // names of the PersistentVolumeClaims that its template mounts, sorted
	Note      RepairNote // what zedkube has written on it; zero for nothing
}

// Key is the set's key in a table: kind/name.
func (s AppSet) Key() string { return s.Kind + "/" + s.Name }

// SetAffinity is the node affinity of a set's template to host names.
type SetAffinity struct {
	Node     string // the one host name it asks for; "" where there is none, or not exactly one
	Required bool   // else preferred
	Other    bool   // the template has affinities beyond this one, which stay as they are
}

// RepairNote is what zedkube remembers of an application across its own death
// and that of its node, as an annotation of the AppSet (docs/wire.md, "App
// objects"). Times are by the clock of the node that wrote it.
type RepairNote struct {
	Act      RepairAct `json:"act,omitempty"`
	Node     string    `json:"node,omitempty"`     // the lost node, for a failover
	NodeUID  string    `json:"nodeUID,omitempty"`  // its Node's
	By       string    `json:"by,omitempty"`       // the node that acts
	Step     string    `json:"step,omitempty"`     // the last one that was taken
	Since    time.Time `json:"since,omitzero"`     // when the act began
	At       time.Time `json:"at,omitzero"`        // when Step was taken
	Stuck    int       `json:"stuck,omitempty"`    // stuck instances deleted since the application last ran
	Failback string    `json:"failback,omitempty"` // boot ID of the designated node at the last failback
	Moved    time.Time `json:"moved,omitzero"`     // when zedkube last changed the affinity of the AppSet
	MovedTo  string    `json:"movedTo,omitempty"`  // the node that it named
}

// RepairAct is what is done for an application.
type RepairAct string

// The acts.
const (
	ActNone     RepairAct = ""
	ActFailover RepairAct = "failover" // from a node that is gone
	ActUnstick  RepairAct = "unstick"  // a virtual machine that does not start
	ActRevive   RepairAct = "revive"   // a set that was left at 0 replicas
	ActMove     RepairAct = "move"     // the affinity, after the designated node
	ActFailback RepairAct = "failback" // to the designated node
)

// Fence is what zedkube writes on a Node that it takes out of service with the
// taint node.kubernetes.io/out-of-service. A taint without it is someone
// else's and is never removed.
type Fence struct {
	By     string    `json:"by"`     // node name of the writer
	Reason string    `json:"reason"` // a sentence for people
	Since  time.Time `json:"since"`
}

// Witness is what a node's zedkube tells, on its own Node, of the Nodes that are
// not Ready: whether their devices answer it (docs/wire.md, "Nodes").
type Witness struct {
	Round     int64      `json:"round"` // one more with every look, so that a dead witness is known
	Sightings []Sighting `json:"sightings,omitempty"`
	Omitted   int        `json:"omitted,omitempty"` // nodes not Ready of which it cannot tell: too many, or no way to them
}

// Sighting is one look at one node.
type Sighting struct {
	Node   string `json:"node"`
	UID    string `json:"uid"`    // of its Node
	Alive  string `json:"alive"`  // what answered, "" for nothing: an address with its port
	Silent int    `json:"silent"` // rounds in a row in which nothing answered
}

// PodRef names one pod of one kubelet.
type PodRef struct {
	Namespace string
	Name      string
	UID       string
}
