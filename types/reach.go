package types

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// ReachOutcome is what became of a connection that was tried.
type ReachOutcome string

// The outcomes.
const (
	ReachOpen        ReachOutcome = "open"
	ReachRefused     ReachOutcome = "refused"     // the machine answers, nobody listens there, or a firewall says so
	ReachSilent      ReachOutcome = "silent"      // no answer in time: a firewall that drops, or nobody there
	ReachUnreachable ReachOutcome = "unreachable" // there is no way, or it could not be tried
)

// Reach is what the status server of a node answers to another that asks
// whether it can be reached from there (docs/wire.md, "Reach").
type Reach struct {
	Node    string        `json:"node"`    // of who answers; "" while not known
	Zedkube string        `json:"zedkube"` // its version
	At      time.Time     `json:"at"`      // its clock, as it answers
	From    string        `json:"from"`    // the address the question came from, which alone was tried
	Ports   []ReachPort   `json:"ports"`
	Cluster *ReachCluster `json:"cluster,omitempty"` // nil while its tables of the cluster are incomplete
}

// ReachPort is one port of who asked.
type ReachPort struct {
	Port    int          `json:"port"`
	Outcome ReachOutcome `json:"outcome"`
}

// ReachCluster is what a joining node has to know of the cluster, and cannot
// ask the API server for.
type ReachCluster struct {
	Nodes      int       `json:"nodes"`
	Members    int       `json:"etcdMembers"`  // that vote
	Ready      int       `json:"etcdReady"`    // of these
	Learners   int       `json:"etcdLearners"` // they do not vote yet
	Addresses  []string  `json:"etcdAddresses"`
	TieBreaker string    `json:"tieBreaker,omitempty"` // name of its Node
	Kubelets   []string  `json:"kubelets"`             // versions of the Nodes, each once, in order
	Name       ReachName `json:"name,omitempty"`       // of the name and device asked about; "" where none was
}

// ReachName is whether a name is free for a device.
type ReachName string

// The answers.
const (
	ReachNameFree  ReachName = "free"
	ReachNameTaken ReachName = "taken" // by a Node of another device
	ReachNameOwn   ReachName = "own"   // by a Node of this very device
	ReachNameOther ReachName = "other" // it is free, but another Node is of this device
)

// ReachClusterOf counts the Nodes of a cluster.
func ReachClusterOf(nodes []Node) ReachCluster {
	q := QuorumOf(nodes)
	c := ReachCluster{
		Nodes: len(nodes), Members: q.Voters, Ready: q.Ready, Learners: q.Learners,
		Addresses: []string{}, Kubelets: []string{},
	}
	for _, n := range nodes {
		if n.KubeletVersion != "" {
			c.Kubelets = append(c.Kubelets, n.KubeletVersion)
		}
		if n.TieBreaker {
			c.TieBreaker = n.Name
		}
		if !n.Etcd {
			continue
		}
		if n.InternalIP != "" {
			c.Addresses = append(c.Addresses, n.InternalIP)
		}
	}
	slices.Sort(c.Addresses)
	slices.Sort(c.Kubelets)
	c.Kubelets = slices.Compact(c.Kubelets)
	return c
}

// ReachNameOf says whether a name is free for a device; without a name it says
// nothing.
func ReachNameOf(nodes []Node, name string, device uuid.UUID) ReachName {
	if name == "" {
		return ""
	}
	ours := func(n Node) bool { return device != uuid.Nil && n.UUID == device.String() }
	answer := ReachNameFree
	for _, n := range nodes {
		switch {
		case n.Name == name && ours(n):
			return ReachNameOwn
		case n.Name == name:
			return ReachNameTaken
		case ours(n):
			answer = ReachNameOther
		}
	}
	return answer
}
