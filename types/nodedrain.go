package types

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// DrainRequester says who asked for a drain.
type DrainRequester uint8

// The requesters of docs/wire.md, "NodeDrainRequest".
const (
	DrainRequesterUnset DrainRequester = iota
	DrainRequesterNone
	DrainRequesterDeviceOp // zedagent: reboot or shutdown
	DrainRequesterUpdate   // baseosmgr: base OS update
)

func (r DrainRequester) String() string {
	return enumName("DrainRequester", []string{"UNSET", "NONE", "DEVICEOP", "UPDATE"}, r)
}

// DrainStatus is where a node stands on its way to being empty.
type DrainStatus uint8

// The states of docs/wire.md, "NodeDrainStatus".
const (
	DrainUnknown DrainStatus = iota
	DrainNotSupported
	DrainNotRequested
	DrainRequested
	DrainStarting
	DrainCordoned
	DrainFailedCordon
	DrainRetrying
	DrainFailedDrain
	DrainComplete
)

func (s DrainStatus) String() string {
	return enumName("DrainStatus", []string{
		"UNKNOWN", "NOTSUPPORTED", "NOTREQUESTED", "REQUESTED", "STARTING",
		"CORDONED", "FAILEDCORDON", "DRAINRETRYING", "FAILEDDRAIN", "COMPLETE",
	}, s)
}

// NodeDrainRequest asks for this node to be emptied, under key "global" of
// zedagent or of baseosmgr.
type NodeDrainRequest struct {
	RequestedAt time.Time
	RequestedBy DrainRequester
	Context     string
}

// NodeDrainStatus answers the requesters, under key "global". Each consumer
// drops a value whose RequestedBy is not its own.
type NodeDrainStatus struct {
	Status      DrainStatus
	RequestedBy DrainRequester
}

// NodeDrainJournal is what the drain has to remember over a restart and over a
// reboot, under key "global" of a persistent topic of zedkube's own. Durations
// count from the boot (CLOCK_BOOTTIME): no wall clock moves them, and they mean
// nothing in another boot.
type NodeDrainJournal struct {
	BootID  string
	Serial  uint64        // grows with every change
	Uptime  time.Duration // when this was written
	Adopted bool          // a cordon from before the first start has been looked for

	Phase    DrainPhase
	Reason   string
	Status   NodeDrainStatus             // as decided, published right after
	Requests map[string]NodeDrainRequest // by DEVICEOP, UPDATE, OPERATOR, LEAVE
	Failed   []time.Time                 // RequestedAt of the requests whose drain failed
	Told     []DrainRequester            // who has been told of the final state
	Standing time.Duration               // since when the requester sees a drain under way
	Said     time.Duration               // when Status last changed
	Asked    time.Duration               // when the drain was asked for
	Cordoned time.Duration               // when the node was cordoned for it; 0 for not yet
	Ended    time.Duration               // when it completed or failed
	Attempt  int
	Losses   int               // of the cordon to someone else
	Refusals int               // of the cordon
	Node     string            // that was cordoned or locked, "" for none
	NodeBoot string            // its boot id then, as the cluster showed it
	Silent   time.Duration     // since when the API server has not answered; 0 while it does
	Locked   bool              // the lock may be ours
	Kept     bool              // an operator forced COMPLETE: the cordon stays until withdrawal or boot
	Dead     bool              // COMPLETE because nothing answered: lock and cordon are made up for
	Left     bool              // the Node was deleted, at the end of a leave
	Rebooted bool              // no drain was seen since the boot: what is given back waits for the Node to be Ready
	Unused   bool              `json:",omitempty"` // COMPLETE was taken back: what it held goes a minute later
	Spent    map[string]string `json:",omitempty"` // force files that had their effect and could not be removed: path to what identifies one writing of it
	Markers  map[string]string `json:",omitzero"`  // nil for not known; what the markers of a device that goes down were when COMPLETE was decided on: path to what identifies one writing of it
	Total    int               // pods chosen so far

	Ends      bool         `json:",omitempty"` // COMPLETE although nothing was evicted: the cluster ends with this node
	Unemptied bool         `json:",omitempty"` // COMPLETE although nothing was evicted: it could not be, or no other node would take the pods
	Look      *StorageLook `json:",omitempty"` // the last one at what a leave would take along; nil for none
}

// DrainPhase is where a drain stands, in a word that people can read.
type DrainPhase string

// The phases of a drain, in the order in which it goes through them.
const (
	PhaseIdle     DrainPhase = "Idle"     // no drain; whatever an earlier one left is given back
	PhaseGates    DrainPhase = "Gates"    // waits for the lock and for quorum, then cordons
	PhaseEmptying DrainPhase = "Emptying" // cordoned: pods are evicted, volumes detach and rebuild
	PhaseComplete DrainPhase = "Complete" // the device may go down
	PhaseNoCordon DrainPhase = "NoCordon" // failed: the node could not be cordoned
	PhaseNotEmpty DrainPhase = "NotEmpty" // failed: the deadline has passed
)

// DrainOutlook says what waiting is worth under present conditions.
type DrainOutlook string

// The outlooks.
const (
	OutlookSlow  DrainOutlook = "slow"  // it will end by itself
	OutlookNever DrainOutlook = "never" // someone has to do something
)

// NodeDrainProgress explains the drain of this node, under key "global"
// (docs/wire.md, "NodeDrainProgress"). NodeDrainStatus says the same in EVE's
// two numbers. All times are wall-clock times, for people.
type NodeDrainProgress struct {
	Phase      DrainPhase
	Reason     string    // a sentence: why it stands there
	Since      time.Time // when this reason began to hold
	Requesters []string  // DEVICEOP, UPDATE, OPERATOR, K3S, LEAVE
	Attempt    int       // 1 to Attempts; 0 before the eviction
	Attempts   int
	Started    time.Time // when the drain was asked for
	Deadline   time.Time // when it fails
	Ended      time.Time // when it completed or failed
	Forced     bool      `json:",omitempty"` // Complete because a force file says so: Blockers and Volumes are left on the node

	Pods            DrainPods
	Blockers        []DrainBlocker // pods in the way, the longest-standing first, bounded
	BlockersOmitted int            // how many more there are
	Volumes         []DrainVolume  // volumes in the way, bounded
	VolumesOmitted  int
	Stranded        []string // pods that can run only here and are evicted anyway, bounded
	StrandedOmitted int

	Lock     DrainLockView
	Quorum   string   // a sentence while quorum is missing, else ""
	Cordon   string   // who keeps the node unschedulable: zedkube, operator, tie-breaker, kept; "" for nobody
	Warnings []string `json:",omitempty"` // what is to be known and holds nothing up, bounded: nodes that someone else has cordoned
	Left     bool     // this node has left the cluster and its Node is deleted

	Journal NodeDrainJournal `json:",omitzero"` // the same as on disk, for when that is full
}

// Over reports that no drain of this node is requested, under way or complete. One that failed is over
// once nobody requests it and what it held is given back: its phase stays until the next one.
func (p NodeDrainProgress) Over() bool {
	switch p.Phase {
	case "", PhaseIdle:
		return true
	case PhaseNoCordon, PhaseNotEmpty:
		return len(p.Requesters) == 0 && !p.Holds()
	}
	return false
}

// Holds reports that the drain of this node has passed its gates, and has not given back what it took.
func (p NodeDrainProgress) Holds() bool {
	switch p.Phase {
	case PhaseEmptying, PhaseComplete:
		return true
	case PhaseNoCordon, PhaseNotEmpty:
		return p.Lock.Mine || p.Journal.Locked || p.Cordon == CordonedByZedkube
	}
	return false
}

// OnlyForK3s reports that this node is drained for its own change of k3s, and for nobody else.
func (p NodeDrainProgress) OnlyForK3s() bool {
	return len(p.Requesters) == 1 && p.Requesters[0] == RequestedByK3s
}

// DrainPods counts the pods that the drain has to remove.
type DrainPods struct {
	Total       int // ever chosen in this drain
	Evicted     int // gone
	Terminating int // on their way out
	Waiting     int // not evicted yet
}

// DrainBlocker is a pod in the way.
type DrainBlocker struct {
	Pod     string // namespace/name
	Node    string
	Since   time.Time // since when it is in the way
	Cause   string    // budget, finalizer, kubelet, pinned, returns, no-room, immovable, grace, refused
	Why     string    // a sentence with names and numbers
	Outlook DrainOutlook
	Remedy  string // what an operator may do; "" where waiting is enough
}

// DrainVolume is a volume in the way.
type DrainVolume struct {
	Name       string
	Claim      string // namespace/name of its claim, "" for none
	Since      time.Time
	Why        string // a sentence
	Replicas   int    // how many it should have
	Healthy    int
	LastHere   bool   // this node holds the last healthy one
	Rebuilding string // the node that a replica is rebuilt on, "" for none
	Percent    int    // of that rebuild
	ETA        int    // seconds until it is done at the present rate; 0 for unknown
	Outlook    DrainOutlook
	Remedy     string
}

// DrainLockView is the lock that lets one node of the cluster drain at a time.
type DrainLockView struct {
	Holder string // node name, "" for nobody
	Mine   bool
	Since  time.Time // when the holder took it
	Waits  string    // why it is not given to us, "" where we hold it or do not want it
}

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
	Leaving    bool      `json:"leaving,omitempty"`   // it is decided that this node leaves its cluster
	TLS        bool      `json:"tls,omitempty"`       // the status server has a token to speak TLS with; a zedkube from before this field speaks none
	Witnesses  int       `json:"witnesses,omitempty"` // its WitnessMost; a zedkube from before this field needs a word of every node
	Renewed    time.Time `json:"renewed,omitzero"`    // when the agent wrote this, by its own clock: only there so that each write is a change
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

// TaskK3s is the DrainLock.Task of a node that restarts its k3s.
const TaskK3s = "k3s"

// TaskK3sChange is the DrainLock.Task of a node that changes the version of its k3s.
const TaskK3sChange = "k3s-version"

// OverWhereOff reports whether the lock is one for a change of k3s that has ended, because the
// device of its holder is off, as witnesses prove, and its kubelet does not report. One that is
// drained as well may be rebooting.
func (l DrainLock) OverWhereOff(holder Node, off bool) bool {
	return off && l.Task == TaskK3sChange && l.BootID != "" && holder.Ready == ConditionUnknown && !holder.MayReboot()
}

// Degraded returns, by name, the volumes that have fewer healthy replicas than the lock
// recorded, of those that are still there and not detached. One that has as many as it
// should is not worse off: it had more while one of them moved. Nor is one whose replica on the
// holder is healthy, or was when the engine was lost with another node: that node may have to be
// removed from the cluster first, under this lock.
func (l DrainLock) Degraded(s Storage) []string {
	var names []string
	for _, v := range s.Volumes {
		before := l.Volumes[v.Name]
		if v.Wanted > 0 {
			before = min(before, v.Wanted)
		}
		// Between attached and detached it is not known, nor, but for the replica on the holder, where the engine is lost.
		worse := v.State != "detached" && before > 0 && !v.wasHealthyOn(l.Holder)
		if v.Running {
			worse = v.HealthyReplicas() < before && !v.HealthyOn(l.Holder)
		}
		if s.Longhorn && worse {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// WithVolumes returns the volumes of the lock where its holder takes it over for something else: of each as many
// healthy replicas as were recorded, or as there are now if that is more. What was recorded first may be
// of a volume that was being rebuilt, or that nothing had used yet.
func (l DrainLock) WithVolumes(now map[string]int) map[string]int {
	all := map[string]int{}
	maps.Copy(all, l.Volumes)
	for name, healthy := range now {
		all[name] = max(all[name], healthy)
	}
	return all
}

// wasHealthyOn reports that the volume's engine is lost on another node, and that the replica on node was
// healthy until then. Longhorn sets FailedAt of one whose own node went away.
func (v Volume) wasHealthyOn(node string) bool {
	return v.State == "attached" && !v.Running && v.Engine != "" && v.Engine != node && slices.ContainsFunc(v.Replicas, func(r Replica) bool {
		return r.Node == node && r.LastMode == "RW" && v.Healthy(r)
	})
}

// DrainForced is the DrainConditions.Reason of a drain that an operator called complete.
const DrainForced = "Forced"

// EndsDrain reports that a DrainConditions.Reason says that the drain is complete.
func EndsDrain(reason string) bool {
	return reason == string(PhaseComplete) || reason == DrainForced
}

// DrainConditions are the Node conditions of KEP-5683.
type DrainConditions struct {
	InProgress bool
	Drained    bool
	Reason     string // the phase, or DrainForced
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

// ErrOwnCordon is wrapped where an operator may not undo a cordon of zedkube's.
var ErrOwnCordon = errors.New("zedkube has cordoned it")

// ErrHeld is wrapped when the repair lease is another node's.
var ErrHeld = errors.New("held by another node")

// ErrNoAnswer is wrapped by a write that got no answer below 500, or a 401.
var ErrNoAnswer = errors.New("no answer from the API server")
