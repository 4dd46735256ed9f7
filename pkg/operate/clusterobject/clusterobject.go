// Package clusterobject shows this node's cluster as one object in the form of Kubernetes,
// with a phase and conditions, on a single node and with k3s dead as well (docs/wire.md,
// "ClusterObject"), and serves it on the socket (docs/wire.md, "Cluster API").
//
//	reads:  ClusterMembership, EdgeNodeClusterStatus, EdgeNodeInfo, KubeInitStatus, KubeClusterUpdateStatus, K3sVersionStatus, K3sOverrideStatus,
//	        KubeLifecycle, KubeNodeConditions, ClusterLeaveRequest, NodeDrainProgress, NodeDrainJournal, ClusterPeers, WithoutCluster, WorkloadsStatus, nodes, app pods,
//	        the Deployment of CDI
//	writes: ClusterObject
//	acts:   opens a TCP connection to the server to join through, and closes it
package clusterobject

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	period   = time.Minute      // in case an event was missed
	dialFor  = 3 * time.Second  // a server of the same network answers in milliseconds
	dialEach = 10 * time.Second // how often a node that has not joined tries the server: as often as the kube container does
)

// Component is the object. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Membership pubsub.Reader[types.ClusterMembership]
	Cluster    pubsub.Reader[types.EdgeNodeClusterStatus]
	Info       pubsub.Reader[types.EdgeNodeInfo]
	KubeInit   pubsub.Reader[types.KubeInitStatus]
	Update     pubsub.Reader[types.KubeClusterUpdateStatus]
	K3s        pubsub.Reader[types.K3sVersionStatus]
	Lifecycle  pubsub.Reader[types.KubeLifecycle]
	Override   pubsub.Reader[types.K3sOverrideStatus]
	Conditions pubsub.Reader[types.KubeNodeConditions]
	Leave      pubsub.Reader[types.ClusterLeaveRequest]
	Progress   pubsub.Reader[types.NodeDrainProgress]
	Journal    pubsub.Reader[types.NodeDrainJournal]
	Peers      pubsub.Reader[types.ClusterPeers]
	Without    pubsub.Reader[types.WithoutCluster]
	Workloads  pubsub.Reader[types.WorkloadsStatus]
	Nodes      pubsub.Reader[types.Node]
	AppPods    pubsub.Reader[types.Pod]
	API        pubsub.Reader[types.APIStatus]
	CDI        pubsub.Reader[types.DeployedVersion]

	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Version string // of zedkube

	Object pubsub.Writer[types.ClusterObject]

	pods     pubsub.Pick[types.Pod] // of applications on this node
	dialing  loop.Call[dialled]
	dialled  dialled
	dialedAt time.Time
}

// dialled is what came of a connection to the server to join through.
type dialled struct {
	address string // "" for none yet
	err     error
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	defer c.dialing.Cancel()
	loop.Run(ctx, c.Log, c.Pulse, period, loop.Throttled(c.Step, loop.Sparing),
		c.Membership, c.Cluster, c.Info, c.KubeInit, c.Update, c.K3s, c.Lifecycle, c.Override, c.Conditions, c.Leave,
		c.Progress, c.Journal, c.Peers, c.Without, c.Workloads, c.Nodes, &c.pods, c.API, c.CDI, &c.dialing)
}

// Step looks, decides and publishes once.
func (c *Component) Step(ctx context.Context) error {
	f := c.look()
	o := decide(f)
	if was := f.published.Status.Phase; was != o.Status.Phase {
		c.Log.WithFields(logrus.Fields{"phase": o.Status.Phase, "was": was}).Info(o.Status.Description)
	}
	if err := c.Object.Publish(types.Global, o); err != nil {
		return fmt.Errorf("publish ClusterObject: %w", err)
	}
	return loop.Again(c.tryServer(ctx, f, o))
}

// tryServer connects to the server to join through, beside the steps, until this node
// has joined. It returns when to do so next, 0 for not by itself.
func (c *Component) tryServer(ctx context.Context, f facts, o types.ClusterObject) time.Duration {
	address := f.joinServer()
	if address == "" || o.Status.Of(types.ClusterJoined).Status == types.ConditionTrue {
		return 0
	}
	if wait := dialEach - f.now.Sub(c.dialedAt); wait > 0 && wait <= dialEach && c.dialled.address == address {
		return wait
	}
	if c.dialing.Begin(ctx, dialFor, func(ctx context.Context) dialled {
		conn, err := c.Dial(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return dialled{address, err}
	}) {
		c.dialedAt = f.now
	}
	return dialEach
}

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{now: time.Now().UTC().Round(0), nodes: c.Nodes.All(), version: c.Version}
	f.membership, f.known = c.Membership.Get(types.Global)
	f.cluster, _ = c.Cluster.Get(types.Global)
	f.info, _ = c.Info.Get(types.Global)
	f.kubeInit, f.hasKubeInit = c.KubeInit.Get(types.Global)
	f.update, _ = c.Update.Get(types.Global)
	f.k3s, _ = c.K3s.Get(types.Global)
	f.lifecycle, _ = c.Lifecycle.Get(types.Global)
	f.override, _ = c.Override.Get(types.Global)
	f.conditions, _ = c.Conditions.Get(types.Global)
	request, asked := c.Leave.Get(types.Global)
	f.asked = asked && !request.Undo
	f.progress, _ = c.Progress.Get(types.Global)
	f.journal, _ = c.Journal.Get(types.Global)
	f.peers, _ = c.Peers.Get(types.Global)
	f.without, _ = c.Without.Get(types.Global)
	f.workloads, _ = c.Workloads.Get(types.Global)
	f.api, f.watched = c.API.Get(types.Global)
	cdi, _ := c.CDI.Get(types.CDIDeployment)
	f.cdi = cdi.Version
	f.own, f.seen = types.OwnNode(f.nodes, f.info)
	f.apps = map[string]bool{}
	for _, p := range c.pods.Of(c.AppPods, f.own.Name, func(p types.Pod) bool { return p.NodeName == f.own.Name && p.App != "" && p.Phase == types.PodRunning }) {
		f.apps[p.App] = true
	}
	f.published, _ = c.Object.Get(types.Global)
	if d, ok := c.dialing.Take(); ok {
		c.dialled = d
	}
	f.dialled = c.dialled
	return f
}

// joinServer is where the status server of the server to join through answers, "" for
// nowhere to be asked.
func (f facts) joinServer() string {
	if ip := f.cluster.JoinServerIP; f.membership.Belongs() && !f.cluster.BootstrapNode && len(ip) > 0 && !ip.IsUnspecified() {
		return net.JoinHostPort(ip.String(), strconv.Itoa(types.PortStatus))
	}
	return ""
}
