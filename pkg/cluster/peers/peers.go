// Package peers keeps what is needed once the cluster cannot be asked any more:
// where the other nodes may answer, what they last said of each other, and which
// volumes have a replica here. When an operator asks to leave without the
// cluster, it finds out by itself whether any of them answers (docs/wire.md,
// "WithoutCluster").
//
//	reads:  ClusterLeaveRequest, ClusterMembership, EdgeNodeClusterStatus,
//	        ZedAgentStatus, EdgeNodeInfo, nodes, the API's health
//	writes: ClusterPeers, WithoutCluster
//	acts:   asks for the volumes once an hour; connects to the other nodes and to
//	        the gateway while such a request stands
package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/span"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// period is in case an event was missed; what is due earlier is asked for.
	period = 30 * time.Second
	// storageTimeout is for a list of all volumes.
	storageTimeout = time.Minute
	// storageAgain is the pause after a list that could not be had.
	storageAgain = 10 * time.Minute
)

// Kube is what the component asks of the cluster.
type Kube interface {
	// Storage lists the volumes, and what is attached to node.
	Storage(ctx context.Context, node string) (types.Storage, error)
}

// Component keeps the peers. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Request    pubsub.Source[types.ClusterLeaveRequest]
	Membership pubsub.Reader[types.ClusterMembership]
	Status     pubsub.Reader[types.EdgeNodeClusterStatus]
	Agent      pubsub.Reader[types.ZedAgentStatus]
	Info       pubsub.Reader[types.EdgeNodeInfo]
	Nodes      pubsub.Reader[types.Node]
	API        pubsub.Reader[types.APIStatus]
	Kube       Kube

	// Dial connects from this device; it ends when its context does.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Proc   string               // where the kernel tells of routes and neighbours, /proc
	Sysfs  string               // where it tells of links, /sys
	BootID string               // of this boot
	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Peers   pubsub.Writer[types.ClusterPeers]
	Without pubsub.Writer[types.WithoutCluster]

	// What this process remembers. Losing it makes a proof later, never sooner.
	silent  span.Span
	looked  time.Duration // when the last look began
	volumes loop.Call[listed]
	asked   time.Duration // when the volumes may be asked for again
	look    loop.Call[Look]
	lastErr error // of the volumes
}

// listed is what came of a list of the volumes.
type listed struct {
	at      time.Time // when it was asked for, wall clock
	storage types.Storage
	err     error
}

// Run steps until ctx is done and returns after what is under way has ended.
func (c *Component) Run(ctx context.Context) {
	defer c.volumes.End()
	defer c.look.End()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step,
		c.Request, c.Membership, c.Status, c.Agent, c.Info, c.Nodes, c.API, &c.volumes, &c.look)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	f := c.facts()
	return c.apply(ctx, f, decide(f))
}

// facts copies what is true now.
func (c *Component) facts() facts {
	f := facts{now: time.Now().UTC().Round(0), uptime: c.Uptime(), bootID: c.BootID, silent: c.silent, looked: c.looked}
	f.membership, _ = c.Membership.Get(types.Global)
	f.was, _ = c.Without.Get(types.Global)
	f.kept, _ = c.Peers.Get(types.Global)
	if r, ok := c.Request.Get(types.Global); ok && !r.Undo && r.WithoutCluster != nil {
		f.request = &r
	}
	api, ok := c.API.Get(types.Global)
	f.answers, f.dead = ok && api.Answers(), ok && !api.Answers()
	f.synced = f.answers && api.Synced
	info, _ := c.Info.Get(types.Global)
	nodes := c.Nodes.All()
	if own, known := types.OwnNode(nodes, info); known {
		f.own = own
	}
	f.nodes = nodes
	f.mayList = f.uptime >= c.asked && !c.volumes.Busy()
	if got, ok := c.volumes.Take(); ok {
		c.lastErr = nil
		f.listed = &got
		if got.err != nil {
			c.lastErr = fmt.Errorf("list the volumes with a replica here: %w", got.err)
			c.asked = f.uptime + storageAgain
		}
	}
	agent, _ := c.Agent.Get(types.ZedAgentKey)
	f.controller = agent.ConfigGetStatus == types.ConfigGetSuccess
	if seen, ok := c.look.Take(); ok {
		f.seen = &seen
	}
	f.looking = c.look.Busy()
	return f
}

func (c *Component) apply(ctx context.Context, f facts, a action) error {
	c.silent = a.silent
	errs := []error{c.lastErr}
	if a.keep != nil && !reflect.DeepEqual(*a.keep, f.kept) {
		errs = append(errs, c.Peers.Publish(types.Global, *a.keep))
	}
	if a.drop {
		errs = append(errs, c.Peers.Unpublish(types.Global))
	}
	switch {
	case a.without == nil && f.was.State != "" && a.forget:
		errs = append(errs, c.Without.Unpublish(types.Global))
	case a.without != nil && *a.without != f.was:
		errs = append(errs, c.Without.Publish(types.Global, *a.without))
		if a.without.State != f.was.State || !a.without.RequestedAt.Equal(f.was.RequestedAt) {
			c.Log.WithField("state", string(a.without.State)).Warn("leave without the cluster: " + a.without.Reason)
		}
	}
	if a.list && !c.volumes.Busy() {
		c.asked = f.uptime + storageAgain
		at, node := f.now, f.own.Name
		c.volumes.Begin(ctx, storageTimeout, func(ctx context.Context) listed {
			s, err := c.Kube.Storage(ctx, node)
			return listed{at, s, err}
		})
	}
	if a.look && !c.look.Busy() {
		c.looked = f.uptime
		status, _ := c.Status.Get(types.Global)
		to := Places(f.kept.Peers)
		c.look.Begin(ctx, lookWithin(len(to)), func(ctx context.Context) Look {
			return LookFor(ctx, c.Dial, to, Link{Interface: status.ClusterInterface, Proc: c.Proc, Sysfs: c.Sysfs})
		})
	}
	return errors.Join(errors.Join(errs...), loop.After(a.again))
}

// peersOf are the other nodes, and where each may answer.
func peersOf(f facts) []types.ClusterPeer {
	var out []types.ClusterPeer
	for name, n := range f.nodes {
		if name == f.own.Name {
			continue
		}
		p := types.ClusterPeer{Name: name, UUID: n.UUID}
		for _, a := range []string{n.InternalIP, n.ExternalIP} {
			if a != "" && a != f.own.InternalIP && a != f.own.ExternalIP && !slices.Contains(p.Addresses, a) {
				p.Addresses = append(p.Addresses, a)
			}
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b types.ClusterPeer) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
