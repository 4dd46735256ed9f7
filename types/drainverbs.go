package types

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

// AgentStamp is what each zedkube writes on its own Node: that it is one, and
// whom its controller names as the cluster's masters (docs/wire.md, "Nodes"). It
// is written again every StampEvery, with what it says left as it was, Given too,
// where the controller cannot be asked. An agent that knows no Renewed does so only
// while the controller answers it.
type AgentStamp struct {
	Version string      `json:"version"`
	Cluster uuid.UUID   `json:"cluster,omitzero"`  // whose masters these are
	Masters []uuid.UUID `json:"masters,omitempty"` // nil while the own configuration is not valid or names none
	Given   time.Time   `json:"given"`             // when the list was last known to hold, by the own clock
	// TieBreaker is the device that is named as the cluster's tie-breaker, zero for
	// none. A zedkube from before this field does not say.
	TieBreaker uuid.UUID `json:"tieBreaker,omitzero"`
	Leaving    bool      `json:"leaving,omitempty"` // it is decided that this node leaves its cluster
	Renewed    time.Time `json:"renewed,omitzero"`  // when the agent wrote this, by its own clock: only there so that each write is a change
}

// DrainLock is the Lease that lets one node of the cluster drain at a time
// (docs/wire.md, "Drain lock").
type DrainLock struct {
	Holder  string         // node name; "" for nobody
	BootID  string         // of the holder's Node when it took the lock
	Since   time.Time      // when it did
	Ended   bool           // the drain ended otherwise than by a reboot
	Volumes map[string]int // healthy replicas, at that time, of each volume with a replica on the holder
	Task    string         // what the holder does under it, if it is no drain; "" for a drain

	Version string // resourceVersion, "" where there is no Lease
}

// DrainLockName is the name of the Lease of a DrainLock, in eve-kube-app.
const DrainLockName = "zedkube-node-drain"

// TaskMembers is the DrainLock.Task of a node that removes a stale member.
const TaskMembers = "members"

// DrainConditions are the Node conditions of KEP-5683.
type DrainConditions struct {
	InProgress bool
	Drained    bool
	Reason     string // CamelCase
	Message    string
}

// Event is a Kubernetes Event of zedkube's.
type Event struct {
	Node    string // the Node it is about, or, with Pod or Set, the node concerned
	Pod     Pod    // the pod it is about; zero for the Node
	Set     AppSet // the replica set it is about, where Pod is zero; zero for the Node
	Warning bool
	Reason  string // CamelCase
	Message string
}

// PodSituation is why a pod does not move, as far as the cluster can tell.
type PodSituation struct {
	Pod        Pod
	Finalizers []string
	Grace      time.Duration // its termination grace period
	Pinned     bool          // its maker wrote the node's name into it: no scheduler moves it
	Tolerates  bool          // the taint of cordoned nodes
	Budgets    []PodBudget   // that cover it
	Immovable  string        // why its virtual machine cannot migrate, as KubeVirt says; "" where it can or is none
	Strategy   string        // evictionStrategy of its virtual machine; "" where it has none or is none
	Fits       int           // other nodes that would take it now
	Lacks      string        // why none would, a sentence; "" where one would
}

// PodBudget is a PodDisruptionBudget.
type PodBudget struct {
	Name    string // namespace/name
	Allowed int    // disruptions allowed now
	Healthy int    // pods healthy now
	Desired int    // pods that have to stay healthy
	Expects int    // pods it covers
	Trouble string // why its controller cannot count them; "" where it can
}

// ErrConflict is wrapped when someone else was faster.
var ErrConflict = errors.New("changed by someone else")

// ErrHeld is wrapped when the repair lease is another node's.
var ErrHeld = errors.New("held by another node")

// ErrNoAnswer is wrapped by a write that got no answer below 500, or a 401.
var ErrNoAnswer = errors.New("no answer from the API server")
