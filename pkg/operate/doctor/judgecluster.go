package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// The words that overview has for nodes.
const (
	ready        = "Ready"
	notReachable = "NotReachable"
	roleEtcd     = "etcd"
	roleControl  = "control-plane"
	tieBreaker   = "tie-breaker"
)

// missing says why nothing is known of the nodes; ok where something is.
func (f nodesFacts) missing() (Finding, bool) {
	if f.err != nil {
		return unknown("The nodes are not known: %v.", f.err), true
	}
	if len(f.List) == 0 {
		return unknown("The nodes are not known."), true
	}
	return Finding{}, false
}

func (f nodesFacts) own() (overview.ClusterNode, bool) {
	for _, n := range f.List {
		if n.Own {
			return n, true
		}
	}
	return overview.ClusterNode{}, false
}

type nodeFacts struct {
	nodesFacts
	own     overview.Node
	cluster overview.Cluster
}

func judgeNode(f nodeFacts) Finding {
	if missing, is := f.missing(); is {
		return missing
	}
	n, found := f.nodesFacts.own()
	server := f.cluster.Known() && f.cluster.Role != "worker"
	switch {
	case !found:
		return fail("k3s has not registered it, or under another name; zedkube join plan", "The cluster has no Node of this device, which would be %q.", f.own.Name)
	case n.Status != ready:
		return fail("is the kubelet up, and is there room on its disk? kubectl describe node "+n.Name, "Node %s is %s%s.", n.Name, n.Status, since(n.Since))
	case n.UUID == "":
		return warn("the kube container sets it: is it up?", "Node %s is Ready and has no label node-uuid.", n.Name)
	case f.own.UUID != "" && n.UUID != f.own.UUID:
		return fail("two devices have the same name: rename one", "Node %s bears the UUID of another device, %s.", n.Name, n.UUID)
	case server && !slices.Contains(n.Roles, roleControl):
		return warn("k3s on this device joined as an agent, or is not whole yet", "Node %s is Ready and has no control-plane label, though this device is a %s.", n.Name, f.cluster.Role)
	case server && !slices.Contains(n.Roles, roleEtcd):
		return warn("its etcd member has not joined yet: look at the log of k3s", "Node %s is Ready and has no etcd label, though this device is a %s.", n.Name, f.cluster.Role)
	case len(n.Pressures) > 0:
		return warn("make room on the device", "Node %s is Ready and under %s.", n.Name, strings.Join(n.Pressures, ", "))
	}
	return ok("Node %s is Ready, with the roles %s.", n.Name, strings.Join(n.Roles, ", "))
}

func since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " since " + at.UTC().Format(time.RFC3339)
}

func judgeLease(o overview.Overview) Finding {
	leader := condition(o.Conditions, types.StateLeader)
	switch {
	case !o.Agent.Runs:
		return unknown("The agent does not run: who reports is not known.")
	case leader.Status == types.ConditionFalse:
		return fail("do the agents of all nodes run, and does the controller answer them? Who may report needs the device's configuration", "%s", either(leader.Message, "Nobody reports for the cluster."))
	case !o.Lease.Known():
		return unknown("The agent has not published who reports.")
	case o.Lease.Leader == "" && !o.Lease.Running:
		return unknown("This node takes no part in the election, and knows no holder.")
	case o.Lease.Leader == "":
		return warn("a new one is elected within half a minute", "Nobody reports for the cluster%s.", since(o.Lease.Since))
	case o.Lease.Mine:
		return ok("This node reports%s.", since(o.Lease.Since))
	}
	return ok("Node %s reports%s.", o.Lease.Leader, since(o.Lease.Since))
}

func condition(c overview.Conditions, t types.NodeStateType) types.NodeStateCondition {
	for _, x := range c.List {
		if x.Type == t {
			return x
		}
	}
	return types.NodeStateCondition{}
}

// judgeMembers judges what the agent makes of the members. compared is whether
// it could compare them with the cluster's nodes.
func judgeMembers(m overview.Members, compared types.ConditionStatus, now time.Time) Finding {
	switch {
	case !m.Known():
		return unknown("The agent has not published the members.")
	case len(m.Stale) > 0:
		s := m.Stale[0]
		text := fmt.Sprintf("Node %s is none that the controller names, seen so for %s.", s.Node, span(now.Sub(s.Since)))
		if len(m.Stale) > 1 {
			text = fmt.Sprintf("%d nodes are none that the controller names; the first is %s, for %s.", len(m.Stale), s.Node, span(now.Sub(s.Since)))
		}
		return warn("it is removed once all nodes were told of the same masters and etcd can spare it", "%s It stays because: %s", text, either(s.Why, "nobody says why."))
	case len(m.Masters) == 0:
		return ok("The controller names no masters: none is too many.")
	case compared != types.ConditionTrue:
		return unknown("The controller names %d masters; the agent could not compare them with the cluster's nodes.", len(m.Masters))
	}
	return ok("All of the cluster's masters are among the %d that the controller names.", len(m.Masters))
}

func judgeEtcd(f nodesFacts) Finding {
	if missing, is := f.missing(); is {
		return missing
	}
	q := f.quorum()
	switch {
	case q.Voters == 0:
		return unknown("No node bears the etcd label.")
	case !q.Has():
		return fail("bring these nodes back: nothing can be changed in the cluster", "%d of %d members are Ready, which is no quorum: not %s.", q.Ready, q.Voters, strings.Join(q.Down, ", "))
	case len(q.Down) > 0:
		more := "no further one may fail"
		if n := q.Spare(); n > 0 {
			more = fmt.Sprintf("only %d more may fail", n)
		}
		return warn("bring these nodes back", "%d of %d members are Ready, %s: not %s.", q.Ready, q.Voters, more, strings.Join(q.Down, ", "))
	case q.Voters == 2:
		return warn("with two members both are needed: add a third, or a tie-breaker", "Both members are Ready.")
	case q.Learners > 0:
		return ok("All %d members that vote are Ready; %d more do not vote yet.", q.Voters, q.Learners)
	}
	return ok("All %d members are Ready.", q.Voters)
}

// quorum counts the members of etcd by the one rule for all. A report does not
// say who only learns: those nodes count as voters.
func (f nodesFacts) quorum() types.Quorum {
	var nodes []types.Node
	for _, n := range f.List {
		row := types.Node{Name: n.Name, Etcd: slices.Contains(n.Roles, roleEtcd)}
		if n.Learner {
			row.EtcdVoter = types.ConditionFalse
		}
		if n.Status == ready {
			row.Ready = types.ConditionTrue
		}
		nodes = append(nodes, row)
	}
	return types.QuorumOf(nodes)
}

func judgeVersions(f nodesFacts) Finding {
	if missing, is := f.missing(); is {
		return missing
	}
	agents, kubelets := map[string][]string{}, map[string][]string{}
	var stale []string
	for _, n := range f.List {
		if n.AgentStale {
			stale = append(stale, n.Name)
		} else if n.Agent != "" {
			agents[n.Agent] = append(agents[n.Agent], n.Name)
		}
		if n.Kubelet != "" {
			kubelets[n.Kubelet] = append(kubelets[n.Kubelet], n.Name)
		}
	}
	switch {
	case len(stale) > 0:
		return warn("is its agent up? Where zedkube was put back to EVE's own: zedkube members forget NODE", "No zedkube has been heard of for %s or longer where one was: on %s.", types.StampFresh, strings.Join(stale, ", "))
	case len(agents) > 1:
		return warn("update the nodes to the same image", "The nodes run different images: %s.", versionsText(agents))
	case len(kubelets) > 1:
		return warn("the update of the kube container has not reached all nodes", "The nodes run different versions of Kubernetes: %s.", versionsText(kubelets))
	}
	return ok("zedkube %s, Kubernetes %s on %d nodes.", oneOf(agents), oneOf(kubelets), len(f.List))
}

func versionsText(by map[string][]string) string {
	var parts []string
	for v, nodes := range by {
		slices.Sort(nodes)
		parts = append(parts, v+" on "+strings.Join(nodes, ", "))
	}
	slices.SortFunc(parts, cmp.Compare)
	return strings.Join(parts, "; ")
}

func oneOf(by map[string][]string) string {
	for v := range by {
		return v
	}
	return "of unknown version"
}

// judgeConditions repeats what no other check looks at.
func judgeConditions(c overview.Conditions, runs bool) Finding {
	if !c.Known() {
		return unknown("The agent has published none.")
	}
	all := ok("All that the agent knows of is well.")
	if !runs {
		all = unknown("The agent does not run: what it saw last was well.")
	}
	var bad []string
	for _, x := range c.List {
		if x.Status == types.ConditionFalse {
			bad = append(bad, fmt.Sprintf("%s since %s: %s", x.Type, x.Since.UTC().Format(time.RFC3339), either(x.Message, x.Reason)))
		}
	}
	if len(bad) > 0 {
		return warn("zedkube status says what to do about each", "%s", strings.Join(bad, " "))
	}
	return all
}
