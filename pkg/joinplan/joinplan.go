// Package joinplan says what would become of a node that joins a cluster, or
// leaves it: sentences, made of facts that somebody else has gathered. It asks
// nobody and changes nothing.
package joinplan

import "time"

// Verdict is what a finding means for the plan.
type Verdict string

// The verdicts, from the best to the worst.
const (
	OK      Verdict = "ok"
	Unknown Verdict = "unknown" // it could not be told, and What says why
	Warn    Verdict = "warn"
	Blocks  Verdict = "blocks"
)

// Finding is one thing that was looked at.
type Finding struct {
	Check   string // a word for it: address, cluster, ports, clock, ...
	Verdict Verdict
	What    string // a sentence
	Remedy  string `json:",omitempty"`
}

// Role is on which side of the join the plan was made.
type Role string

// The roles.
const (
	Candidate Role = "candidate" // this device is to join
	Member    Role = "member"    // this device is in the cluster
)

// Join is the plan of a join.
type Join struct {
	Role      Role
	Made      time.Time
	Node      string // of the candidate; "" for unknown
	Address   string // of the candidate in the cluster's network; "" for unknown
	Server    string // the member that was asked, or is asked
	Cluster   string // UUID
	Verdict   Verdict
	Summary   string // a sentence
	Findings  []Finding
}
