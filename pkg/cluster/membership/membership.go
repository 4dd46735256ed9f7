// Package membership makes of EdgeNodeClusterConfig over time whether this
// device belongs to a cluster, and decides when it leaves one: zedagent says
// the same of a device that was removed and of a configuration that does not
// parse (docs/wire.md, "ClusterMembership").
//
//	reads:  EdgeNodeClusterConfig, EdgeNodeClusterStatus, ZedAgentStatus, ConfigItemValueMap, EdgeNodeInfo,
//	        ClusterLeaveRequest, WithoutCluster, NodeDrainProgress, NodeDrainJournal, nodes, the API's health
//	writes: ClusterMembership
//	acts:   stamps the own Node; removes the ClusterLeaveRequest once the node has left
package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is in case an event was missed; what is due earlier is asked for.
const period = 10 * time.Second

// Kube is what the component does to the cluster. The verb ends when its
// context does, and makes no Node that is not there.
type Kube interface {
	// Stamp replaces the stamp on the node.
	Stamp(ctx context.Context, node string, stamp types.AgentStamp) error
}

// Requests is where commands leave what an operator asks for.
type Requests interface {
	// Fulfilled removes the request in a topic.
	Fulfilled(topic string) error
}

// Component is the membership. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Config   pubsub.Source[types.EdgeNodeClusterConfig]
	Status   pubsub.Reader[types.EdgeNodeClusterStatus]
	Agent    pubsub.Reader[types.ZedAgentStatus]
	Settings pubsub.Reader[types.ConfigItemValueMap]
	Info     pubsub.Reader[types.EdgeNodeInfo]
	Nodes    pubsub.Reader[types.Node]
	API      pubsub.Reader[types.APIStatus]
	Leave    pubsub.Source[types.ClusterLeaveRequest]
	Without  pubsub.Reader[types.WithoutCluster]
	Progress pubsub.Reader[types.NodeDrainProgress]
	Journal  pubsub.Reader[types.NodeDrainJournal]
	Kube     Kube

	Requests   Requests
	Operations types.OperationLog

	Version string               // of this agent
	Hour    time.Duration        // how long peers may say nothing before this server node leaves; one hour
	Uptime  func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Membership pubsub.Writer[types.ClusterMembership]

	// What this process remembers. Losing it makes a leave later, never sooner:
	// every count starts again.
	mem      memory
	running  *call // the stamp under way, nil for none
	stamping loop.Call[error]
	lastErr  error // of the last stamp
}

// Run steps until ctx is done and returns after the stamp under way has ended.
func (c *Component) Run(ctx context.Context) {
	defer c.stamping.End()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step,
		c.Config, c.Status, c.Agent, c.Settings, c.Info, c.Nodes, c.API, c.Leave, c.Without, c.Progress, c.Journal, &c.stamping)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	c.collect()
	f := c.look()
	return c.apply(ctx, f, decide(f))
}

// apply publishes first: a withdrawn stamp carries the time that is published,
// so one without the other would be withdrawn again and again.
func (c *Component) apply(ctx context.Context, f facts, a action) error {
	if a.publish != nil {
		c.recordDecision(ctx, f.was, *a.publish)
		if err := c.Membership.Publish(types.Global, *a.publish); err != nil {
			return fmt.Errorf("publish cluster membership: %w", err)
		}
		c.logChange(f.was, *a.publish)
	}
	if a.stamp != nil {
		c.begin(ctx, f, *a.stamp)
	}
	if a.fulfilled {
		if err := c.Requests.Fulfilled("ClusterLeaveRequest"); err != nil {
			return fmt.Errorf("remove the request to leave, which has had its effect: %w", err)
		}
	}
	if !f.answers || !f.busy && a.stamp == nil {
		c.lastErr = nil // the silence is told by others, or nothing is left to stamp
	}
	return errors.Join(c.lastErr, loop.After(a.again))
}

// recordDecision puts a decided leave without the cluster on record before
// anything is done about it, and what takes it back.
func (c *Component) recordDecision(ctx context.Context, was, is types.ClusterMembership) {
	op := ""
	switch {
	case is.Without != nil && was.Without == nil:
		op = "leave without the cluster"
	case is.Without == nil && was.Without != nil:
		op = "end the leave without the cluster"
	default:
		return
	}
	info, _ := c.Info.Get(types.Global)
	types.Did(types.Because(ctx, "OPERATOR", is.Reason), c.Operations, op, "node/"+info.NodeName(), nil)
}

// logChange logs a new state; its reason alone is to be read in the topic.
func (c *Component) logChange(was, is types.ClusterMembership) {
	if was.State == is.State {
		return
	}
	log := c.Log.WithFields(logrus.Fields{"from": string(was.State), "to": string(is.State)})
	if is.State == types.MembershipMember || is.State == types.MembershipNever {
		log.Info("cluster membership: " + is.Reason)
	} else {
		log.Warn("cluster membership: " + is.Reason)
	}
}
