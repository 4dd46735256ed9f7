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

	"github.com/zedkube/zedkube/pkg/base/phrase"
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

	ByTLS, ByHTTP bool // how its status server answered; neither where it did not. Authenticated is the first alone

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
	Reason string // a word: docs/commands.md, "zedkube join wait"
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

// Join is the plan of a join.
func Join(f Facts) Plan {
	p := Plan{Role: f.Role, Made: f.Now, Peers: []string{}}
	for _, peer := range f.Peers {
		p.Peers = append(p.Peers, peer.Address.String())
	}
	if f.Own.Cluster != uuid.Nil {
		p.Cluster = f.Own.Cluster.String()
	}
	var all findings
	if f.Role == Candidate {
		p.Node = f.Own.Node
		if f.Own.Address.IsValid() {
			p.Address = f.Own.Address.String()
		}
		all = f.candidate()
	} else {
		if len(f.Peers) > 0 {
			p.Node, p.Address = f.Peers[0].Node, f.Peers[0].Address.String()
		}
		all = f.member()
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return b.Verdict.rank() - a.Verdict.rank() })
	p.Findings = all
	p.Verdict, p.Summary = f.conclude(all)
	return p
}

// candidate is what stands between this device and its cluster.
func (f Facts) candidate() (all findings) {
	f.role(&all)
	f.date(&all)
	f.address(&all)
	f.token(&all)
	if len(f.Peers) == 0 {
		all.add("cluster", Unknown, "name it: --server ADDRESS", "It is not known which member to join through, so no node could be queried.")
	}
	for i, peer := range f.Peers {
		if i == 0 {
			f.cluster(&all, peer)
		}
		f.protocol(&all, peer)
		f.portsThere(&all, peer)
		f.portsBack(&all, peer)
		clock(&all, peer)
	}
	view, whose := f.view()
	f.name(&all, view)
	f.versions(&all, view, whose)
	f.room(&all, view)
	return all
}

// member is whether the cluster takes one more, as this member sees it.
func (f Facts) member() (all findings) {
	f.masters(&all)
	for _, peer := range f.Peers {
		f.cluster(&all, peer)
		f.protocol(&all, peer)
		f.portsThere(&all, peer)
		f.portsBack(&all, peer)
		clock(&all, peer)
		f.nameOf(&all, peer)
	}
	view, whose := f.view()
	if len(f.Peers) > 0 && f.Own.Kubernetes != "" {
		f.versions(&all, view, whose)
	}
	f.room(&all, view)
	return all
}

// view is what is known of the cluster, and from whom; nil where nothing is.
func (f Facts) view() (*types.ReachCluster, string) {
	if f.Nodes != nil {
		c := types.ReachClusterOf(f.Nodes)
		if f.Role == Candidate {
			c.Name = types.ReachNameOf(f.Nodes, f.Own.Node, f.Own.Device)
		}
		return &c, "the API server"
	}
	for _, p := range f.Peers {
		if f.Role == Candidate && p.Reach != nil && p.Reach.Cluster != nil {
			return p.Reach.Cluster, p.Address.String()
		}
	}
	return nil, ""
}

// role is whether this device is to join at all.
func (f Facts) role(all *findings) {
	o := f.Own
	switch {
	case o.Bootstrap:
		all.add("role", Blocks, "ask on the device that is to join, or name a member: --server ADDRESS", "This is the bootstrap node; it does not join another node.")
	case o.Cluster == uuid.Nil:
		all.add("role", Unknown, "name it, --cluster UUID; is the device in a cluster at the controller?", "It is not known which cluster this device belongs to: it has no configuration of one.")
	case !o.Worker && len(o.Masters) > 0 && o.Device != uuid.Nil && !slices.Contains(o.Masters, o.Device):
		all.add("role", Blocks, "name it as a master at the controller, or configure it as a worker", "The controller does not name this device among the masters: the members would remove it again.")
	}
	switch {
	case o.Node == "":
		all.add("name", Unknown, "name it: --node NAME", "It is not known what its Node will be called: zedagent has not published the identity of this device.")
	case !types.IsObjectName(o.Node):
		all.add("name", Blocks, "rename the device at the controller", "%q is not a valid Node name: only lower-case letters, digits, - and . are allowed", o.Node)
	}
}

func (f Facts) token(all *findings) {
	if f.Own.NoToken != "" {
		all.add("token", Blocks, "see docs/operations.md, Joining a cluster", "There is no token to join with: %s", f.Own.NoToken)
	}
}

// cluster is what the other side says to the question of a joining node.
func (f Facts) cluster(all *findings, p Peer) {
	if f.Role == Member {
		f.theirCluster(all, p)
		return
	}
	switch {
	case p.Status.May:
		all.add("cluster", OK, "", "%s.", upper(p.Status.Why))
	case p.Status.Reason == "":
		all.add("cluster", Unknown, "name it: --cluster UUID", "It is not known which cluster to look for at %s.", p.Address)
	case p.Status.Reason == "OtherCluster":
		all.add("cluster", Blocks, "correct the cluster or the join server of one of the two at the controller", "%s.", upper(p.Status.Why))
	case p.Status.Reason == "StatusOtherToken":
		all.add("cluster", Blocks, "correct the cluster of one of the two at the controller, or wait until both have received the new token", "%s.", upper(p.Status.Why))
	case p.Status.Reason == "StatusNoToken":
		all.add("cluster", Unknown, "name a file with the token: --token-file", "Whether it may join is not known: %s.", p.Status.Why)
	case p.Status.Reason == "NotYet":
		all.add("cluster", Warn, "wait: zedkube join wait", "It must wait: %s.", p.Status.Why)
	default:
		all.add("cluster", Blocks, "see docs/commands.md, zedkube join wait, under "+p.Status.Reason, "It must wait: %s.", p.Status.Why)
	}
}

// theirCluster is whether the candidate is meant for this cluster.
func (f Facts) theirCluster(all *findings, p Peer) {
	switch {
	case p.Status.Reason == "StatusOtherToken":
		all.add("cluster", Blocks, "correct its cluster at the controller, or wait until both have received the new token", "It is not of this cluster: %s.", p.Status.Why)
	case p.Status.Reason == "OtherCluster":
		all.add("cluster", Blocks, "correct its cluster at the controller", "%s is configured for another cluster, or is a member of one: %s.", p.Address, p.Status.Why)
	case p.Status.May, p.Status.Reason == "NotYet":
		all.add("cluster", OK, "", "%s runs a status server that does not report another cluster.", p.Address)
	case p.Status.Reason != "":
		all.add("cluster", Unknown, "ask there: zedkube join plan", "What %s is configured for cannot be told from here: %s.", p.Address, p.Status.Why)
	}
}

// conclude is the plan in a sentence.
func (f Facts) conclude(all []Finding) (Verdict, string) {
	worst, n := sum(all)
	who := "This node"
	if f.Role == Member {
		who = "One more node"
		if len(f.Peers) > 0 {
			who = f.Peers[0].Address.String()
		}
	}
	switch worst {
	case Blocks:
		return worst, who + " cannot join at present: " + phrase.Counted(n[Blocks], "thing") + " in the way."
	case Warn:
		return worst, who + " could join, but look at " + phrase.Counted(n[Warn], "thing") + " first."
	case Unknown:
		return worst, "Nothing was found in the way, but " + phrase.Counted(n[Unknown], "thing") + " could not be determined."
	}
	return worst, who + " can join: nothing is in the way."
}

func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
