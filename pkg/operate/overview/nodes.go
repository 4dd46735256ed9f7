package overview

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Nodes are the cluster's nodes, where this node reports; else who asks may ask
// the agent or the API server for them.
type Nodes struct {
	Source
	From string `json:",omitzero"` // who has them so; "" where nobody says
	List []ClusterNode
	Edge []EdgeNode `json:",omitempty"` // those of KubeEdge, which are no members
}

// EdgeNode is a node of KubeEdge. It often is out of reach, which is nothing wrong.
type EdgeNode struct {
	Name     string
	Ready    bool
	Since    time.Time `json:",omitzero"` // of Ready
	Cordoned bool      `json:",omitzero"`
	Address  string    `json:",omitzero"`
	Kubelet  string    `json:",omitzero"` // version
	Created  time.Time `json:",omitzero"`

	MeasuredAt time.Time          `json:",omitzero"`  // by the agent that was asked; zero for never
	Measured   *types.NodeMetrics `json:",omitempty"` // then
	Memory     uint64             `json:",omitzero"`  // bytes there are
	Pods       int                `json:",omitzero"`  // that ran there then
	Stale      string             `json:",omitzero"`  // why there is nothing newer
}

// EdgeNodesOf are the nodes of KubeEdge, by name, with what is known of their measurements.
func EdgeNodesOf(nodes map[string]types.Node, measured map[string]types.KubeNodeMetrics) (list []EdgeNode) {
	for _, n := range types.NodesByName(nodes) {
		m := measured[n.Name]
		e := EdgeNode{
			Name: n.Name, Ready: n.Ready == types.ConditionTrue, Since: UTC(n.ReadySince), Cordoned: n.Unschedulable,
			Address: n.InternalIP, Kubelet: n.KubeletVersion, Created: UTC(n.Created), Memory: uint64(max(n.Memory, 0)), MeasuredAt: UTC(m.At), Stale: m.Stale,
		}
		if !m.At.IsZero() {
			e.Measured, e.Pods = &m.Metrics, len(m.Pods)
		}
		list = append(list, e)
	}
	return list
}

// SteadyEdge is a list without what is measured, which changes by itself.
func SteadyEdge(list []EdgeNode) []EdgeNode {
	list = slices.Clone(list)
	for i := range list {
		list[i].MeasuredAt, list[i].Measured, list[i].Pods, list[i].Stale = time.Time{}, nil, 0, ""
	}
	return list
}

// ClusterNode is one node of the cluster. What its source does not tell is
// empty.
type ClusterNode struct {
	Name        string
	UUID        string    `json:",omitzero"`
	Own         bool      `json:",omitzero"` // it is this one
	Status      string    // Ready, NotReady, NotReachable, Unknown
	Since       time.Time `json:",omitzero"`  // of Status
	Roles       []string  `json:",omitempty"` // control-plane, etcd, tie-breaker, worker
	Learner     bool      `json:",omitzero"`  // its member of etcd does not vote yet
	Cordoned    bool      `json:",omitzero"`
	CordonedBy  string    `json:",omitzero"` // zedkube, kept, somebody else; "" where the source does not tell
	CordonWhy   string    `json:",omitzero"`
	CordonSince time.Time `json:",omitzero"`
	Agent       string    `json:",omitzero"` // version of its zedkube
	AgentAt     time.Time `json:",omitzero"` // when it last wrote that
	AgentStale  bool      `json:",omitzero"` // that was so long ago that it may not run any more
	AgentUnsure bool      `json:",omitzero"` // whether it runs is not known yet: that has not been seen to change
	StatusTLS   bool      `json:",omitzero"` // its agent says that its status server speaks TLS
	BootID      string    `json:",omitzero"`
	Address     string    `json:",omitzero"`
	External    string    `json:",omitzero"`
	Kubelet     string    `json:",omitzero"` // version
	Drain       string    `json:",omitzero"` // waiting (for its turn), draining, drained, forced (complete with pods left)
	Lost        string    `json:",omitzero"` // what the witnesses say of it, a sentence
	Admission   string    `json:",omitzero"`
	Created     time.Time `json:",omitzero"`
	Pressures   []string  `json:",omitempty"` // conditions that are set, but Ready
}

// reported are the nodes as the report on the cluster has them. Who cordoned
// one, and which agent it runs, it does not tell, but for the own one.
func reported(list []types.KubeNodeInfo, o Overview) []ClusterNode {
	nodes := make([]ClusterNode, 0, len(list))
	for _, n := range list {
		c := ClusterNode{
			Name: n.Name, UUID: n.NodeID, Own: n.Name != "" && n.Name == o.Node.Name, Status: n.Status.String(), Since: UTC(n.LastTransitionTime),
			Cordoned: !n.Schedulable, Address: n.InternalIP, External: n.ExternalIP, Kubelet: n.KubeletVersion,
			Created: UTC(n.CreationTime),
		}
		if n.Admission != types.KubeNodeAdmissionUnspecified {
			c.Admission = n.Admission.String()
		}
		c.Roles = roles(n.IsMaster, n.UsesEtcd, n.Name != "" && n.Name == o.Cluster.Members.TieBreaker)
		for _, p := range n.Conditions {
			if p.Set {
				c.Pressures = append(c.Pressures, p.Type.String())
			}
		}
		if p := o.Drain.Progress; c.Own && c.Cordoned && p != nil {
			c.CordonedBy = p.Cordon
		}
		nodes = append(nodes, c)
	}
	slices.SortStableFunc(nodes, byName)
	return nodes
}

func byName(a, b ClusterNode) int { return strings.Compare(a.Name, b.Name) }

func roles(master, etcd, tieBreaker bool) (list []string) {
	if master {
		list = append(list, "control-plane")
	}
	if etcd {
		list = append(list, "etcd")
	}
	if tieBreaker {
		list = append(list, "tie-breaker")
	}
	if len(list) == 0 {
		list = append(list, "worker")
	}
	return list
}

// NodesOf are the nodes as the API server has them, by name: for who has asked
// it. own is the name of the node that asks, "" for none.
func NodesOf(nodes []types.Node, own string) []ClusterNode {
	list := make([]ClusterNode, 0, len(nodes))
	for _, n := range nodes {
		list = append(list, nodeOf(n, nodes, own))
	}
	slices.SortStableFunc(list, byName)
	return list
}

func nodeOf(n types.Node, nodes []types.Node, own string) ClusterNode {
	c := ClusterNode{
		Name: n.Name, UUID: n.UUID, Own: own != "" && n.Name == own, Status: types.KubeNodeStatusOf(n.Ready).String(), Since: UTC(n.ReadySince),
		Roles: roles(n.HasAPIServer(), n.Etcd, n.TieBreaker), Learner: n.Etcd && !n.Votes(), Cordoned: n.Unschedulable,
		Address: n.InternalIP, External: n.ExternalIP, Kubelet: n.KubeletVersion, Created: UTC(n.Created), Lost: seenBy(n, nodes), BootID: n.BootID,
	}
	c.cordon(n)
	if n.Agent != nil {
		c.Agent, c.AgentAt, c.AgentStale = n.Agent.Version, UTC(n.StampedAt), n.StampStale
		c.AgentUnsure, c.StatusTLS = n.StampUnconfirmed && !n.StampStale, n.Agent.TLS
	}
	switch {
	case n.Drained == types.ConditionTrue:
		c.Drain = "drained"
	case n.DrainReason == types.DrainForced:
		c.Drain = "forced"
	case n.DrainInProgress == types.ConditionTrue && n.DrainReason == string(types.PhaseGates):
		c.Drain = "waiting"
	case n.DrainInProgress == types.ConditionTrue:
		c.Drain = "draining"
	}
	for _, p := range n.Conditions {
		if p.Status == types.ConditionTrue {
			c.Pressures = append(c.Pressures, p.Type)
		}
	}
	return c
}

func (c *ClusterNode) cordon(n types.Node) {
	if !n.Unschedulable {
		return
	}
	c.CordonedBy, c.CordonSince = "somebody else", UTC(n.TaintedAt)
	switch {
	case n.Cordoner() == types.CordonedDisabled:
		c.CordonedBy = types.CordonedDisabled
	case n.CordonKept:
		c.CordonedBy = "kept"
	case n.CordonedBy != nil:
		c.CordonedBy = cmp.Or(n.CordonedBy.By, "zedkube")
	}
	if n.CordonedBy != nil {
		c.CordonWhy = n.CordonedBy.Reason
		if !n.CordonedBy.Since.IsZero() {
			c.CordonSince = UTC(n.CordonedBy.Since)
		}
	}
}

// Cordoned is by whom or for what a node is cordoned, as CordonedBy and
// NodeDrainProgress have it, in words.
func Cordoned(by string) string {
	switch by {
	case "":
		return "cordoned"
	case "kept":
		return "cordoned, and kept so by an operator"
	case "operator":
		return "cordoned by somebody else"
	case "tie-breaker":
		return "cordoned as tie-breaker"
	case types.CordonedDisabled:
		return "cordoned, " + by
	}
	return "cordoned by " + by
}

// seenBy says what the other nodes see of the device of a node that is not
// Ready; "" where nobody says anything.
func seenBy(lost types.Node, nodes []types.Node) string {
	if lost.UID == "" || lost.Ready == types.ConditionTrue {
		return ""
	}
	var silent []string
	for _, w := range nodes {
		if w.Witness == nil || w.Ready != types.ConditionTrue {
			continue
		}
		for _, s := range w.Witness.Sightings {
			switch {
			case s.UID != lost.UID:
			case s.Alive != "":
				return "its device answers " + w.Name + " at " + s.Alive
			case s.Silent >= types.WitnessSilent:
				silent = append(silent, w.Name)
			}
		}
	}
	if len(silent) == 0 {
		return ""
	}
	slices.Sort(silent)
	return "its device answers none of " + strings.Join(silent, ", ")
}

// Age is how long ago a time was, at least nothing; false for a time that is
// not known.
func (o Overview) Age(at time.Time) (time.Duration, bool) {
	return max(o.ReadAt.Sub(at), 0), !at.IsZero()
}

// NodesPath is where the agent answers with its table of nodes, as Nodes.
const NodesPath = "/api/nodes"

// FromReport is the source of nodes that this node reports to the controller.
const FromReport = "the report of this node"

const fromAgent = "the agent of this node" // the source of nodes that the agent knows itself

// Live is what the running agent knows beside the files below root: its own table of
// nodes, which every member of a cluster has, and not only the one that reports.
type Live struct {
	Root string
	Node pubsub.Reader[types.Node]
	Edge pubsub.Reader[types.Node] // those of KubeEdge
	Info pubsub.Reader[types.EdgeNodeInfo]
	API  pubsub.Reader[types.APIStatus]

	EdgeMetrics pubsub.Reader[types.KubeNodeMetrics] // of those, by name
}

// Overview is that of the files with the agent's own table of nodes.
func (l Live) Overview(now time.Time) Overview {
	o := Read(l.Root, now)
	if nodes := l.Nodes(now); len(nodes.List) > 0 {
		o.Nodes = nodes
	}
	return o
}

// Nodes is what the agent knows of the nodes. While the API server is silent that is of
// the moment before.
func (l Live) Nodes(now time.Time) Nodes {
	all := l.Node.All()
	own := ""
	if who, ok := l.Info.Get(types.Global); ok {
		if n, found := types.OwnNode(all, who); found {
			own = n.Name
		}
	}
	v := Nodes{Source: Source{At: now.UTC()}, From: fromAgent, List: NodesOf(slices.Collect(maps.Values(all)), own), Edge: EdgeNodesOf(l.Edge.All(), l.EdgeMetrics.All())}
	if status, ok := l.API.Get(types.Global); ok && !status.Answers() {
		v.At = status.SilentSince.UTC()
	}
	return v
}

// ServeHTTP answers with the agent's table of nodes.
func (l Live) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(l.Nodes(time.Now())) // who asked may be gone
}

// Judge marks in rows, which someone else has listed, which stamps are stale and
// which are confirmed, as the source of n knows that. Who lists but once cannot. Of
// a stamp that the source has not seen nothing is known.
func (n Nodes) Judge(rows []types.Node) {
	seen := map[string]ClusterNode{}
	for _, c := range n.List {
		seen[c.Name] = c
	}
	for i := range rows {
		r := &rows[i]
		c, known := seen[r.Name]
		known = known && c.Agent != "" && c.AgentAt.Equal(r.StampedAt)
		r.StampStale = r.Agent != nil && known && c.AgentStale
		r.StampUnconfirmed = r.Agent != nil && (!known || c.AgentUnsure)
	}
}
