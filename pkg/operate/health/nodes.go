package health

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// The words that overview has for nodes.
const (
	ready       = "Ready"
	roleEtcd    = "etcd"
	roleControl = "control-plane"
	tieBreaker  = "tie-breaker"
)

// nodesFacts are the cluster's nodes, or why they are not known.
type nodesFacts struct {
	overview.Nodes
	err error
}

// missing says why nothing is known of the nodes; ok where something is.
func (f nodesFacts) missing() (types.Finding, bool) {
	if f.err != nil {
		return unknown("The nodes are not known: %v.", f.err), true
	}
	if len(f.List) == 0 {
		return unknown("The nodes are not known."), true
	}
	return types.Finding{}, false
}

func own(nodes overview.Nodes) (overview.ClusterNode, bool) {
	if i := slices.IndexFunc(nodes.List, func(n overview.ClusterNode) bool { return n.Own }); i >= 0 {
		return nodes.List[i], true
	}
	return overview.ClusterNode{}, false
}

func judgeNode(o seen, f nodesFacts) types.Finding {
	if missing, is := f.missing(); is {
		return missing
	}
	n, found := own(f.Nodes)
	server := o.Cluster.Known() && o.Cluster.Role != "worker"
	switch {
	case !found:
		return bad("k3s has not registered it, or has done so under another name; zedkube join plan", "The cluster has no Node for this device; it would be named %q.", o.Node.Name)
	case n.Status != ready:
		f, _ := notReady(n) // of a status that is not known it says the same
		f.Evidence += since(n.Since)
		return f
	case n.UUID == "":
		return warn("the kube container sets it: is it up?", "Node %s is Ready and has no label node-uuid.", n.Name)
	case o.Node.UUID != "" && n.UUID != o.Node.UUID:
		return bad("two devices have the same name: rename one", "Node %s is labelled with another device's UUID (%s).", n.Name, n.UUID)
	case server && !slices.Contains(n.Roles, roleControl):
		return warn("k3s on this device joined as an agent, or has not finished starting", "Node %s is Ready and has no control-plane label, though this device is a %s.", n.Name, o.Cluster.Role)
	case server && !slices.Contains(n.Roles, roleEtcd):
		return warn("its etcd member has not joined yet: look at the log of k3s", "Node %s is Ready and has no etcd label, though this device is a %s.", n.Name, o.Cluster.Role)
	case len(n.Pressures) > 0:
		return warn("free disk space or memory on the device", "Node %s is Ready and under %s.", n.Name, strings.Join(n.Pressures, ", "))
	}
	return ok("Node %s is Ready, with the roles %s.", n.Name, strings.Join(n.Roles, ", "))
}

func findNodes(o seen, tell func(types.Finding)) {
	for _, n := range o.Nodes.List {
		if f, is := notReady(n); is {
			tell(f)
		}
	}
}

// notReady judges what the cluster says of a node's kubelet.
func notReady(n overview.ClusterNode) (types.Finding, bool) {
	f := bad("Look at its kubelet's conditions: kubectl describe node, and at its disk and memory.", "Node %s is not Ready.", n.Name)
	switch n.Status {
	case types.KubeNodeNotReady.String():
	case types.KubeNodeNotReachable.String():
		f = bad("Is the device on and connected? Its applications start elsewhere as soon as it is proved to be off.",
			"Node %s is unreachable: its kubelet does not report.", n.Name)
	default:
		return f, false
	}
	return f.Of(n.Name, n.Since), true
}

func findMembersStale(o seen, tell func(types.Finding)) {
	for _, s := range o.Cluster.Members.Stale {
		f := warn("It is removed when nothing prevents that any longer.",
			"Node %s is no longer configured as a master but has not been removed yet%s", s.Node, because(s.Why))
		if s.Joins {
			f = warn("If it joins, the controller configures it within a configuration interval.",
				"Node %s is a master that the controller has not configured yet%s", s.Node, because(s.Why))
		}
		tell(f.Of(s.Node, s.Since))
	}
}

// judgeMembers judges what the agent makes of the members. compared is whether
// it could compare them with the cluster's nodes.
func judgeMembers(o seen, compared types.ConditionStatus) types.Finding {
	m := o.Cluster.Members
	if !m.Known() {
		return unknown("The agent has not published the members.")
	}
	if f, is := o.first(findMembersStale); is {
		return f
	}
	switch {
	case len(m.Masters) == 0:
		return ok("The controller configures no masters, so none is surplus.")
	case compared != types.ConditionTrue:
		return unknown("The controller names %s; the agent could not compare that with the cluster's nodes.", phrase.Counted(len(m.Masters), "master"))
	}
	return ok("All of the cluster's masters are among the %d that the controller names.", len(m.Masters))
}

func judgeEtcd(f nodesFacts) types.Finding {
	if missing, is := f.missing(); is {
		return missing
	}
	q := f.quorum()
	switch {
	case q.Voters == 0:
		return unknown("No node has the etcd label.")
	case !q.Has():
		return bad("bring these nodes back: until then nothing can be changed in the cluster", "%d of %d members are Ready, which is no quorum; not Ready: %s.", q.Ready, q.Voters, strings.Join(q.Down, ", "))
	case len(q.Down) > 0:
		more := "no more may fail"
		if n := q.Spare(); n > 0 {
			more = fmt.Sprintf("only %d more may fail", n)
		}
		return warn("bring these nodes back", "%d of %d members are Ready, %s; not Ready: %s.", q.Ready, q.Voters, more, strings.Join(q.Down, ", "))
	case q.Voters == 2:
		return warn("with two members both are needed: add a third, or a tie-breaker", "Both members are Ready.")
	case q.Learners > 0:
		return ok("All %d voting members are Ready; %d more are still learners.", q.Voters, q.Learners)
	}
	if q.Voters == 1 {
		return ok("The only member is Ready.")
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

// judgePeers judges what the status servers of other nodes answer. One that is silent
// is not judged: whether it is there, its Node says.
func judgePeers(peers []peerAnswer) types.Finding {
	var wrong, silent []string
	byTLS := 0
	for _, p := range peers {
		switch {
		case errors.Is(p.err, clusterauth.ErrNoToken):
			wrong = append(wrong, p.node+": it answers by TLS, and this device has no cluster token")
		case isUntrusted(p.err):
			wrong = append(wrong, fmt.Sprintf("%s: %v", p.node, p.err))
		case p.err != nil:
			silent = append(silent, p.node)
		case p.byTLS:
			byTLS++
		}
	}
	answered := len(peers) - len(wrong) - len(silent)
	switch {
	case len(wrong) > 0:
		return warn("has the controller just changed the token? Each node receives it by itself: zedkube topics EdgeNodeClusterStatus there", "This node and others do not authenticate each other: %s.", strings.Join(wrong, "; "))
	case answered == 0:
		return unknown("No other node has answered.")
	case len(silent) > 0:
		return ok("Other nodes that answer by TLS: %d, by plain HTTP: %d; no answer from %s.", byTLS, answered-byTLS, strings.Join(silent, ", "))
	}
	return ok("Other nodes that answer by TLS: %d, by plain HTTP: %d.", byTLS, answered-byTLS)
}

// isUntrusted reports that a server answered and is not trusted, or does not
// trust; it ends TLS by an alert where it has no token.
func isUntrusted(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" || slices.ContainsFunc([]error{
		clusterauth.ErrOtherToken, clusterauth.ErrOtherServer, clusterauth.ErrOtherBearer, clusterauth.ErrDowngrade,
	}, func(kind error) bool { return errors.Is(err, kind) })
}

func judgeVersions(f nodesFacts) types.Finding {
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
		return warn("is the agent there running? Where EVE's own zedkube was installed again: zedkube nodes forget NODE", "No zedkube has reported for %s or longer on nodes where one ran: %s.", types.StampFresh, strings.Join(stale, ", "))
	case len(agents) > 1:
		return warn("update the nodes to the same image", "The nodes run different images: %s.", versionsText(agents))
	case len(kubelets) > 1:
		return warn("the update of the kube container has not reached all nodes", "The nodes run different versions of Kubernetes: %s.", versionsText(kubelets))
	}
	return ok("zedkube %s, Kubernetes %s on %s.", oneOf(agents), oneOf(kubelets), phrase.Counted(len(f.List), "node"))
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
