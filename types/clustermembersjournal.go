package types

import (
	"time"

	"github.com/google/uuid"
)

// ClusterMembersJournal is what the removal of stale members remembers over a
// restart, under key "global" of a persistent topic of zedkube's own
// (docs/wire.md, "ClusterMembers").
type ClusterMembersJournal struct {
	Cluster uuid.UUID    // of which all this is
	Named   []uuid.UUID  // devices that were named as its masters, here or in another node's stamp; the last that was added comes last
	Stale   []StaleTrace // Nodes that were stale at the last look, by name
}

// StaleTrace is what is remembered of a stale Node.
type StaleTrace struct {
	Node  string
	UID   string
	Since time.Time // when this node first saw it stale, wall clock; to be shown only
	// Given and Written are those of the stamp that the Node had then. Another one
	// was written later.
	Given   time.Time
	Written time.Time
}
