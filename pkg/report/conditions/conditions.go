// Package conditions says how this node stands in its cluster, and since when:
// certificates that end, versions, labels and cordons that someone else changed,
// members, clocks, the leader and its report (docs/wire.md,
// "KubeNodeConditions").
//
//	reads:  credentials, clocks, nodes, own pods, how well tables are seen, EdgeNodeInfo, ClusterMembership, K3sVersionStatus, K3sCertificates, KubeLeaderElectInfo, KubeReportHealth
//	writes: KubeNodeConditions, ClusterNodeStatus
package conditions

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is in case an event was missed; what is due earlier is asked for.
const period = time.Minute

// Component is the node's conditions. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Credentials pubsub.Reader[types.Credentials]
	Clocks      pubsub.Reader[types.NodeClock]
	Nodes       pubsub.Reader[types.Node]
	NodePods    pubsub.Reader[types.Pod]
	API         pubsub.Reader[types.APIStatus]
	Tables      pubsub.Reader[types.TableStatus]
	Info        pubsub.Reader[types.EdgeNodeInfo]
	Membership  pubsub.Reader[types.ClusterMembership]
	K3s         pubsub.Reader[types.K3sVersionStatus]
	K3sCerts    pubsub.Reader[types.K3sCertificates]
	Leader      pubsub.Reader[types.KubeLeaderElectInfo]
	Health      pubsub.Reader[types.KubeReportHealth]

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Conditions pubsub.Writer[types.KubeNodeConditions]
	Node       pubsub.Writer[types.ClusterNodeStatus]

	pending map[types.NodeStateType]pending // changes that have yet to prove that they last
}

// Run steps until ctx is done. Pods of this node change all the time, and their
// versions can wait for the period.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, loop.Throttled(c.Step, loop.Sparing),
		c.Credentials, c.Clocks, c.Nodes, c.API, c.Tables, c.Info, c.Membership, c.K3s, c.K3sCerts, c.Leader, c.Health)
}

// Step looks, decides and publishes once.
func (c *Component) Step(context.Context) error {
	f := c.look()
	return c.apply(f, decide(f))
}

func (c *Component) apply(f facts, a action) error {
	c.pending = a.pending
	for _, s := range a.conditions.Conditions {
		was, _ := f.published.Of(s.Type)
		log := c.Log.WithFields(logrus.Fields{"condition": s.Type, "status": s.Status, "reason": s.Reason})
		switch {
		case was.Status == s.Status:
		case s.Status == types.ConditionFalse:
			log.Warn(s.Message)
		case was.Status == types.ConditionFalse:
			log.Info(s.Message)
		}
	}
	if err := c.Conditions.Publish(types.Global, a.conditions); err != nil {
		return fmt.Errorf("publish KubeNodeConditions: %w", err)
	}
	if a.node.Status != types.KubeNodeUnknown {
		if err := c.Node.Publish(types.Global, a.node); err != nil {
			return fmt.Errorf("publish ClusterNodeStatus: %w", err)
		}
	}
	return loop.Again(a.again)
}

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{
		now: time.Now().UTC().Round(0), uptime: c.Uptime(),
		nodes: c.Nodes.All(), pods: c.NodePods.All(), clocks: c.Clocks.All(), pending: c.pending,
	}
	f.credentials, f.connected = c.Credentials.Get(types.Global)
	f.api, f.watched = c.API.Get(types.Global)
	nodes, _ := c.Tables.Get(types.TableNodes)
	f.complete = nodes.Complete
	f.info, f.named = c.Info.Get(types.Global)
	f.membership, _ = c.Membership.Get(types.Global)
	f.k3s, _ = c.K3s.Get(types.Global)
	f.certs, _ = c.K3sCerts.Get(types.Global)
	f.leader, f.elects = c.Leader.Get(types.Global)
	f.health, f.reported = c.Health.Get(types.Global)
	f.published, _ = c.Conditions.Get(types.Global)
	f.node, _ = c.Node.Get(types.Global)
	if f.named {
		f.own, f.seen = types.OwnNode(f.nodes, f.info)
	}
	return f
}
