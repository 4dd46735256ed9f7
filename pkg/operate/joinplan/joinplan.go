// Package joinplan says what would become of a node that joins a cluster, or
// leaves it: sentences, made of facts that someone else has gathered. It asks
// nobody and changes nothing.
package joinplan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// Verdict is what a finding means for the plan.
type Verdict string

// The verdicts, from the best to the worst.
const (
	OK      Verdict = "ok"
	Unknown Verdict = "unknown" // it could not be told, and the sentence says why
	Warn    Verdict = "warn"
	Blocks  Verdict = "blocks"
)

// rank orders verdicts, the worst last.
func (v Verdict) rank() int {
	return slices.Index([]Verdict{OK, Unknown, Warn, Blocks}, v)
}

// Finding is one thing that was looked at.
type Finding struct {
	Check   string // a word for it: address, cluster, ports, clock, ...
	Verdict Verdict
	What    string // a sentence
	Remedy  string // what to do; "" for nothing
}

// findings collects them.
type findings []Finding

func (f *findings) add(check string, v Verdict, remedy, format string, args ...any) {
	*f = append(*f, Finding{Check: check, Verdict: v, What: fmt.Sprintf(format, args...), Remedy: remedy})
}

// Plan is what would become of a join.
type Plan struct {
	Role     Role
	Made     time.Time
	Node     string // of the candidate; "" for unknown
	Address  string // of the candidate in the cluster's network; "" for unknown
	Cluster  string // UUID; "" for unknown
	Peers    []string
	Verdict  Verdict
	Summary  string    // a sentence
	Findings []Finding // the worst first
}

// sum is the worst of the findings, and how many there are of each kind.
func sum(all []Finding) (worst Verdict, counts map[Verdict]int) {
	worst, counts = OK, map[Verdict]int{}
	for _, f := range all {
		counts[f.Verdict]++
		if f.Verdict.rank() > worst.rank() {
			worst = f.Verdict
		}
	}
	return worst, counts
}

// counted is a number of things.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// and lists things in a sentence.
func and[T any](list []T) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = fmt.Sprint(v)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Role is on which side of the join the plan is made.
type Role string

// The roles.
const (
	Candidate Role = "candidate" // this device is to join
	Member    Role = "member"    // this device is in the cluster
)

// Facts is all that a plan of a join is made of.
type Facts struct {
	Role Role
	Now  time.Time
	Own  Own

	// The members that a candidate asked, the one to join through first; for a
	// member the candidate, if one was named.
	Peers []Peer

	// The cluster as its API server tells it, nil where it could not be asked
	// and NoNodes says why. A candidate hardly ever can.
	Nodes   []types.Node
	NoNodes string
}

// Own is this device.
type Own struct {
	Node      string // the name of its Node; "" for unknown
	Device    uuid.UUID
	Worker    bool
	Bootstrap bool
	Masters   []uuid.UUID // as the controller names them; none where it does not

	Cluster   uuid.UUID    // nil for unknown
	Title     string       // of the cluster, for people; "" for none
	Address   netip.Addr   // in the cluster's network; zero for unknown
	Network   netip.Prefix // that network; zero for unknown
	Label     string       // logical label of the port; "" for unknown
	Interface string       // its Linux name; "" for unknown
	Ready     bool         // EdgeNodeClusterStatus says that the address is up
	HasStatus bool         // there is an EdgeNodeClusterStatus
	NoToken   string       // why there is no token to join with; "" where there is, or where nobody can say

	Ports   []types.NetworkPortStatus // of nim; nil for unknown
	Kernel  []Interface               // nil for unknown
	Closed  map[int]string            // ports at which nothing of ours listened meanwhile, and why; "" where a service of this device does
	Silent  string                    // why no listener of ours was opened at all; "" where they were
	Version string                    // of zedkube

	Kubernetes     string // the version that is to run here; "" for unknown
	KubernetesFrom string // who says so
}

// Interface is an address that the kernel has.
type Interface struct {
	Name   string
	Prefix netip.Prefix
}

// Peer is a node on the other side, as it was found.
type Peer struct {
	Address netip.Addr
	Tries   []types.ReachPort // from here to there
	NoTLS   []int             // ports that are open and speak no TLS
	Status  Answer            // whether a node of our cluster may join through it

	Node       string // its name, as its status server says; "" for unknown
	Kubernetes string // its version, of the same; "" for unknown

	Reach   *types.Reach // what it said about the way back; nil where NoReach says why
	NoReach string
	Heard   []int // ports of ours at which it came by
	Clocks  []Clock
}

// Answer is what became of the question that a joining node asks.
type Answer struct {
	May    bool
	Reason string // a word: docs/operations.md, "zedkube wait-join"
	Why    string // a sentence
}

// Clock is one reading of another machine's clock.
type Clock struct {
	Source string        // who told it
	Ahead  time.Duration // of ours; negative where it is behind
	Within time.Duration // the reading is not better than this
}

// of is what became of the try of a port.
func of(ports []types.ReachPort, port int) (outcome types.ReachOutcome, tried bool) {
	for _, p := range ports {
		if p.Port == port {
			return p.Outcome, true
		}
	}
	return "", false
}
