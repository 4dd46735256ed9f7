package clusterobject

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// verdict is what the facts say of one condition. The zero value says nothing: what was
// said before stays.
type verdict struct {
	status  types.ConditionStatus
	reason  string // CamelCase
	message string
}

func fine(reason, message string) verdict { return verdict{types.ConditionTrue, reason, message} }

func bad(reason, message string) verdict { return verdict{types.ConditionFalse, reason, message} }

func unknown(reason, message string) verdict { return verdict{types.ConditionUnknown, reason, message} }

// rule is how one condition is judged, after those before it, and when it applies.
type rule struct {
	kind    types.ClusterConditionType
	applies bool
	judge   func(facts) verdict
}

// rules are those of docs/wire.md, "ClusterObject", in the order in which they are listed.
func rules(f facts) []rule {
	member, c := f.membership.Belongs(), f.membership.Config
	return []rule{
		{types.ControlPlaneReady, true, controlPlane},
		{types.NodeReady, true, node},
		{types.ClusterReady, true, cluster},
		{types.KubeContainerReady, f.hasKubeInit || f.published.Status.Of(types.KubeContainerReady).Type != "" && !f.listed(), container},
		{types.ComponentsUpdated, f.update.Status != types.KubeCompUpdateUnknown, components},
		{types.ClusterVersion, true, ofNode(types.StateVersion)},
		{types.ClusterDeclared, member, declared},
		{types.ClusterAddressReady, member, address},
		{types.ClusterPeersReachable, member, peers},
		{types.ClusterJoined, member, joined},
		{types.ClusterVoter, member && (c == nil || !c.IsWorkerNode), voter},
		{types.ClusterLabelled, member, ofNode(types.StateLabels)},
		{types.ClusterSettled, member, settled},
	}
}

// memberConditions are those of them that only a member has.
var memberConditions = []types.ClusterConditionType{
	types.ClusterDeclared, types.ClusterAddressReady, types.ClusterPeersReachable, types.ClusterJoined, types.ClusterVoter, types.ClusterLabelled, types.ClusterSettled,
}

// judged are the conditions that apply, each with the time at which its status last changed.
func judged(f facts) []types.ClusterCondition {
	for _, r := range rules(f) {
		if !r.applies {
			continue
		}
		c := f.published.Status.Of(r.kind)
		v := r.judge(f)
		if v.status == "" && c.Type == "" {
			v = unknown("NotSeenYet", "It has not been observed yet.")
		}
		if v.status != "" {
			if c.Status != v.status {
				c.LastTransitionTime = f.now
			}
			c.Type, c.Status, c.Reason, c.Message = r.kind, v.status, v.reason, v.message
		}
		f.said.Conditions = append(f.said.Conditions, c)
	}
	return f.said.Conditions
}

// notReady names the nodes that are not Ready among those of a kind.
func notReady(nodes map[string]types.Node, is func(types.Node) bool) (names []string, of int) {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if n := nodes[name]; is(n) {
			if of++; n.Ready != types.ConditionTrue {
				names = append(names, short(name))
			}
		}
	}
	return names, of
}

const namedNodes = 5 // that many are named in a sentence

// ready is whether all nodes of a kind are Ready.
func ready(f facts, is func(types.Node) bool, noun, kind string) verdict {
	down, all := notReady(f.nodes, is)
	switch {
	case all == 0:
		return unknown("No"+kind, fmt.Sprintf("The API server answers, and lists no %s.", noun))
	case len(down) > 0:
		return bad(kind+"NotReady", fmt.Sprintf("%d of %s are not Ready: %s.", len(down), phrase.Counted(all, noun), phrase.Few(down, namedNodes)))
	}
	return fine(kind+"Ready", fmt.Sprintf("The API server answers, with %s Ready.", phrase.Counted(all, noun)))
}

func controlPlane(f facts) verdict {
	switch {
	case f.silent() && f.api.NoKubeconfig:
		return bad("NoKubeconfig", "There is no usable kubeconfig: k3s has not started yet, or does not run.")
	case f.silent():
		return bad("APIServerUnreachable", because("The API server does not answer", f.api.Reason))
	case !f.listed():
		return verdict{}
	}
	return ready(f, types.Node.IsServer, "server", "Servers")
}

func node(f facts) verdict {
	switch {
	case f.silent():
		return unknown("APIServerUnreachable", "The API server does not answer, so whether this node is Ready is not known.")
	case !f.listed():
		return verdict{}
	case !f.seen:
		return bad("NoNode", "The cluster has no Node of this device.")
	case f.own.Ready == types.ConditionTrue:
		return fine("Ready", "This node is Ready.")
	}
	return bad("NotReady", fmt.Sprintf("This node is not Ready: the condition is %s.", cmp.Or(f.own.Ready, types.ConditionUnknown)))
}

func cluster(f facts) verdict {
	switch c := f.said.Of(types.ControlPlaneReady); {
	case c.Status != types.ConditionTrue:
		return verdict{c.Status, c.Reason, c.Message}
	case !f.listed():
		return verdict{}
	}
	return ready(f, func(types.Node) bool { return true }, "node", "Nodes")
}

const reasonError = types.KubeContainerError

// container is what kube-init says of itself. After a boot it is silent until it has
// started; where k3s answers without it, it is none of this EVE.
func container(f facts) verdict {
	if !f.hasKubeInit {
		return verdict{}
	}
	k := f.kubeInit
	at := fmt.Sprintf("The kube container is in state %s", cmp.Or(short(k.State), "unknown"))
	if step := short(k.TransitionStep); step != "" {
		at += ", at step " + step
	}
	switch {
	case k.LastError != "":
		return bad(reasonError, at+". Its last error: "+sentence(k.LastError))
	case k.JoinWatchdogActive:
		return bad("JoinWatchdog", at+". If the join does not proceed for 5 minutes it reboots the device, three times at most.")
	case !k.AllComponentsInitialized:
		return bad("Initializing", at+": not all components are initialized yet.")
	}
	return fine("Initialized", at+", and all components are initialized.")
}

// updating reports that a component is being updated.
func (f facts) updating() bool {
	return f.update.Status == types.KubeCompUpdateDownload || f.update.Status == types.KubeCompUpdateInProgress
}

func updateMessage(f facts) string {
	u := f.update
	return fmt.Sprintf("The kube container updates its components (KubeVersion %d): %s, %s.", u.DestinationKubeUpdateVersion, u.Component, u.Status)
}

func components(f facts) verdict {
	u := f.update
	switch {
	case f.updating():
		return bad("Updating", updateMessage(f))
	case u.Status == types.KubeCompUpdateCompleted:
		return fine("Updated", fmt.Sprintf("The last update of a component completed: %s.", u.Component))
	}
	return bad(types.ComponentUpdateFailed, fmt.Sprintf("The update of %s to KubeVersion %d failed (%s): %s It is not retried, and no later component is updated, until EVE brings another KubeVersion.",
		u.Component, u.DestinationKubeUpdateVersion, u.Status, cmp.Or(sentence(u.Error), "no reason is given.")))
}

// ofNode is a condition of KubeNodeConditions.
func ofNode(t types.NodeStateType) func(facts) verdict {
	return func(f facts) verdict {
		c, _ := f.conditions.Of(t)
		return verdict{c.Status, c.Reason, c.Message}
	}
}

func declared(f facts) verdict {
	m := f.membership
	switch m.State {
	case types.MembershipDoubtful:
		return unknown("ConfigurationInvalid", because("The controller's configuration is not valid", m.Reason))
	case types.MembershipLeaving:
		return bad("Leaving", because("This node is leaving its cluster", m.Reason))
	}
	return fine("Configured", "The controller configures this device for a cluster.")
}

func address(f facts) verdict {
	switch {
	case f.cluster.ClusterIPIsReady:
		return fine("Ready", "This node has its address in the cluster's network.")
	case f.cluster.Error.Error != "":
		return bad(reasonError, sentence(f.cluster.Error.Error))
	}
	return bad("NotReady", "This node does not have its address in the cluster's network yet.")
}

// peers is whether the others answer: before this node has joined the server to join
// through, and the Nodes afterwards. What was tried before the join says nothing of a
// member whose API server is silent.
func peers(f facts) verdict {
	if !f.listed() && f.published.Status.Of(types.ClusterJoined).Status == types.ConditionTrue {
		return verdict{}
	}
	own := func(n types.Node) bool { return n.Name != f.own.Name }
	if down, others := notReady(f.nodes, own); f.listed() && f.seen && others > 0 && !f.inFormer() {
		if len(down) == others {
			return bad("PeersNotReady", fmt.Sprintf("No other node is Ready: %s.", phrase.Few(down, namedNodes)))
		}
		return fine("PeersReady", fmt.Sprintf("%d of the %s are Ready.", others-len(down), phrase.Counted(others, "other node")))
	}
	server := f.joinServer()
	switch {
	case f.cluster.BootstrapNode:
		return fine("Bootstrap", "This node starts the cluster: it needs no other.")
	case server == "" || f.dialled.address != server:
		return unknown("NotTried", "Whether the server to join through answers is not known yet.")
	case f.dialled.err != nil:
		return bad("NoAnswer", "The server to join through does not answer: "+sentence(f.dialled.err.Error()))
	}
	return fine("Answers", "The server to join through answers at "+server+".")
}

// Reasons of Joined for a member of one cluster that was configured for another.
const (
	reasonMoved  = "Moved"         // it has not been seen in the new one yet
	reasonFormer = "FormerCluster" // it is still in the former one
)

// inFormer reports that the API server is still that of the cluster which this device was in
// before: the kube container says so, or the Node has not the new address among other nodes.
func (f facts) inFormer() bool {
	c := f.membership.Config
	if c == nil || !f.moved() {
		return false
	}
	if id := f.kubeInit.ClusterID; f.kubeInit.Membership == types.KubeMembershipMember && id != "" {
		return !strings.EqualFold(id, c.ClusterID.UUID.String())
	}
	return len(f.nodes) > 1 && f.own.InternalIP != "" && f.own.InternalIP != f.configured()
}

// moved reports that this device was in another cluster before, and has not been seen in this one.
func (f facts) moved() bool {
	was := f.published.Status.Of(types.ClusterJoined).Reason
	return was == reasonMoved || was == reasonFormer
}

// configured is the address in the cluster's network that the controller configures, "" for none.
func (f facts) configured() string {
	if c := f.membership.Config; c != nil {
		if ip, ok := (types.EdgeNodeClusterStatus{ClusterIPPrefix: c.ClusterIPPrefix}).OwnAddress(); ok {
			return ip.String()
		}
	}
	return ""
}

// joined is whether this node is part of the cluster that is declared. Before, its
// kubeconfig leads to a cluster of its own, without other nodes and with another address,
// or to the one that it was moved from.
func joined(f facts) verdict {
	ip := f.configured()
	switch k := f.kubeInit; {
	case k.Membership == types.KubeMembershipSingle, k.Membership == types.KubeMembershipJoinPending, k.Membership == types.KubeMembershipJoining:
		return bad(string(k.Membership), container(f).message)
	case !f.listed(), !f.seen && f.moved(): // that it was moved must not be forgotten
		return verdict{}
	case !f.seen:
		return bad("NoNode", "The cluster has no Node of this device.")
	case f.inFormer():
		return bad(reasonFormer, "The API server is still that of the cluster which this device was a member of before.")
	case k.Membership == types.KubeMembershipMember, len(f.nodes) > 1, ip != "" && f.own.InternalIP == ip:
		return fine("Joined", "This device has its Node in the cluster.")
	}
	return bad("OwnCluster", "The API server is still that of this device alone.")
}

func voter(f facts) verdict {
	switch {
	case !f.listed() || !f.seen:
		return verdict{}
	case f.own.Votes():
		return fine("Votes", "The etcd member of this node votes.")
	case f.own.Etcd:
		return bad("Learner", "The etcd member of this node does not vote yet.")
	}
	return bad("NoMember", "This node has no etcd member.")
}

// settled is that nothing of the join is left to be done.
func settled(f facts) verdict {
	later := []types.ClusterConditionType{types.ClusterReady, types.ControlPlaneReady, types.ClusterVersion, types.ComponentsUpdated}
	for _, c := range f.said.Conditions {
		switch {
		case c.Status == types.ConditionTrue || slices.Contains(later, c.Type):
		case c.Status == types.ConditionUnknown && !f.listed():
			return verdict{}
		default:
			return bad(string(c.Type), "Condition "+string(c.Type)+" is not True: "+c.Message)
		}
	}
	return fine("Settled", "This node has joined, and nothing of it is left to be done.")
}
