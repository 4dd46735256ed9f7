package joinplan

import (
	"slices"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

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
	f.address(&all)
	f.token(&all)
	if len(f.Peers) == 0 {
		all.add("cluster", Unknown, "name it: --server ADDRESS", "It is not known which member to join through, so no node could be queried.")
	}
	for i, peer := range f.Peers {
		if i == 0 {
			f.cluster(&all, peer)
		}
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

// token is what the join is made with.
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
	case p.Status.Reason == "NotYet":
		all.add("cluster", Warn, "wait: zedkube wait-join", "It must wait: %s.", p.Status.Why)
	default:
		all.add("cluster", Blocks, "see docs/operations.md, zedkube wait-join, under "+p.Status.Reason, "It must wait: %s.", p.Status.Why)
	}
}

// theirCluster is whether the candidate is meant for this cluster.
func (f Facts) theirCluster(all *findings, p Peer) {
	switch {
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
		return worst, who + " cannot join at present: " + counted(n[Blocks], "thing") + " in the way."
	case Warn:
		return worst, who + " could join, but look at " + counted(n[Warn], "thing") + " first."
	case Unknown:
		return worst, "Nothing was found in the way, but " + counted(n[Unknown], "thing") + " could not be determined."
	}
	return worst, who + " can join: nothing is in the way."
}

func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
