package types

import (
	"slices"
	"time"
)

// WorkloadsRequest is an operator's wish that the workloads of the cluster be disabled, or
// enabled again, under key "global" (docs/wire.md, "WorkloadsRequest").
type WorkloadsRequest struct {
	RequestedAt time.Time // tells it from any other request
	Disable     bool
	Reason      string        // for people
	Uptime      time.Duration `json:",omitzero"` // since the boot, at RequestedAt; 0 from an earlier release
}

// DisabledWorkloads says that the workloads of the cluster are to be disabled. It is one
// object of the cluster; where it is not, they are enabled.
type DisabledWorkloads struct {
	UID    string    `json:"-"`
	By     string    `json:"by"`     // the node where it was asked for
	Reason string    `json:"reason"` // for people
	Since  time.Time `json:"since"`
}

// WorkloadsPhase is how far the workloads of the cluster are disabled or enabled.
type WorkloadsPhase string

// The phases.
const (
	WorkloadsEnabled   WorkloadsPhase = "Enabled"
	WorkloadsDisabling WorkloadsPhase = "Disabling"
	WorkloadsDisabled  WorkloadsPhase = "Disabled" // everything is stopped, and its volumes are detached
	WorkloadsEnabling  WorkloadsPhase = "Enabling"
)

// WorkloadsStatus is what this node sees of it, and saw last where the cluster does not
// answer, under key "global" of a persistent topic (docs/wire.md, "WorkloadsStatus").
type WorkloadsStatus struct {
	Phase      WorkloadsPhase // "" until the cluster was seen once
	UID        string         // of the DisabledWorkloads that Phase is about; "" while enabled
	By, Reason string         // of it
	Since      time.Time      // when this phase began here, wall clock
	Stale      bool           // the cluster is not fully known: this is from before
	Waits      []string       // what is still to be done, sentences, bounded
	Heard      time.Time      // RequestedAt of the last request that was carried out here
	Tried      time.Time      `json:",omitzero"`  // RequestedAt of the last request that may have been carried out
	TriedUID   string         `json:",omitempty"` // of the DisabledWorkloads that it deletes, "" where there was none or it is to disable
}

// Off reports that the workloads are disabled or about to be.
func (s WorkloadsStatus) Off() bool {
	return s.Phase == WorkloadsDisabling || s.Phase == WorkloadsDisabled
}

// FormerScale is what a set was before its workload was disabled, as an annotation of it
// (docs/wire.md, "App objects").
type FormerScale struct {
	UID       string `json:"uid"` // the set's: an annotation in a copy of it counts for nothing
	Replicas  int32  `json:"replicas"`
	Paused    bool   `json:"paused,omitempty"`
	Instances int32  `json:"instances,omitempty"` // that a paused set had: it makes none by itself
}

// SetScale is what a set is to be: a nil Former is removed.
type SetScale struct {
	Replicas int32
	Paused   bool // of a set of virtual machines
	Former   *FormerScale
}

// RunState is whether a VirtualMachine is to run, in one of two ways.
type RunState struct {
	Running  *bool  `json:"running,omitempty"`
	Strategy string `json:"runStrategy,omitempty"`
}

// Halted reports that nothing is to run.
func (s RunState) Halted() bool {
	return s.Strategy == StrategyHalted || s.Strategy == "" && (s.Running == nil || !*s.Running)
}

// KubeVirt's run strategies, as far as they matter here.
const (
	StrategyAlways         = "Always"
	StrategyHalted         = "Halted"
	StrategyManual         = "Manual"         // started and stopped by hand alone
	StrategyRerunOnFailure = "RerunOnFailure" // not after it has ended well
	StrategyOnce           = "Once"
)

// FormerRun is what a VirtualMachine was before it was disabled, as FormerScale of a set.
type FormerRun struct {
	UID string `json:"uid"`
	RunState
}

// VirtualMachine is the part of a KubeVirt VirtualMachine that components reason about.
// EVE makes none: they are deployed by kubectl or helm.
type VirtualMachine struct {
	Namespace string
	Name      string
	UID       string
	Version   string // resourceVersion
	Deleted   bool
	Run       RunState
	Created   bool // it has an instance
	Stopped   bool // KubeVirt says that nothing of it runs, nor is to start
	Claims    []string
	Former    *FormerRun // nil while it is not disabled
}

// Idle reports that nothing runs, and nothing will by itself: what was ended by hand, or is
// done, would start if its run strategy were written again.
func (m VirtualMachine) Idle() bool {
	return m.Run.Halted() || m.Stopped && slices.Contains([]string{StrategyManual, StrategyRerunOnFailure, StrategyOnce}, m.Run.Strategy)
}

// Key is the machine's key in a table: namespace/name.
func (m VirtualMachine) Key() string { return m.Namespace + "/" + m.Name }
