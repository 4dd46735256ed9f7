// Package members keeps the cluster's members as the controller names them: it
// removes the Nodes of masters that no longer are, and keeps the tie-breaker
// cordoned and without workload (docs/wire.md, "ClusterMembers").
//
//	reads:  ClusterMembership, ZedAgentStatus, ConfigItemValueMap, EdgeNodeInfo, nodes, app pods,
//	        the drain lock, the API's health
//	writes: ClusterMembers, ClusterMembersJournal
//	acts:   under the repair lease: deletes stale Nodes, cordons and empties the tie-breaker
package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is in case an event was missed; what is due earlier is asked for.
const period = 30 * time.Second

// Kube is what the component does to the cluster. Every verb ends when its
// context does.
type Kube interface {
	// Repair calls do while this node, and no other, holds the repair lease.
	// Its error wraps types.ErrHeld where another node holds it.
	Repair(ctx context.Context, identity string, do func(ctx context.Context) error) error
	Remover
	// Cordon keeps new pods off the node, unless something does already.
	Cordon(ctx context.Context, node string, cordon types.Cordon) error
	// Evict asks for the eviction of the pod.
	Evict(ctx context.Context, pod types.Pod) error
}

// Component is the membership of others. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Membership pubsub.Reader[types.ClusterMembership]
	Agent      pubsub.Reader[types.ZedAgentStatus]
	Settings   pubsub.Reader[types.ConfigItemValueMap]
	Info       pubsub.Reader[types.EdgeNodeInfo]
	Nodes      pubsub.Reader[types.Node]
	AppPods    pubsub.Reader[types.Pod]
	Leases     pubsub.Reader[types.Lease] // of eve-kube-app, by name
	API        pubsub.Reader[types.APIStatus]
	Kube       Kube

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Members pubsub.Writer[types.ClusterMembers]
	Journal pubsub.Writer[types.ClusterMembersJournal]

	// What this process remembers. Losing it makes a removal later, never sooner.
	past      past          // of which the journal keeps a part
	backoff   time.Duration // the last pause
	pause     time.Duration // no repair before this uptime
	rest      time.Duration // no removal before this uptime
	tried     task          // the last repair that has ended
	reason    string        // why it did not go through
	running   *call         // the repair under way, nil for none
	repairing loop.Call[outcome]
	pods      pubsub.Pick[types.Pod] // those on the tie-breaker
	lastErr   error
}

// Run steps until ctx is done and returns after the repair under way has ended. The
// Leases do not wake it: one of them is renewed every few seconds, and a lock that was
// left behind can wait for a period.
func (c *Component) Run(ctx context.Context) {
	defer c.repairing.End()
	defer c.cancel()
	loop.Run(ctx, c.Log, c.Pulse, period, loop.Throttled(c.Step, loop.Sparing),
		c.Membership, c.Agent, c.Settings, c.Info, c.Nodes, &c.pods, c.API, &c.repairing)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	c.collect()
	f := c.look()
	return c.apply(ctx, f, decide(f))
}

func (c *Component) apply(ctx context.Context, f facts, a action) error {
	unwritten := c.remember(f.past, a.stale) // a full disk makes a removal later, after a restart
	switch {
	case a.publish == nil:
		if err := c.Members.Unpublish(types.Global); err != nil {
			return fmt.Errorf("withdraw cluster members: %w", err)
		}
	default:
		if err := c.Members.Publish(types.Global, *a.publish); err != nil {
			return fmt.Errorf("publish cluster members: %w", err)
		}
	}
	switch {
	case a.cancel:
		c.cancel()
	case a.task.kind != nothing:
		c.begin(ctx, f, a.task)
	case a.pauseAfterRemoval:
		c.backoff, c.tried, c.reason, c.lastErr = 0, task{}, "", nil
	}
	if !f.seen {
		c.lastErr = nil // the silence is told by others
	}
	if a.again <= 0 {
		return errors.Join(unwritten, c.lastErr)
	}
	return errors.Join(unwritten, c.lastErr, loop.After(a.again))
}

// lost reports that a Node that was stale at the last step is gone: whichever
// node removed it, all of them wait before the next one.
func (c *Component) lost(nodes []types.Node) bool {
	for uid := range c.past.stale {
		if !slices.ContainsFunc(nodes, func(n types.Node) bool { return n.UID == uid }) {
			return true
		}
	}
	return false
}

// remember keeps the past for the next step, and in the journal before anything
// is done: what was not written would be forgotten by a restart.
func (c *Component) remember(p past, stale []types.Node) error {
	for _, n := range stale {
		if _, known := c.past.stale[n.UID]; !known {
			c.Log.WithField("node", n.Name).Warn("the controller does not name this node as a master")
		}
	}
	c.past = p
	if p.cluster == uuid.Nil { // of no cluster, or of one that this device has left
		if err := c.Journal.Unpublish(types.Global); err != nil {
			return fmt.Errorf("remove the journal of cluster members: %w", err)
		}
		return nil
	}
	if err := c.Journal.Publish(types.Global, p.journal()); err != nil {
		return fmt.Errorf("publish the journal of cluster members: %w", err)
	}
	return nil
}

// look copies what is true now, a removal by whichever node included.
func (c *Component) look() facts {
	f := facts{
		now: time.Now().UTC().Round(0), uptime: c.Uptime(),
		pause: c.pause, tried: c.tried, reason: c.reason,
	}
	if c.running != nil {
		f.running = c.running.task
	}
	membership, _ := c.Membership.Get(types.Global)
	f.belongs, f.left = membership.Belongs() && membership.Config != nil, membership.State == types.MembershipLeft
	f.valid = membership.State == types.MembershipMember && membership.InvalidSince.IsZero()
	agent, _ := c.Agent.Get(types.ZedAgentKey)
	f.fetched = agent.ConfigGetStatus == types.ConfigGetSuccess
	info, _ := c.Info.Get(types.Global)
	if f.belongs {
		f.configured = configured{
			cluster: membership.Config.ClusterID.UUID, masters: membership.Config.MasterNodeIDs,
			tie: membership.Config.TieBreakerNodeID.UUID, device: info.DeviceID,
		}
	}
	api, ok := c.API.Get(types.Global)
	f.seen = ok && api.Answers() && api.Synced
	nodes := c.Nodes.All()
	own, known := types.OwnNode(nodes, info)
	f.own, f.known = own, known && info.DeviceID != uuid.Nil
	f.nodes = types.NodesByName(nodes)
	lock, _ := c.Leases.Get(types.DrainLockName)
	f.locked = c.running == nil && known && lock.Holder == own.Name && lock.Task == types.TaskMembers
	if f.seen && c.lost(f.nodes) {
		c.rest = f.uptime + restAfter
	}
	f.rest = c.rest
	settings, _ := c.Settings.Get(types.Global)
	f.interval = settings.Duration(types.SettingConfigInterval, time.Second, defaultInterval)
	f.past = c.remembered(f)
	f.pods = c.tiePods(f)
	return f
}

// remembered is the past with what f shows, from the journal at first. While the
// nodes are not all seen, those that are missing are not forgotten; whether the
// controller is reached is noted anyway.
func (c *Component) remembered(f facts) past {
	if c.past.stale == nil {
		j, _ := c.Journal.Get(types.Global)
		c.past = restored(j, f.uptime)
	}
	switch {
	case f.left:
		return past{uptime: f.uptime}
	case !f.belongs, !f.seen:
		return c.past.unseen(f)
	}
	return c.past.next(f)
}

// tiePods are the application pods on the tie-breaker, by key. Most clusters have
// none, and there may be thousands elsewhere.
func (c *Component) tiePods(f facts) []types.Pod {
	ties := map[string]bool{}
	for _, n := range f.nodes {
		if f.configured.isTie(n) {
			ties[n.Name] = true
		}
	}
	pods := c.pods.Of(c.AppPods, ties, func(p types.Pod) bool { return ties[p.NodeName] })
	return slices.SortedFunc(maps.Values(pods), func(a, b types.Pod) int { return cmp.Compare(a.Key(), b.Key()) })
}
