// Package passthrough gives Ethernet ports to native containers: it keeps the
// NetworkAttachmentDefinition of each port that an application of this node
// names, and the link of the port up (docs/wire.md, "Network attachments").
//
//	reads:  AppInstanceConfig, EdgeNodeInfo, ZedAgentStatus, nodes, the API's health
//	writes: nothing
//	acts:   makes, shares and removes network attachments; sets links up
//
// It needs no cluster configuration: a single node is a cluster of one.
package passthrough

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// period is how often the links are looked at, whatever the kernel tells.
	period = time.Minute
	// roundTimeout bounds a look at the attachments with all that follows.
	roundTimeout = time.Minute
	// followFor is how long one subscription to the links lasts.
	followFor = 24 * time.Hour
)

// Kube is what the component does to the cluster. Every verb ends when its
// context does.
type Kube interface {
	// NADs lists the attachments of ports that zedkube made. Its error wraps
	// types.ErrNotInstalled where the cluster knows no such objects.
	NADs(ctx context.Context) ([]types.NAD, error)
	// EnsureNAD makes the attachment, or puts it right, and adds the owner.
	EnsureNAD(ctx context.Context, ifname string, owner types.Node) error
	// ReleaseNAD takes these owners off the attachment: names of nodes with the
	// UIDs they are noted under, "" for any. Without owners it is removed, unless
	// it is to be kept.
	ReleaseNAD(ctx context.Context, ifname string, owners map[string]string, keep bool) error
	// FreshNodes lists the nodes.
	FreshNodes(ctx context.Context) ([]types.Node, error)
}

// Links is what the component does to the network interfaces of the host.
type Links interface {
	// Raise sets the link up.
	Raise(name string) (Raised, error)
	// Follow calls news when it begins to follow, and whenever a link has gone or
	// is down. It returns when ctx is done, or with an error when it can follow
	// no longer.
	Follow(ctx context.Context, news func()) error
}

// Component is the passthrough. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Configs pubsub.Source[types.AppInstanceConfig]
	Info    pubsub.Reader[types.EdgeNodeInfo]
	Agent   pubsub.Reader[types.ZedAgentStatus]
	Nodes   pubsub.Reader[types.Node]
	API     pubsub.Reader[types.APIStatus]

	Kube       Kube
	Links      Links
	Operations types.OperationLog

	memory
	backoff   time.Duration
	calledOff bool // so is the round under way
	lastErr   error
	round     loop.Call[error]

	word              types.ConfigWord
	problems          map[adapter]string // told
	following         loop.Call[error]
	news              pubsub.Bells // of links, which come from outside the loop
	notificationsLost time.Time    // nothing is followed before
}

// Run steps until ctx is done and returns after the calls under way have ended.
func (c *Component) Run(ctx context.Context) {
	defer c.following.End()
	defer c.round.End()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step,
		c.Configs, c.Info, c.Agent, c.Nodes, c.API, &c.round, &c.following, &c.news)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	now := time.Now()
	c.collect(now)
	f := c.look(now)
	return c.apply(ctx, f, decide(f))
}

func (c *Component) look(now time.Time) facts {
	f := facts{now: now, busy: c.round.Busy(), memory: c.memory}
	// Whether they are known is asked first: they can only be more since.
	f.known = c.Configs.Synced()
	f.configs = c.Configs.All()
	agent, _ := c.Agent.Get(types.ZedAgentKey)
	f.wait = c.word.Hear(agent, len(f.configs) > 0, now)
	api, ok := c.API.Get(types.Global)
	f.seen = ok && api.Answers() && api.Synced
	info, _ := c.Info.Get(types.Global)
	f.nodes = c.Nodes.All()
	f.own, f.joined = types.OwnNode(f.nodes, info)
	return f
}

func (c *Component) apply(ctx context.Context, f facts, a action) error {
	if !f.known {
		return nil
	}
	c.tell(a.problems)
	err := c.raise(ctx, f.now, a)
	switch {
	case len(a.ports) == 0:
		c.following.Cancel()
	case !f.now.Before(c.notificationsLost):
		c.following.Begin(ctx, followFor, func(ctx context.Context) error { return c.Links.Follow(ctx, c.news.Ring) })
	}
	switch {
	case !f.seen: // when it is back the attachments are looked at again
		c.done, c.tried, c.backoff, c.lastErr = task{}, task{}, 0, nil
	case a.cancel:
		c.calledOff = true
		c.round.Cancel()
	case a.round != nil:
		c.running, c.calledOff = *a.round, false
		c.round.Begin(ctx, roundTimeout, func(ctx context.Context) error { return c.attach(ctx, *a.round) })
	}
	err = errors.Join(err, c.lastErr)
	if a.again > 0 {
		return errors.Join(err, loop.After(a.again))
	}
	return err
}
