package conditions

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

type facts struct {
	now    time.Time     // wall clock, UTC
	uptime time.Duration // no clock that anyone sets

	credentials types.Credentials
	connected   bool // there is a kubeconfig
	clocks      map[string]types.NodeClock
	nodes       map[string]types.Node
	complete    bool // nodes are all there are
	own         types.Node
	seen        bool // own is there
	pods        map[string]types.Pod
	api         types.APIStatus
	watched     bool // api is known
	info        types.EdgeNodeInfo
	named       bool // info is known
	membership  types.ClusterMembership
	k3s         types.K3sVersionStatus
	certs       types.K3sCertificates
	leader      types.KubeLeaderElectInfo
	elects      bool // leader is known
	health      types.KubeReportHealth
	reported    bool // health is known

	published types.KubeNodeConditions
	node      types.ClusterNodeStatus // that was published; zero for none
	pending   map[types.NodeStateType]pending
}

// pending is a change that has yet to prove that it lasts.
type pending struct {
	to    types.ConditionStatus
	since time.Duration // uptime
	apart time.Duration // since when it has been other than what is said, whatever it was; uptime
}

type action struct {
	conditions types.KubeNodeConditions
	node       types.ClusterNodeStatus // zero for none
	pending    map[types.NodeStateType]pending
	again      time.Duration // when to look again; zero for when something rings
}

// verdict is what the facts say of one condition at this moment.
type verdict struct {
	status  types.ConditionStatus
	reason  string // CamelCase
	message string
	ends    time.Time
}

// rule is how one condition is judged, and for how long it has to be False
// before that is said: what is over within it is the course of things.
type rule struct {
	judge  func(facts) verdict
	proved time.Duration
}

// unknownAfter is for how long what was known is kept while it cannot be seen: longer
// than a restart of this agent, of the API server or of the leader takes.
const unknownAfter = 2 * time.Minute

// rules are those of docs/wire.md, "KubeNodeConditions".
func rules() map[types.NodeStateType]rule {
	return map[types.NodeStateType]rule{
		types.StateClientCertificate: {judge: clientCertificate},
		types.StateCACertificate:     {judge: caCertificate},
		types.StateServerCertificate: {judge: serverCertificate},
		types.StateK3sCertificates:   {judge: k3sCertificates},
		types.StateVersion:           {judge: version, proved: time.Minute},
		types.StateLabels:            {judge: labels, proved: 2 * time.Minute},  // the kube container writes one after the other
		types.StateCordon:            {judge: cordon},                           // it is one write
		types.StateMembers:           {judge: members, proved: 5 * time.Minute}, // nodes join and leave in minutes
		types.StateClock:             {judge: clock, proved: 2 * time.Minute},   // a clock is set after a boot
		types.StateLeader:            {judge: leader, proved: 2 * time.Minute},  // a Lease runs out in 25 s
		types.StateReport:            {judge: report, proved: 5 * time.Minute},
		types.StatePermissions:       {judge: permissions, proved: time.Minute}, // k3s applies its manifests after it starts
	}
}

// decide judges every condition and says what has lasted long enough.
func decide(f facts) action {
	a := action{conditions: known(f), node: ownNode(f), pending: map[types.NodeStateType]pending{}}
	rules := rules()
	for _, t := range types.NodeStateTypes() {
		said, wait := settle(f, t, rules[t], a.pending)
		a.conditions.Conditions = append(a.conditions.Conditions, said)
		if wait > 0 && (a.again == 0 || wait < a.again) {
			a.again = wait
		}
	}
	return a
}

// ownNode is how the cluster sees this node; while that is not known, as it was published. Without a
// kubeconfig there is no cluster that could be down.
func ownNode(f facts) types.ClusterNodeStatus {
	status := types.OwnNodeStatus(f.api.Answers(), f.own.Ready)
	if !f.watched || !f.named || f.api.NoKubeconfig || f.api.Answers() && !f.complete || status == f.node.Status {
		return f.node
	}
	return types.ClusterNodeStatus{Status: status, Since: f.now}
}

// settle is what is said of t, and how long a change waits that is not said yet.
// What was said before stays as long, in every word: it is what was known last.
func settle(f facts, t types.NodeStateType, r rule, waiting map[types.NodeStateType]pending) (types.NodeStateCondition, time.Duration) {
	v := r.judge(f)
	was, had := f.published.Of(t)
	if !had || was.Since.IsZero() {
		was = types.NodeStateCondition{
			Type: t, Status: types.ConditionUnknown, Since: f.now, Reason: "NotSeenYet", Message: "It has not been observed for long enough yet.",
		}
	}
	if v.status != was.Status {
		long := time.Duration(0)
		switch {
		case v.status == types.ConditionUnknown && had:
			long = unknownAfter
		case v.status == types.ConditionFalse:
			long = r.proved
		}
		since, lasts := f.pending[t]
		if !lasts {
			since.apart = f.uptime
		}
		if !lasts || since.to != v.status {
			since.to, since.since = v.status, f.uptime
		}
		wait := since.since + long - f.uptime
		if v.status == types.ConditionUnknown { // False in between is no reason to keep what was known
			wait = min(wait, since.apart+max(long, r.proved)-f.uptime)
		}
		if wait > 0 {
			waiting[t] = since
			return was, wait
		}
		was.Since = f.now
	}
	was.Status, was.Reason, was.Message, was.ExpiresAt = v.status, v.reason, v.message, v.ends
	return was, 0
}

// seesCluster reports that the table of nodes is what they are now.
func (f facts) seesCluster() bool { return f.watched && f.api.Answers() && f.complete }

// unseen is the verdict where the cluster cannot be seen.
func (f facts) unseen() verdict {
	switch {
	case !f.connected || f.api.NoKubeconfig:
		return unknown("NoKubeconfig", "There has been no usable kubeconfig yet.")
	case f.watched && !f.api.Answers():
		return unknown("APISilent", "The API server does not answer: "+short(f.api.Reason)+".")
	case f.seesCluster() && f.named:
		return unknown("NodeNotSeen", "This node is not in the cluster's list of nodes.")
	case f.seesCluster():
		return unknown("NodeNotNamed", "The identity of this device has not been published yet.")
	}
	return unknown("ClusterNotSeen", "The list of nodes is not complete.")
}

func unknown(reason, message string) verdict {
	return verdict{status: types.ConditionUnknown, reason: reason, message: message}
}

func fine(reason, message string) verdict {
	return verdict{status: types.ConditionTrue, reason: reason, message: message}
}

func bad(reason, message string) verdict {
	return verdict{status: types.ConditionFalse, reason: reason, message: message}
}
