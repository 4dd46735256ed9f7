package types

import (
	"time"

	"github.com/google/uuid"
)

// ClusterMembers is what this node makes of the list of the cluster's masters
// and of its tie-breaker, under key "global" (docs/wire.md, "ClusterMembers").
// It is for people: no agent reads it.
type ClusterMembers struct {
	Masters    []uuid.UUID   // as the controller names them; nil while it names none
	Stale      []StaleMember // control-plane Nodes that are not among them, by name
	TieBreaker string        // node name; "" where there is none
	Why        string        // why a stale member or the tie-breaker is not put right yet, a sentence; "" where nothing is to be done
	Repairing  bool          // this node is at it
}

// StaleMember is a control-plane Node that the controller does not name as a
// master: no longer, or not yet.
type StaleMember struct {
	Node  string
	UUID  string    // label node-uuid
	Since time.Time // when this node first saw it stale, wall clock
	Why   string    // why it is not removed yet, a sentence
	Joins bool      `json:",omitempty"` // it was never named, as far as this node knows: it may be about to join
}
