package types

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

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

// IsFinal reports that an instance will not run again, as KubeVirt's own IsFinal does.
func (p VMIPhase) IsFinal() bool { return p == VMISucceeded || p == VMIFailed }

// VMI is the part of a KubeVirt VirtualMachineInstance of eve-kube-app that
// components reason about.
type VMI struct {
	Name       string
	UID        string
	Phase      VMIPhase
	NodeName   string // "" until it is scheduled
	Owner      Owner  // its replica set
	AppDomain  string // label App-Domain-Name
	Created    time.Time
	Deleted    time.Time // deletionTimestamp; zero while it is not being deleted
	Ready      bool
	ReadySince time.Time   // last transition of its Ready condition while Ready; else zero
	Affinity   SetAffinity // what its set's template asked for when it was made: it never changes
	Claims     []string    // names of the PersistentVolumeClaims that it mounts, sorted
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
	Version   string    // resourceVersion
	AppDomain string    // label App-Domain-Name
	Deleted   time.Time // deletionTimestamp; zero while it is not being deleted
	Wanted    int32     // spec.replicas
	Affinity  SetAffinity
	Claims    []string   // names of the PersistentVolumeClaims that its template mounts, sorted
	Note      RepairNote // what zedkube has written on it; zero for nothing

	Paused bool         // of virtual machines: KubeVirt makes and deletes no instances
	Owned  bool         // it has a controlling owner, which decides how many copies it has
	Former *FormerScale // nil while it is not disabled
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
	StuckVMI string    `json:"stuckVMI,omitempty"` // UID of the last one, which is counted before it is deleted
	Failback string    `json:"failback,omitempty"` // boot ID of the designated node at the last failback
	Evicted  string    `json:"evicted,omitempty"`  // UID of the pod that was to be evicted for it
	Returned time.Time `json:"returned,omitzero"`  // when that was; see LastFailback
	Moved    time.Time `json:"moved,omitzero"`     // when zedkube last changed the affinity of the AppSet
	MovedTo  string    `json:"movedTo,omitempty"`  // the node that it named
}

// LastFailback is when the application was last moved back; zero for never. A note of a
// release without Returned says so only until the next act.
func (n RepairNote) LastFailback() time.Time {
	if n.Act == ActFailback && n.Returned.IsZero() {
		return n.At
	}
	return n.Returned
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
	ActRestart  RepairAct = "restart"  // of k3s, whose kubelet does not mount its volumes
)

// Fence is what zedkube writes on a Node that it takes out of service with the
// taint node.kubernetes.io/out-of-service. A taint without it is someone
// else's and is never removed.
type Fence struct {
	By     string    `json:"by"`     // node name of the writer
	Reason string    `json:"reason"` // a sentence for people
	Since  time.Time `json:"since"`
}

// Same reports whether both are one fence, and not one of another time.
func (f Fence) Same(other Fence) bool { return f.By == other.By && f.Since.Equal(other.Since) }

// PodRef names one pod of one kubelet.
type PodRef struct {
	Namespace string
	Name      string
	UID       string
}

// LogOptions say what to read of a container's log. Each line comes with its
// time in RFC 3339 with nanoseconds and a space before it.
type LogOptions struct {
	Container string
	Previous  bool      // of the instance before the current one
	Follow    bool      // go on until the container ends
	Since     time.Time // the oldest line; the server knows seconds only, parts of one are cut off; zero for the beginning
	Tail      int64     // at most that many lines, the newest; 0 for all
}

// ErrNoLog is wrapped where the kubelet has no such log: the pod is gone, the
// container has not started, or there was no instance before.
var ErrNoLog = errors.New("no such log")

// LogFile is a file of a container's log that a kubelet keeps.
type LogFile struct {
	Name    string // in the directory of the container
	Run     int32  // which of the container's instances wrote it, from 0
	Rotated bool   // nothing is added to it any more
}

// Compare orders files as they were written.
func (f LogFile) Compare(other LogFile) int {
	newest := func(f LogFile) int {
		if f.Rotated {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(f.Run, other.Run), cmp.Compare(newest(f), newest(other)), cmp.Compare(f.Name, other.Name))
}

// NAD is the NetworkAttachmentDefinition host-<Interface> of eve-kube-app that
// hands an Ethernet port to a native container (docs/wire.md, "Network
// attachments"). One object serves all nodes that have a port of that name.
type NAD struct {
	Interface string            // Linux name
	Owners    map[string]string // by node name, the UID of the Node whose applications need it
	Unowned   bool              // who needs it cannot be read: nobody, or anyone who says so first
	Altered   bool              // it is zedkube's, but does not say what zedkube wrote
}

// ErrNotInstalled is wrapped where the API server does not know a kind: what
// brings it is not installed, or not yet.
var ErrNotInstalled = errors.New("not known to the API server")

// ErrForeignNAD is wrapped where somebody else's network attachment has the name.
var ErrForeignNAD = errors.New("there is one with another configuration that is not zedkube's")

// IsObjectName reports whether Kubernetes takes a name for that of a Node or of
// another such object.
func IsObjectName(name string) bool {
	return len(name) <= maxObjectName && objectName.MatchString(name)
}

// maxObjectName is not counted in the expression, which would make it a large one.
const maxObjectName = 253

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

const (
	nadPrefix = "host-"
	// linkName is how long Linux lets the name of an interface be.
	linkName = 15
)

// NADName is the name of the object for a Linux interface. It is an error where
// that is no name of an interface, or none that an object can have: domainmgr
// refers to the object by exactly this name, so there is no other to choose.
func NADName(ifname string) (string, error) {
	name := nadPrefix + ifname
	switch {
	case ifname == "" || len(ifname) > linkName || ifname == "." || ifname == ".." || strings.ContainsAny(ifname, "/: \t\n\v\f\r\x00"):
		return "", fmt.Errorf("%q is not a valid name of a network interface", ifname)
	case !IsObjectName(name):
		return "", fmt.Errorf("interface %q cannot be passed through: %q is not a valid name of a Kubernetes object (lower-case letters, digits, - and . only)", ifname, name)
	}
	return name, nil
}

// NADInterface is the interface that an object of that name is for; false where
// the name is none of ours.
func NADInterface(name string) (string, bool) {
	ifname, ok := strings.CutPrefix(name, nadPrefix)
	if !ok {
		return "", false
	}
	_, err := NADName(ifname)
	return ifname, err == nil
}

// SRIOVConfig is the ConfigMap of the SR-IOV device plug-in, which all nodes of
// the cluster share (docs/wire.md, "SR-IOV").
type SRIOVConfig struct {
	Version string            // resourceVersion; "" where there is no ConfigMap
	Data    map[string]string // text by key
}

// SRIOVPlugin is a pod of the SR-IOV device plug-in.
type SRIOVPlugin struct {
	Name        string
	UID         string
	Created     time.Time // by the API server's clock
	Terminating bool
	Part        string // what zedkube has written on it of the configuration it has read; "" for nothing
}

// SRIOVNetwork is a network attachment of eve-kube-app that is served by a
// device plug-in.
type SRIOVNetwork struct {
	Name     string
	UID      string
	Version  string // resourceVersion
	Resource string // the plug-in's resource: prefix/name
}
