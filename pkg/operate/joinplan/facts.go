package joinplan

import (
	"net/netip"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

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
