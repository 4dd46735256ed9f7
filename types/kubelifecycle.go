package types

import (
	"fmt"
	"strings"
	"time"
)

// K3sChange is what kind of change leads from one version of k3s to another.
type K3sChange string

// The changes that the rules allow.
const (
	K3sSame  K3sChange = "same"
	K3sPatch K3sChange = "patch" // a restart
	K3sMinor K3sChange = "minor" // the node is drained first
	// K3sRestart changes no version: From is To. The certificates of k3s ask for it.
	K3sRestart K3sChange = "restart"
	// K3sOverride changes no version either: the override file is another one, for which the kube
	// container restarts k3s.
	K3sOverride K3sChange = "override"
)

// K3sRefusal is the rule by which a change is refused; "" for none.
type K3sRefusal string

// The rules.
const (
	K3sNoVersion   K3sRefusal = "NoVersion"
	K3sDowngrade   K3sRefusal = "Downgrade"
	K3sOtherMajor  K3sRefusal = "OtherMajor"
	K3sSkipsMinors K3sRefusal = "SkipsMinors"
	K3sMixed       K3sRefusal = "Mixed"
	K3sEtcdStep    K3sRefusal = "EtcdStep"
)

// JudgeK3sStep is what the versions alone say of a change (docs/wire.md,
// "KubeLifecycle"). From "", which is not known, no change can be judged.
func JudgeK3sStep(from, to string) (K3sChange, K3sRefusal, error) {
	next, err := ParseK3sVersion(to)
	if err != nil {
		return "", K3sNoVersion, err
	}
	old, err := ParseK3sVersion(from)
	switch {
	case from == "":
		return "", K3sNoVersion, fmt.Errorf("which version runs here now is unknown")
	case err != nil:
		return "", K3sNoVersion, fmt.Errorf("version %q, which runs here now, cannot be compared: %w", from, err)
	case next.Major != old.Major:
		return "", K3sOtherMajor, fmt.Errorf("%s is another major version than %s", to, from)
	case next.compare(old) < 0:
		return "", K3sDowngrade, fmt.Errorf("%s is older than %s: k3s cannot be downgraded", to, from)
	case next.Minor > old.Minor+1:
		return "", K3sSkipsMinors, fmt.Errorf("%s to %s skips minor versions: update to %s first", from, to, old.ladder(next))
	case next.Minor > old.Minor:
		return K3sMinor, "", nil
	case from == to:
		return K3sSame, "", nil
	}
	return K3sPatch, "", nil
}

// ladder names the minor versions between v and next, one after the other.
func (v K3sVersion) ladder(next K3sVersion) string {
	var steps []string
	for minor := v.Minor + 1; minor < next.Minor && len(steps) < 6; minor++ {
		steps = append(steps, fmt.Sprintf("v%d.%d", v.Major, minor))
	}
	return strings.Join(steps, ", then ")
}

// KubeLifecyclePhase is how far a change of k3s has come on this node.
type KubeLifecyclePhase string

// The phases.
const (
	LifecycleIdle    KubeLifecyclePhase = "Idle"
	LifecycleRefused KubeLifecyclePhase = "Refused"
	LifecycleWaits   KubeLifecyclePhase = "Waits"
	LifecycleChanges KubeLifecyclePhase = "Changes"
	LifecycleReturns KubeLifecyclePhase = "Returns" // to the version before
	LifecycleFailed  KubeLifecyclePhase = "Failed"  // and has returned to it
	LifecycleStuck   KubeLifecyclePhase = "Stuck"
)

// KubeLifecycle says to which version of k3s this node changes and when, under key
// "global" of a topic of zedkube's own (docs/wire.md, "KubeLifecycle").
type KubeLifecycle struct {
	Phase         KubeLifecyclePhase
	Reason        string     // a sentence: why it is in that phase
	Since         time.Time  // when Phase and Reason began to be so
	Wanted        string     // setting k3s.version
	From, To      string     // "" while there is no change to judge
	Kind          K3sChange  `json:",omitempty"`
	Refused       K3sRefusal `json:",omitempty"`
	Released      string     // what KubeConfig is to say; "" for the version that runs
	Commit        string     // a sentence where this node's change cannot be taken back; "" where it can
	Nodes         []KubeLifecycleNode
	Preconditions []KubeLifecyclePrecondition
	// NotBack are the pods that ran here before a change that is Stuck, and do not run again, where it lacks nothing else.
	NotBack  []string         `json:",omitempty"`
	Failed   K3sFailure       `json:",omitzero"`
	Rollback K3sRollback      `json:",omitzero"` // of a change that is under way
	Restart  K3sRestartStatus `json:",omitzero"`
	Override K3sOverrideTurn  `json:",omitzero"`
	Drain    NodeDrainRequest `json:",omitzero"` // of this node, for a minor version; zero while none is wanted
}

// LacksPods reports whether k3s itself has come up with a change that is Stuck. What it lacks another restart may
// bring back, which may share the drain lock of the change.
func (l KubeLifecycle) LacksPods() bool { return l.Phase == LifecycleStuck && len(l.NotBack) > 0 }

// RequestedByK3s is who wants the drain of KubeLifecycle, among the Requesters of NodeDrainProgress.
const RequestedByK3s = "K3S"

// K3sRollback is what an operator's request to return from To would do.
type K3sRollback struct {
	To    string // the version of before; "" where there is nothing to take back
	Lacks string // a sentence: why it is not possible; "" where it is
	Loses string // a sentence: what would be lost; "" for nothing
}

// K3sRestartWish says why k3s is to be restarted for its certificates; "" for no reason.
type K3sRestartWish string

// The reasons, by the certificate of k3s that expires first.
const (
	RestartDue     K3sRestartWish = "Due"     // it expires within 60 days
	RestartAsked   K3sRestartWish = "Asked"   // an operator asks for it
	RestartUrgent  K3sRestartWish = "Urgent"  // it expires within 14 days, or has expired
	RestartExpired K3sRestartWish = "Expired" // all have, and the API server cannot be asked
)

// K3sRestartStatus is the restart of k3s for its certificates.
type K3sRestartStatus struct {
	Wish          K3sRestartWish
	Reason        string // a sentence: what it waits for; "" where there is no Wish
	Preconditions []KubeLifecyclePrecondition
	Announced     string        // a sentence: what is lost meanwhile; "" for nothing
	AnnouncedAt   time.Duration // since the boot: when that began to be said
	Last          time.Time     // when k3s was last restarted for them
	Failed        string        // a sentence: what that did not do; "" for nothing
}

// K3sOverrideTurn is the change of the override file of k3s. A file is named by the SHA-256 of its
// content, or K3sNoOverride.
type K3sOverrideTurn struct {
	Wanted        string // by the setting k3s.config.override; "" where the file is so, or the setting is refused
	Reason        string // a sentence: what it waits for; "" where nothing is Wanted
	Preconditions []KubeLifecyclePrecondition
	Released      string     // what the file is to be while a change is under way; "" for as it is
	Former        string     // what it was before that; it is kept beside
	Failed        K3sFailure `json:",omitzero"` // with which k3s did not come up
}

// KubeLifecycleNode is a node of the cluster, in the order in which they change.
type KubeLifecycleNode struct {
	Name    string
	Version string
	State   string // done, next, later
}

// KubeLifecyclePrecondition is one thing that a change waits for.
type KubeLifecyclePrecondition struct {
	Name    string
	Holds   bool
	Release bool   // zedkube k3s release does without it
	Reason  string // a sentence, of one that does not hold
}

// K3sFailure is the version to which a node could not change.
type K3sFailure struct {
	To  string
	Why string // a sentence
	At  time.Time
}

// K3sStep is what KubeLifecycleJournal has begun.
type K3sStep string

// The steps, each written before it takes effect.
const (
	K3sStepNone   K3sStep = ""
	K3sStepSwap   K3sStep = "swap"   // the staged binary is put in its place; From is released
	K3sStepChange K3sStep = "change" // To is released
	K3sStepReturn K3sStep = "return" // From is
)

// KubeLifecycleJournal is what is to survive a restart while k3s changes, under key
// "global" of a persistent topic of zedkube's own.
type KubeLifecycleJournal struct {
	Step      K3sStep
	From, To  string
	Kind      K3sChange
	BootID    string
	Cluster   string         // ID of the one that the device belonged to; "" for none
	Began     time.Duration  // of the step, since the boot BootID
	Commit    string         // as in KubeLifecycle, which has none on the way back, while this is kept
	Sum       string         // SHA-256 of the binary that was staged; "" where none was
	Restarted bool           // k3s was restarted for it
	Ran       bool           // the kubelet has reported To
	Booted    bool           // the device has booted since the change began: others may have taken the drain lock
	Pods      []string       // of applications that ran here before
	Volumes   map[string]int // healthy replicas, before, of each volume with a replica here
	Failed    K3sFailure
	Rollback  time.Time // RequestedAt of the request that was there when the step began, which does not count
	Release   time.Time // RequestedAt of the release that was there when a change failed, which no longer counts

	Wish     K3sRestartWish       // of a restart
	Leaves   map[string]time.Time // by Where, the expiry of the certificates that it is to renew
	Force    bool                 // their files are moved aside
	Restored bool                 // and back
	Restarts K3sRestarts

	Former   string        // of a change of the override file to Sum: what it was before
	Process  time.Duration // start of the k3s that runs with the file of before
	Override K3sFailure    // the override with which k3s did not come up
}

// K3sRestarts is what came of the last restart for certificates.
type K3sRestarts struct {
	At       time.Time
	BootID   string    // where it was made without the API server
	Failed   string    // as in K3sRestartStatus
	Tries    int       // in a row after which k3s went on as before
	Failures int       // restarts in a row after which a certificate was the one of before
	Answers  time.Time // RequestedAt of the last CertsResetRequest that was dealt with
}

// K3sStamp is what zedkube says on its own Node of k3s (docs/wire.md, "Nodes").
type K3sStamp struct {
	Wanted string  `json:"wanted"`           // setting k3s.version
	Step   K3sStep `json:"step,omitempty"`   // under way
	To     string  `json:"to,omitempty"`     // of that
	Failed string  `json:"failed,omitempty"` // a version to which this node could not change
	Joined bool    `json:"joined,omitempty"` // the others join the cluster here
	Leader bool    `json:"leader,omitempty"` // of etcd
	Etcd   string  `json:"etcd,omitempty"`   // version of its etcd; "" for unknown or none

	Restart   K3sRestartWish `json:"restart,omitempty"`  // k3s is to be restarted when it is this node's turn
	Restarted time.Time      `json:"restarted,omitzero"` // when it last was for its certificates

	Override K3sOverrideStamp `json:"override,omitzero"`

	// Renewed is when the agent wrote this, while others wait for this node, by its own clock: so
	// that each write is a change.
	Renewed time.Time `json:"renewed,omitzero"`
}

// K3sOverrideStamp is what the stamp says of the override file, named as in K3sOverrideTurn.
type K3sOverrideStamp struct {
	Wanted  string `json:"wanted,omitempty"` // by the setting; "" where that is refused
	InForce string `json:"inForce,omitempty"`
	Failed  string `json:"failed,omitempty"` // k3s did not come up with it on this node
}

// K3sSilentAfter is how long no new stamp came from a node for which others wait when they say so.
const K3sSilentAfter = 40 * time.Second

// K3sSilence is what they say of it then, as a part of a sentence.
func K3sSilence() string {
	return fmt.Sprintf("its agent has written nothing for %s or longer: it hangs, or does not reach the API server", K3sSilentAfter)
}

// HeardK3sStamp is the last stamp of a node, and when it was first heard of, by the time since the boot.
type HeardK3sStamp struct {
	Stamp K3sStamp
	At    time.Duration
}

// HeardK3sStamps are those that a component has heard of, by node. The zero value has heard of none.
type HeardK3sStamps map[string]HeardK3sStamp

// Hear returns h with what the nodes say now. While the API server does not answer nothing can be
// heard of them.
func (h HeardK3sStamps) Hear(nodes map[string]Node, answers bool, uptime time.Duration) HeardK3sStamps {
	heard := HeardK3sStamps{}
	for name, n := range nodes {
		if n.K3s == nil || n.K3s.Renewed.IsZero() { // nobody waits for it, or it is of before this field
			continue
		}
		last := h[name]
		if !answers || last.Stamp != *n.K3s {
			last = HeardK3sStamp{Stamp: *n.K3s, At: uptime}
		}
		heard[name] = last
	}
	return heard
}

// Silent reports whether others wait for a node that has not renewed its stamp for a while.
func (h HeardK3sStamps) Silent(node string, uptime time.Duration) bool {
	last, heard := h[node]
	return heard && uptime >= last.At+K3sSilentAfter
}

// ChangesK3s reports whether the node changes its k3s, as an agent says that is alive.
func (n Node) ChangesK3s() bool {
	return n.K3s != nil && n.K3s.Step != K3sStepNone && !n.Foreign()
}
