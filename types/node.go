package types

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// ConditionStatus is the status of a Kubernetes condition; "" where the
// condition is missing.
type ConditionStatus string

// The condition statuses of the Kubernetes API.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Node is the part of a Kubernetes Node that components reason about.
type Node struct {
	Name            string
	UID             string
	ResourceVersion string // only in a fresh list
	UUID            string // label node-uuid: the EVE device's UUID
	Created         time.Time
	Deleted         time.Time // deletionTimestamp; zero while it is not being deleted
	Finalizers      []string  // that keep it while it is; nil while it is not

	Ready         ConditionStatus
	ReadySince    time.Time // last transition of the Ready condition
	Unschedulable bool
	CordonedBy    *Cordon // nil where the cordon is not one of zedkube's

	ControlPlane bool // label node-role.kubernetes.io/control-plane is "true"
	Master       bool // label node-role.kubernetes.io/master is present (k3s before 1.34)
	Etcd         bool // label node-role.kubernetes.io/etcd is present
	TieBreaker   bool // label tie-breaker-node is "true"

	OutOfService bool          // it has the taint node.kubernetes.io/out-of-service
	Fence        *Fence        // who put it there; nil where it is not one of zedkube's
	FenceLeft    *Fence        // zedkube's note of one that stands without the taint: somebody has removed that
	Witness      *Witness      // what its zedkube sees of nodes that are not Ready; nil where it has nothing to say
	Designated   *Designations // of which applications it is the designated node; nil where its zedkube says nothing

	K3s *K3sStamp // what its zedkube says of k3s; nil where it says nothing

	CordonKept bool            // annotation: an operator keeps the cordon of a drain
	TaintedAt  time.Time       // when the taint of unschedulable nodes was added; zero for unknown
	EtcdVoter  ConditionStatus // condition EtcdIsVoter
	Agent      *AgentStamp     // what a zedkube of this kind wrote there; nil for nothing. Whether it still runs: Foreign
	StampedAt  time.Time       // when Agent was last written, by the API server's clock
	StampStale bool            // Agent has not changed for StampFresh, counted while the table of nodes was whole
	// Agent has not been seen to change since the node's boot: whether the agent
	// that wrote it still runs is not known. Of a stamp that is not stale that is
	// known within StampEvery.
	StampUnconfirmed bool

	DrainInProgress ConditionStatus // of KEP-5683, written by zedkube
	DrainReason     string          // of DrainInProgress, also where that is False: the phase of its drain, or DrainForced
	Drained         ConditionStatus // of KEP-5683, written by zedkube
	RenewedAt       time.Time       // of its node Lease; only in a fresh list

	Conditions []NodeCondition // MemoryPressure, DiskPressure, PIDPressure and NetworkUnavailable, where it has them, by type
	Cores      int             // allocatable
	Memory     int64           // allocatable, bytes

	Writers []FieldWriter // of the labels above, and of the cordon where there is one, by field
	CNI     string        // what connects its pods, with its kind: "flannel vxlan"; "" for unknown

	BootID         string
	KubeletVersion string
	InternalIP     string
	ExternalIP     string
	KubeletPort    int // where its kubelet says that it listens, 0 for unknown; members are asked at PortKubelet
}

// FieldCordon is what FieldWriter calls a cordon. Labels it calls by their names.
const FieldCordon = "spec.unschedulable"

// FieldWriter is who wrote a field of a Node, as the API server tells.
type FieldWriter struct {
	Field   string
	Manager string    // field manager, such as kubectl
	At      time.Time // when that one last wrote anything on the Node; zero for unknown
}

// NodeCondition is one condition of a Node.
type NodeCondition struct {
	Type   string
	Status ConditionStatus
	Since  time.Time // its last transition
}

// CDIDeployment is the Deployment of NamespaceCDI that runs CDI's controller.
const CDIDeployment = "cdi-deployment"

// DeployedVersion is the version of what a Deployment runs, by the tag of its image.
type DeployedVersion struct{ Version string } // "" for unknown

// Cordon is what zedkube writes on a Node that it cordons: who and why. A
// cordon without it was made by someone else and is never undone.
type Cordon struct {
	By     string    `json:"by"`     // "zedkube"
	Reason string    `json:"reason"` // a sentence for people
	Since  time.Time `json:"since"`
	Kind   string    `json:"kind,omitempty"` // "" for that of a drain or of the tie-breaker
}

// CordonWorkloads is the kind of the cordon of a cluster whose workloads are disabled.
const CordonWorkloads = "workloads"

// CordonedForDrain reports that zedkube cordoned the node, and not for its workloads.
func (n Node) CordonedForDrain() bool { return n.CordonedBy != nil && n.CordonedBy.Kind == "" }

// InDrain reports that a drain has cordoned the node, and has not given that back.
func (n Node) InDrain() bool {
	return n.Unschedulable && n.CordonedForDrain() && !n.TieBreaker && !n.CordonKept
}

// NotBack says what a node lacks whose drain is over to be back from it, "" for nothing.
func (n Node) NotBack() string {
	switch {
	case n.Ready != ConditionTrue:
		return "node " + n.Name + ", which was drained, is not Ready again"
	case n.InDrain():
		return "node " + n.Name + " is still cordoned by its drain"
	}
	return ""
}

// BreaksTies reports that the node is the cluster's tie-breaker, by its label or by the
// configuration, which names the device with that UUID; "" for none.
func (n Node) BreaksTies(device string) bool {
	return n.TieBreaker || device != "" && n.UUID == device
}

// The parts of the system that have a pod on every node.
const (
	PartKubeVirt = "KubeVirt" // virt-handler
	PartLonghorn = "Longhorn" // longhorn-manager
	PartMultus   = "multus"
)

// PodPhase is a pod's phase as Kubernetes names it.
type PodPhase string

// The pod phases of the Kubernetes API.
const (
	PodPending   PodPhase = "Pending"
	PodRunning   PodPhase = "Running"
	PodSucceeded PodPhase = "Succeeded"
	PodFailed    PodPhase = "Failed"
	PodUnknown   PodPhase = "Unknown"
)

// Lease is the part of a Kubernetes Lease that components reason about.
type Lease struct {
	Name     string // in eve-kube-app
	Holder   string // "" for nobody
	Duration time.Duration
	Acquired time.Time // by the holder's clock
	Renewed  time.Time // by the holder's clock
	Version  string    // resourceVersion

	Task, BootID string // of the drain lock: as in DrainLock
}

// Owner is the controlling owner of an object.
type Owner struct {
	Kind string
	Name string
	UID  string
}

// Pod is the part of a Kubernetes Pod that components reason about.
type Pod struct {
	Namespace string
	Name      string
	UID       string
	NodeName  string // "" until scheduled
	Phase     PodPhase
	IP        string
	Created   time.Time
	Deleted   time.Time // deletionTimestamp; zero while the pod is not terminating
	Owner     Owner     // controlling owner reference; zero where there is none

	App       string // label app
	AppDomain string // label App-Domain-Name: <app UUID>.<version>.<number>
	VMI       string // label vm.kubevirt.io/name, on virt-launcher pods

	RestartCount int32     // of all containers
	RestartedAt  time.Time // when the instance before the last restart of a container ended; zero for none
	Reason       string    // status.reason, such as Evicted; "" for none

	Part    string // what part of the system it is: PartKubeVirt and so on; "" for none of them
	Version string // of that part, as its image is tagged; "" for unknown

	// Only in the table of the pods of this node.
	Networks   string // annotation k8s.v1.cni.cncf.io/networks; one that is too long is cut
	Deployment string // whose ReplicaSet owns it; "" for none

	// Only in the table of the pods of eve-kube-app.
	Containers    []Container // init containers first, else in the pod's order
	Claims        []string    // names of the PersistentVolumeClaims that it mounts, sorted
	Unschedulable string      // why the scheduler finds no node for it; "" where it does or has
}

// Key is the pod's key in a table: namespace/name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Terminating reports whether the pod is being deleted.
func (p Pod) Terminating() bool { return !p.Deleted.IsZero() }

// WaitsForVolumes reports that nothing is known of a pod but that its kubelet has begun with
// it. An address, or a container that has run, shows that its volumes are mounted.
func (p Pod) WaitsForVolumes() bool {
	return p.Phase == PodPending && p.NodeName != "" && !p.Terminating() && len(p.Claims) > 0 && p.IP == "" &&
		!slices.ContainsFunc(p.Containers, func(c Container) bool {
			return c.Now != (ContainerRun{}) || c.Waiting != "" && c.Waiting != "ContainerCreating" && c.Waiting != "PodInitializing"
		})
}

// APIStatus says how well the cluster is seen right now, under key "global".
// Without a value nothing is known yet.
type APIStatus struct {
	SilentSince  time.Time // zero while the API server answers
	Reason       string    // why it is taken for silent; "" while it answers
	NoKubeconfig bool      // it is because there has been no usable kubeconfig yet
	Synced       bool      // the tables of nodes, app pods and own pods hold a complete list of the present connection
	Apps         bool      // so do the tables of virtual machines and replica sets; without KubeVirt it has none, which is whole
}

// Answers reports whether the API server answers.
func (s APIStatus) Answers() bool { return s.SilentSince.IsZero() }

// SameButWitness reports whether n and other differ in no more than what the node
// publishes of lost ones: in a large cluster that changes several times a second.
func (n Node) SameButWitness(other Node) bool {
	n.Witness, other.Witness = nil, nil
	return reflect.DeepEqual(n, other)
}

// NodesByName lists the Nodes of a table by name. A thousand of them take half a
// megabyte, so each is copied once.
func NodesByName(nodes map[string]Node) []Node {
	list := make([]Node, 0, len(nodes))
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		list = append(list, nodes[name])
	}
	return list
}

// OwnNode finds this device's Node: by its node-uuid label, and by name while
// no Node carries that label yet.
func OwnNode(nodes map[string]Node, info EdgeNodeInfo) (Node, bool) {
	device := info.DeviceID.String()
	if n := nodes[info.NodeName()]; n.UUID == device { // as it usually is, among however many
		return n, true
	}
	for _, n := range nodes {
		if n.UUID != "" && n.UUID == device {
			return n, true
		}
	}
	n, ok := nodes[info.NodeName()]
	if ok && n.UUID != "" {
		return Node{}, false // that name belongs to another device
	}
	return n, ok
}

// ErrNoAPI is wrapped by every verb that finds no usable kubeconfig.
var ErrNoAPI = errors.New("no connection to a Kubernetes API server")

// ErrRefused is wrapped when the API server says no to a change of a Node: not
// when it is out of reach, overloaded or in trouble itself, nor when someone
// else was faster.
var ErrRefused = errors.New("refused by the API server")

// ErrDisruptionBudget is wrapped when a PodDisruptionBudget refuses an eviction.
var ErrDisruptionBudget = errors.New("refused by a PodDisruptionBudget")

// HasAPIServer reports whether the node runs an API server, as its labels say.
func (n Node) HasAPIServer() bool { return n.ControlPlane || n.Master }

// IsServer reports whether the node is a server of k3s, with an API server, etcd or both.
func (n Node) IsServer() bool { return n.HasAPIServer() || n.Etcd }

// MayDrainUnlocked reports whether the node is a cordoned server whose agent may know no
// drain lock. EVE's own zedkube leaves no other sign of a drain.
func (n Node) MayDrainUnlocked() bool {
	return n.IsServer() && !n.TieBreaker && n.Unschedulable && n.MaybeForeign()
}

// MayReboot reports that the drain of the node is complete, as its agent says in its
// conditions: the device may reboot, also without the drain lock (docs/wire.md, "Drain lock",
// 7). What an agent that is gone has said of it counts no longer.
func (n Node) MayReboot() bool {
	return n.Unschedulable && n.DrainInProgress != ConditionTrue && EndsDrain(n.DrainReason) && !n.Foreign()
}

// NotRebooted says of a node for which others wait that it MayReboot.
func (n Node) NotRebooted() string {
	return "the drain of node " + n.Name + " is complete, and it has not rebooted yet, as its conditions say"
}

// Votes reports whether the node has a member of etcd that votes. A learner
// does not; one whose condition is missing is taken for a voter.
func (n Node) Votes() bool { return n.Etcd && n.EtcdVoter != ConditionFalse }

// Quorum is how etcd stands by the Nodes of the cluster.
type Quorum struct {
	Voters   int
	Ready    int      // of the voters
	Learners int      // members that do not vote yet
	Down     []string // voters that are not Ready, in the order of the Nodes
}

// QuorumOf counts the members of etcd.
func QuorumOf(nodes []Node) Quorum {
	var q Quorum
	for _, n := range nodes {
		switch {
		case !n.Etcd:
		case !n.Votes():
			q.Learners++
		case n.Ready == ConditionTrue:
			q.Voters++
			q.Ready++
		default:
			q.Voters++
			q.Down = append(q.Down, n.Name)
		}
	}
	return q
}

// Has reports whether more than half of the voters are Ready.
func (q Quorum) Has() bool { return 2*q.Ready > q.Voters }

// Spare is how many more voters may fail before quorum is lost.
func (q Quorum) Spare() int { return max(0, q.Ready-q.Voters/2-1) }

// Without is the Nodes, the one of that name not Ready.
func Without(nodes []Node, name string) []Node {
	there := slices.Clone(nodes)
	for i := range there {
		if there[i].Name == name {
			there[i].Ready = ConditionFalse
		}
	}
	return there
}

// LacksQuorum says what etcd lacks to go on without the node of that name, ""
// for nothing: more than half of its voting members Ready, which of one or two
// is all the others. Where all the others are Ready nothing is lacking.
func LacksQuorum(nodes []Node, without string) string {
	q := QuorumOf(Without(nodes, without))
	down := slices.DeleteFunc(q.Down, func(name string) bool { return name == without })
	if len(down) == 0 || q.Has() {
		return ""
	}
	are := "are"
	if len(down) == 1 {
		are = "is"
	}
	return fmt.Sprintf("%d of %d etcd members would be Ready, which is no quorum: %s %s not", q.Ready, q.Voters, strings.Join(down, ", "), are)
}

// OfflineSince says of a node of KubeEdge that is not Ready since when.
func OfflineSince(n Node) string {
	if n.ReadySince.IsZero() {
		return "offline"
	}
	return "offline since " + n.ReadySince.UTC().Format(time.RFC3339)
}
