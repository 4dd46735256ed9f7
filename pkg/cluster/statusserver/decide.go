package statusserver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

type facts struct {
	now    time.Time
	port   int // 0 for types.PortStatus
	status types.EdgeNodeClusterStatus
	nodes  map[string]types.Node
	info   types.EdgeNodeInfo
	api    types.APIStatus
	heard  bool // api holds something
	marks  marks

	anyForeign bool // on one of the nodes no zedkube is known to run that can prove itself

	proved  string    // the cluster that was once seen with a zedkube of this kind on every Node
	stamped time.Time // since when it has looked so; zero for not
}

type action struct {
	listen string // "" for nowhere
	marks  marks
	reason string // why joining nodes are told what they are

	proved  string    // the cluster of this node, if all its Nodes have had proofs; else ""
	stamped time.Time // since when it looks as if they had; zero for not
}

func decide(f facts) action {
	e := explain(f)
	a := action{listen: f.status.ListenAddress(cmp.Or(f.port, types.PortStatus)), marks: f.marks.next(e, f.now), reason: e.reason}
	a.proved, a.stamped = proved(f)
	return a
}

// proved is the cluster of this node, if there was a time at which a zedkube that can
// prove itself ran on each of its Nodes, else "". A stamp that has outlived its agent
// is known for that only after StampFresh, so it takes as long.
func proved(f facts) (cluster string, stamped time.Time) {
	id := f.status.ClusterID.UUID
	if id == uuid.Nil {
		return "", time.Time{}
	}
	if f.proved == id.String() {
		return f.proved, time.Time{}
	}
	if !f.api.Answers() || !f.api.Synced || len(f.nodes) == 0 || f.anyForeign {
		return "", time.Time{}
	}
	if f.stamped.IsZero() {
		f.stamped = f.now
	}
	if f.now.Sub(f.stamped) < types.StampFresh {
		return "", f.stamped
	}
	return id.String(), time.Time{}
}

// answer is the body of /status: a joining node goes ahead only when it reads
// the name of its own cluster here, so an unknown is answered with nothing
// (docs/wire.md, "Status server").
func answer(f facts) string {
	if !serves(f) {
		return ""
	}
	return "cluster:" + f.status.ClusterID.UUID.String()
}

// serves reports whether this node is known to be a working server of its cluster.
func serves(f facts) bool {
	if f.status.ClusterID.UUID == uuid.Nil || !f.api.Answers() || !f.api.Synced {
		return false
	}
	node, ok := types.OwnNode(f.nodes, f.info)
	return ok && node.Etcd && node.HasAPIServer()
}

// What marks tell of, besides the types of conditions.
const (
	markState   = "state"
	markCluster = "cluster"
)

// mark is a value and since when it holds.
type mark struct {
	value string
	since time.Time
}

// marks tells since when each thing stands as it does, by its name. It lives
// as long as the agent does.
type marks map[string]mark

// next is what the marks are when things stand as e says. It keeps the time of
// what did not change and leaves m as it is.
func (m marks) next(e explanation, now time.Time) marks {
	out := marks{markState: m.at(markState, e.state(), now, time.Time{}), markCluster: m.at(markCluster, e.own.String(), now, time.Time{})}
	for _, c := range e.conditions {
		out[c.Type] = m.at(c.Type, string(c.Status), now, c.LastTransitionTime)
	}
	return out
}

// at is the mark of name for value: of the time that the cluster itself tells,
// unless it is in the future, else the one there is, or one that begins now.
func (m marks) at(name, value string, now, since time.Time) mark {
	was, ok := m[name]
	switch {
	case !since.IsZero() && !since.After(now):
	case ok && was.value == value:
		return was
	default:
		since = now
	}
	return mark{value: value, since: since.UTC().Round(0)}
}

// The reasons, docs/wire.md, "Status server".
const (
	reasonReady            = "Ready"
	reasonOtherCluster     = "OtherCluster"
	reasonNoCluster        = "NoCluster"
	reasonWorker           = "Worker"
	reasonNoKubeconfig     = "NoKubeconfig"
	reasonAPIUnknown       = "APIUnknown"
	reasonAPISilent        = "APISilent"
	reasonTablesIncomplete = "TablesNotWhole"
	reasonDeviceUnknown    = "DeviceUnknown"
	reasonNodeUnknown      = "NodeUnknown"
	reasonNoControlPlane   = "NoControlPlane"
	reasonNoEtcd           = "NoEtcd"
	reasonEtcdLearner      = "EtcdLearner"
	reasonNodeNotReady     = "NodeNotReady"
)

// The phases of a cluster on this node.
const (
	phaseProvisioned  = "Provisioned"
	phaseProvisioning = "Provisioning"
	phaseUnknown      = "Unknown"
)

// The types of conditions.
const (
	clusterReady      = "ClusterReady"
	nodeReady         = "NodeReady"
	controlPlaneReady = "ControlPlaneReady"
)

type verdict struct {
	reason string
	why    string
}

// as is the verdict in a condition.
func (v verdict) as(kind string, status types.ConditionStatus) condition {
	return condition{Type: kind, Status: status, Reason: v.reason, Message: v.why}
}

// explanation is what there is to say about this node as a server to join.
type explanation struct {
	verdict
	ready      bool
	own        uuid.UUID // the cluster this node is in
	node       string    // "" while not known
	phase      string
	version    string // of Kubernetes; "" while not known
	conditions []condition
}

func (e explanation) state() string {
	if e.ready {
		return "ready"
	}
	return "waiting"
}

// explain says why the answer is what it is. It never disagrees with answer.
func explain(f facts) explanation {
	e := explanation{ready: serves(f), own: f.status.ClusterID.UUID, node: f.info.NodeName()}
	node, known := types.OwnNode(f.nodes, f.info)
	if known {
		e.node, e.version = node.Name, node.KubeletVersion
	}
	hidden := unseen(f)
	if hidden == (verdict{}) && !known {
		hidden = noNode(f)
	}
	plane, _ := controlPlane(node)
	switch {
	case e.ready:
		e.verdict = verdict{reasonReady, "This node is a working server of its cluster."}
	case e.own == uuid.Nil:
		e.verdict = verdict{reasonNoCluster, "This node does not belong to a cluster."}
	case f.status.IsWorkerNode:
		e.verdict = verdict{reasonWorker, "This node is a worker: nodes can join only through a server."}
	case hidden != verdict{}:
		e.verdict = hidden
	default:
		e.verdict = plane
	}
	e.phase = phase(e, hidden, node)
	e.conditions = conditions(e, hidden, node, f.status.IsWorkerNode)
	return e
}

// unseen says why the cluster is not seen from here right now; zero if it is.
func unseen(f facts) verdict {
	switch {
	case !f.heard:
		return verdict{reasonAPIUnknown, "Nothing is known about the API server yet: the agent has just started."}
	case !f.api.Answers() && f.api.NoKubeconfig:
		return verdict{reasonNoKubeconfig, "There is no kubeconfig yet: k3s on this node has not finished starting."}
	case !f.api.Answers():
		return verdict{reasonAPISilent, "The API server has not answered since " + f.api.SilentSince.UTC().Format(time.RFC3339) + "."}
	case !f.api.Synced:
		return verdict{reasonTablesIncomplete, "The API server answers, and its lists are still being read."}
	}
	return verdict{}
}

func noNode(f facts) verdict {
	name := f.info.NodeName()
	if name == "" {
		return verdict{reasonDeviceUnknown, "The UUID of this device is not known yet: zedagent has not published it."}
	}
	if _, taken := f.nodes[name]; taken {
		return verdict{reasonNodeUnknown, fmt.Sprintf("The Node %s belongs to another device.", name)}
	}
	return verdict{reasonNodeUnknown, fmt.Sprintf("There is no Node %s in the cluster yet.", name)}
}

func controlPlane(n types.Node) (verdict, types.ConditionStatus) {
	switch {
	case !n.HasAPIServer():
		return verdict{reasonNoControlPlane, "The Node has no control-plane label yet."}, types.ConditionFalse
	case !n.Etcd:
		return verdict{reasonNoEtcd, "The Node has no etcd label yet."}, types.ConditionFalse
	case n.EtcdVoter == types.ConditionFalse:
		return verdict{reasonEtcdLearner, "The etcd member of this node does not vote yet."}, types.ConditionFalse
	}
	return verdict{reasonReady, "The control plane runs on this node."}, types.ConditionTrue
}

// phase is how far the cluster is on this node: a worker is all it will be once
// its Node is ready. hidden says why the own Node is not seen, zero if it is.
func phase(e explanation, hidden verdict, node types.Node) string {
	if e.ready {
		return phaseProvisioned
	}
	switch hidden.reason {
	case reasonAPIUnknown, reasonAPISilent, reasonTablesIncomplete, reasonDeviceUnknown:
		return phaseUnknown
	case "":
		if e.reason == reasonWorker && node.Ready == types.ConditionTrue {
			return phaseProvisioned
		}
	}
	return phaseProvisioning
}

// conditions are the three, in the order in which people read them. What
// cannot be seen now is Unknown, whatever was seen before.
func conditions(e explanation, hidden verdict, node types.Node, worker bool) []condition {
	cluster := e.as(clusterReady, types.ConditionFalse)
	switch {
	case e.ready:
		cluster.Status = types.ConditionTrue
	case e.phase == phaseUnknown && e.reason != reasonWorker: // a worker is no server, seen or not
		cluster.Status = types.ConditionUnknown
	}
	if hidden != (verdict{}) {
		return []condition{cluster, hidden.as(nodeReady, types.ConditionUnknown), hidden.as(controlPlaneReady, types.ConditionUnknown)}
	}
	plane, status := controlPlane(node)
	if worker && !e.ready && status == types.ConditionFalse {
		plane = verdict{reasonWorker, "This node is a worker and has no control plane."}
	}
	return []condition{cluster, readiness(node), plane.as(controlPlaneReady, status)}
}

// readiness is the Ready condition of the own Node.
func readiness(n types.Node) condition {
	v, status := verdict{reasonNodeUnknown, "The Node's kubelet does not report."}, types.ConditionUnknown
	switch n.Ready {
	case types.ConditionTrue:
		v, status = verdict{reasonReady, "The Node is ready."}, n.Ready
	case types.ConditionFalse:
		v, status = verdict{reasonNodeNotReady, "The kubelet of the Node reports that it is not ready."}, n.Ready
	}
	c := v.as(nodeReady, status)
	c.LastTransitionTime = n.ReadySince
	return c
}

// judge adds what is to be said to a joiner of the cluster asked: that it is
// at the wrong door comes before everything else. The nil UUID asks nothing.
func (e explanation) judge(asked uuid.UUID) explanation {
	if asked == uuid.Nil || e.own == uuid.Nil || asked == e.own {
		return e
	}
	e.ready = false
	e.verdict = verdict{reasonOtherCluster, fmt.Sprintf("This node is in another cluster than %s: waiting here will not help.", asked)}
	return e
}
