// Package leader lets this node take part in the election of the one that
// reports for the cluster, while the controller's word reaches it.
//
//	reads:  ZedAgentStatus, EdgeNodeInfo, nodes, the API's health, Leases
//	writes: KubeLeaderElectInfo
//	acts:   runs for the Lease of docs/wire.md, "Lease"
package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	period     = 30 * time.Second
	minBackoff = time.Second
	maxBackoff = time.Minute
)

var errEnded = errors.New("the election has ended")

// Kube is what the component needs of the cluster.
type Kube interface {
	// Elect runs for the Lease until ctx is done, which gives the Lease back, or
	// until the election ends otherwise. It calls changed whenever the leader or
	// our part in it changes, never twice at a time, and gives the Lease back
	// only after it has returned.
	Elect(ctx context.Context, identity string, changed func(leader string, leads bool)) error
}

// Component is the election. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Agent pubsub.Reader[types.ZedAgentStatus]
	Info  pubsub.Reader[types.EdgeNodeInfo]
	Nodes pubsub.Reader[types.Node]
	API   pubsub.Reader[types.APIStatus]
	Kube  Kube

	Leases    pubsub.Reader[types.Lease] // no bell: the holder renews every few seconds
	LeaseName string                     // of the Lease that the election is for

	Leader pubsub.Writer[types.KubeLeaderElectInfo]

	term     term
	news     pubsub.Table[news] // what the running election says, by its number
	election sync.WaitGroup
	backoff  time.Duration
	next     time.Time // no new election before this
	lastErr  error     // how the last election ended; nil once a leader is known
}

// term is the one election that runs.
type term struct {
	n        int
	running  bool
	identity string
	cancel   context.CancelFunc
	dropped  bool          // cancelled by us
	heard    chan struct{} // of the last news
}

// news is the last word of an election.
type news struct {
	n      int
	leader string
	leads  bool
	over   bool
	err    error
	heard  chan struct{} // takes one when nobody reads any more that this node leads; nil: nobody waits
}

// Run steps until ctx is done and returns after nobody reads any more that this
// node takes part in the election, and it has ended.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Agent, c.Info, c.Nodes, c.API, &c.news)
	// Before the Lease is given back, or another node might lead already.
	was, _ := c.Leader.Get(types.Global)
	if out := (types.KubeLeaderElectInfo{LatestChange: was.LatestChange}); was != out {
		out.LatestChange = time.Now()
		if err := c.tell(was, out); err != nil {
			c.Log.WithError(err).Error("could not publish that this node left the election")
		}
	}
	c.drop()
	c.election.Wait()
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	f := c.look()
	return c.apply(ctx, f, decide(f))
}

// look copies what is true now, an election's end included.
func (c *Component) look() facts {
	now := time.Now()
	lastPublished, _ := c.news.Get(types.Global)
	if lastPublished.n != c.term.n {
		lastPublished = news{} // of an election before this one
	}
	if lastPublished.leader != "" {
		c.lastErr, c.backoff = nil, 0
	}
	if c.term.running && lastPublished.over {
		c.ended(now, lastPublished.err)
	}
	c.term.heard = lastPublished.heard
	agent, _ := c.Agent.Get(types.ZedAgentKey)
	info, _ := c.Info.Get(types.Global)
	api, known := c.API.Get(types.Global)
	f := facts{
		now:      now,
		eligible: agent.ConfigGetStatus == types.ConfigGetSuccess || agent.ConfigGetStatus == types.ConfigGetReadSaved,
		identity: identity(c.Nodes.All(), info),
		answers:  known && api.Answers(),
		running:  c.term.running, runsAs: c.term.identity, dropped: c.term.dropped,
		next: c.next, leader: lastPublished.leader, leads: lastPublished.leads,
	}
	if l, ok := c.Leases.Get(c.LeaseName); ok && l.Holder == f.leader {
		f.since = l.Acquired
	}
	f.published, _ = c.Leader.Get(types.Global)
	return f
}

// identity is the own node's name, "" while it is not known. A name that
// belongs to another device is none: two nodes under one name would both lead.
func identity(nodes map[string]types.Node, info types.EdgeNodeInfo) string {
	if n, ok := types.OwnNode(nodes, info); ok {
		return n.Name
	}
	if _, taken := nodes[info.NodeName()]; taken {
		return ""
	}
	return info.NodeName()
}

// ended takes note that the election is over; one that was not meant to end is
// tried again later and later.
func (c *Component) ended(now time.Time, err error) {
	dropped := c.term.dropped
	c.term = term{n: c.term.n}
	c.next = now
	if dropped {
		c.lastErr = nil
		return
	}
	if err == nil {
		err = errEnded
	}
	c.lastErr = fmt.Errorf("elect leader: %w", err)
	c.backoff = min(max(2*c.backoff, minBackoff), maxBackoff)
	c.next = now.Add(c.backoff)
}

// apply publishes how it stands and starts or ends the election. What is no
// longer true is withdrawn before the Lease is given back.
func (c *Component) apply(ctx context.Context, f facts, a action) error {
	errs := errors.Join(c.lastErr, c.publish(f, a))
	switch {
	case a.start:
		c.start(ctx, f.identity)
	case a.stop && !c.leads():
		c.drop()
	}
	if a.again <= 0 {
		return errs
	}
	return errors.Join(errs, loop.After(a.again))
}

// publish says how it stands, and tells an election that waits for it.
func (c *Component) publish(f facts, a action) error {
	var err error
	if a.info != f.published {
		err = c.tell(f.published, a.info)
	}
	if !c.leads() {
		select {
		case c.term.heard <- struct{}{}:
		default:
		}
	}
	return err
}

// leads reports whether others read that this node leads.
func (c *Component) leads() bool {
	published, _ := c.Leader.Get(types.Global)
	return published.IsStatsLeader
}

// tell publishes how it stands. That this node no longer leads is told by a withdrawal where it cannot be
// published: that takes no space on a full disk, and nobody takes a node for the leader that says nothing.
func (c *Component) tell(was, now types.KubeLeaderElectInfo) error {
	err := c.Leader.Publish(types.Global, now)
	if err != nil && was.IsStatsLeader && !now.IsStatsLeader {
		err = errors.Join(err, c.Leader.Unpublish(types.Global))
	}
	if err != nil {
		return fmt.Errorf("publish KubeLeaderElectInfo: %w", err)
	}
	if now.LeaderIdentity != was.LeaderIdentity || now.IsStatsLeader != was.IsStatsLeader {
		c.Log.WithFields(logrus.Fields{"leader": now.LeaderIdentity, "leads": now.IsStatsLeader}).Info("the leader has changed")
	}
	return nil
}

// start runs for the Lease beside the steps, under a context that outlives this one.
func (c *Component) start(ctx context.Context, as string) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n := c.term.n + 1
	c.term = term{n: n, running: true, identity: as, cancel: cancel}
	c.Log.WithField("node", as).Info("election started")
	c.election.Go(func() {
		defer cancel()
		led := false
		err := c.Kube.Elect(ctx, as, func(leader string, leads bool) {
			word := news{n: n, leader: leader, leads: leads}
			if led && !leads {
				word.heard = make(chan struct{}, 1)
			}
			led = leads
			_ = c.news.Publish(types.Global, word)
			if word.heard != nil { // the Lease may be given back as soon as this returns
				select {
				case <-word.heard:
				case <-ctx.Done(): // it was withdrawn before
				}
			}
		})
		_ = c.news.Publish(types.Global, news{n: n, over: true, err: err})
	})
}

// drop ends the election; the Lease is given back.
func (c *Component) drop() {
	if c.term.running && !c.term.dropped {
		c.term.dropped = true
		c.term.cancel()
		c.Log.Info("election left")
	}
}
