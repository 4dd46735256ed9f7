package types

import (
	"time"

	"github.com/google/uuid"
)

// RepairPhase is how an application fares, in a word that people can read.
type RepairPhase string

// The phases.
const (
	RepairWell    RepairPhase = "Well"    // nothing is to be done
	RepairWaits   RepairPhase = "Waits"   // something is wrong that may recover by itself, or is not proved yet
	RepairActs    RepairPhase = "Acts"    // a node is at it
	RepairRefused RepairPhase = "Refused" // something is wrong and must not be repaired; Reason says why
	RepairGaveUp  RepairPhase = "GaveUp"  // repairs did not help; someone has to look
)

// AppRepairStatus is what this node makes of one application's health, keyed by
// the application's UUID (docs/wire.md, "AppRepairStatus"). It is for people:
// no agent reads it. Times are wall clock.
type AppRepairStatus struct {
	AppUUID  uuid.UUID
	Name     string // display name
	Phase    RepairPhase
	Act      RepairAct // what is done, or would be
	Reason   string    // a sentence
	Since    time.Time // when this reason began to hold
	Node     string    // where its live pod is, "" for nowhere
	Lost     string    // the node it is lost with, "" for none
	Stuck    int       // stuck virtual machines deleted since it last ran
	Evidence []string  // what was seen, sentences
	Steps    []RepairStep
	Heard    uuid.UUID // ID of the AppDetachRequest that this takes into account; zero for none
}

// RepairStep is one step of a repair by this node; the last few are kept.
type RepairStep struct {
	At     time.Time
	Act    RepairAct
	Step   string // a sentence
	Failed string // why it failed; "" for success
}

// AppDetachRequest asks for the failover of one application by hand, keyed by
// the application's UUID (docs/wire.md, "AppDetachRequest").
type AppDetachRequest struct {
	Node      string // the node that is gone
	AppDomain string // label App-Domain-Name, or an application's UUID
	Force     bool   // although storage is not proved redundant
	ID        uuid.UUID
	Asked     time.Time
}
