package statusserver

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// The reasons, docs/wire.md, "Status server".
const (
	reasonReady          = "Ready"
	reasonOtherCluster   = "OtherCluster"
	reasonNoCluster      = "NoCluster"
	reasonWorker         = "Worker"
	reasonNoKubeconfig   = "NoKubeconfig"
	reasonAPIUnknown     = "APIUnknown"
	reasonAPISilent      = "APISilent"
	reasonTablesNotWhole = "TablesNotWhole"
	reasonDeviceUnknown  = "DeviceUnknown"
	reasonNodeUnknown    = "NodeUnknown"
	reasonNoControlPlane = "NoControlPlane"
	reasonNoEtcd         = "NoEtcd"
	reasonEtcdLearner    = "EtcdLearner"
	reasonNodeNotReady   = "NodeNotReady"
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

// verdict is a reason in a word and a sentence.
type verdict struct {
	reason string
	why    string
}

// condition is one statement about the cluster.
type condition struct {
	kind   string
	status types.ConditionStatus
	verdict
	since time.Time // when it became so, as the cluster tells; zero where it does not
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
	blind, unseen := unseen(f)
	node, known := types.OwnNode(f.nodes, f.info)
	if known {
		e.node, e.version = node.Name, node.KubeletVersion
	}
	plane, _ := controlPlane(node)
	switch {
	case e.ready:
		e.verdict = verdict{reasonReady, "This node is a working server of its cluster."}
	case e.own == uuid.Nil:
		e.verdict = verdict{reasonNoCluster, "This node belongs to no cluster."}
	case f.status.IsWorkerNode:
		e.verdict = verdict{reasonWorker, "This node is a worker: nobody can join through it, only through a server."}
	case blind:
		e.verdict = unseen
	case !known:
		e.verdict = noNode(f)
	default:
		e.verdict = plane
	}
	e.phase = phase(f, e)
	e.conditions = conditions(f, e, node, known)
	return e
}

// unseen reports that the cluster is not seen from here right now, and why.
func unseen(f facts) (bool, verdict) {
	switch {
	case !f.heard:
		return true, verdict{reasonAPIUnknown, "Nothing is known of the API server yet: the agent has just started."}
	case !f.api.Answers() && f.api.NoKubeconfig:
		return true, verdict{reasonNoKubeconfig, "There is no kubeconfig yet: k3s on this node has not finished its start."}
	case !f.api.Answers():
		return true, verdict{reasonAPISilent, "The API server has not answered since " + f.api.SilentSince.UTC().Format(time.RFC3339) + "."}
	case !f.api.Synced:
		return true, verdict{reasonTablesNotWhole, "The API server answers, and its lists are still being read."}
	}
	return false, verdict{}
}

// noNode says why there is no Node of ours.
func noNode(f facts) verdict {
	name := f.info.NodeName()
	if name == "" {
		return verdict{reasonDeviceUnknown, "It is not known yet which device this is: zedagent has not said."}
	}
	if _, taken := f.nodes[name]; taken {
		return verdict{reasonNodeUnknown, fmt.Sprintf("The Node %s belongs to another device.", name)}
	}
	return verdict{reasonNodeUnknown, fmt.Sprintf("There is no Node %s in the cluster yet.", name)}
}

// controlPlane says what the own Node lacks to be a server.
func controlPlane(n types.Node) (verdict, types.ConditionStatus) {
	switch {
	case !n.ControlPlane && !n.Master:
		return verdict{reasonNoControlPlane, "The Node has no control-plane label yet."}, types.ConditionFalse
	case !n.Etcd:
		return verdict{reasonNoEtcd, "The Node has no etcd label yet."}, types.ConditionFalse
	case n.EtcdVoter == types.ConditionFalse:
		return verdict{reasonEtcdLearner, "The etcd member of this node does not vote yet."}, types.ConditionFalse
	}
	return verdict{reasonReady, "The control plane runs on this node."}, types.ConditionTrue
}

// phase is how far the cluster is on this node: a worker is all it will be once
// its Node is ready.
func phase(f facts, e explanation) string {
	blind, why := unseen(f)
	node, known := types.OwnNode(f.nodes, f.info)
	switch {
	case e.ready:
		return phaseProvisioned
	case blind && why.reason != reasonNoKubeconfig, !blind && !known && e.node == "":
		return phaseUnknown
	case e.reason == reasonWorker && !blind && node.Ready == types.ConditionTrue:
		return phaseProvisioned
	}
	return phaseProvisioning
}

// conditions are the three, in the order in which people read them. What
// cannot be seen now is Unknown, whatever was seen before.
func conditions(f facts, e explanation, node types.Node, known bool) []condition {
	cluster := condition{kind: clusterReady, status: types.ConditionFalse, verdict: e.verdict}
	switch {
	case e.ready:
		cluster.status = types.ConditionTrue
	case e.phase == phaseUnknown && e.reason != reasonWorker:
		cluster.status = types.ConditionUnknown
	}
	blind, v := unseen(f)
	if !blind && !known {
		blind, v = true, noNode(f)
	}
	if blind {
		return []condition{
			cluster,
			{kind: nodeReady, status: types.ConditionUnknown, verdict: v},
			{kind: controlPlaneReady, status: types.ConditionUnknown, verdict: v},
		}
	}
	plane := condition{kind: controlPlaneReady}
	plane.verdict, plane.status = controlPlane(node)
	if f.status.IsWorkerNode && plane.status == types.ConditionFalse {
		plane.verdict = verdict{reasonWorker, "This node is a worker and has no control plane."}
	}
	return []condition{cluster, readiness(node), plane}
}

// readiness is the Ready condition of the own Node.
func readiness(n types.Node) condition {
	c := condition{kind: nodeReady, status: n.Ready, since: n.ReadySince, verdict: verdict{reasonReady, "The Node is ready."}}
	switch n.Ready {
	case types.ConditionTrue:
	case types.ConditionFalse:
		c.verdict = verdict{reasonNodeNotReady, "The kubelet says that the Node is not ready."}
	default:
		c.status = types.ConditionUnknown
		c.verdict = verdict{reasonNodeUnknown, "The Node's kubelet does not report."}
	}
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
