package types

import "time"

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
	Requesters []string  // DEVICEOP, UPDATE, OPERATOR, LEAVE
	Attempt    int       // 1 to Attempts; 0 before the eviction
	Attempts   int
	Started    time.Time // when the drain was asked for
	Deadline   time.Time // when it fails
	Ended      time.Time // when it completed or failed

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

	Journal NodeDrainJournal // the same as on disk, for when that is full
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
