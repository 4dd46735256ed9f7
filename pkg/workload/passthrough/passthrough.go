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
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
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

	word              types.ConfigArrival
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
	f.wait = c.word.Observe(agent, len(f.configs) > 0, now)
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
	return errors.Join(err, c.lastErr, loop.Again(a.again))
}

// Raised is what came of setting a link up.
type Raised int

// What may come of it.
const (
	Absent Raised = iota // the host has no interface of that name
	WasUp                // nothing was to be done
	SetUp                // it was down
)

// Host is the network interfaces of the host. It implements Links.
type Host struct{}

// Raise implements Links.
func (Host) Raise(name string) (Raised, error) {
	link, err := netlink.LinkByName(name)
	var none netlink.LinkNotFoundError
	switch {
	case errors.As(err, &none):
		return Absent, nil
	case err != nil:
		return Absent, fmt.Errorf("find interface %s: %w", name, err)
	case link.Attrs().Flags&net.FlagUp != 0:
		return WasUp, nil
	}
	if err := failpoint.Do("set up", "link", func() error { return netlink.LinkSetUp(link) }); err != nil {
		return Absent, fmt.Errorf("set interface %s up: %w", name, err)
	}
	return SetUp, nil
}

// Follow implements Links. Of links that are up there is no news: some tell of
// themselves every second. The kernel sets down what it takes away.
func (Host) Follow(ctx context.Context, news func()) error {
	done := make(chan struct{})
	var failure error // written before updates is closed
	updates := make(chan netlink.LinkUpdate, 64)
	err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{
		ErrorCallback: func(err error) { failure = err },
	})
	if err != nil {
		close(done)
		return fmt.Errorf("subscribe to network interfaces: %w", err)
	}
	defer func() { // the subscription ends when nobody keeps it from telling
		close(done)
		for range updates {
		}
	}()
	news()
	for {
		select {
		case <-ctx.Done():
			return nil
		case update, ok := <-updates:
			if !ok {
				return fmt.Errorf("follow network interfaces: %w", failure)
			}
			if update.Flags&unix.IFF_UP == 0 {
				news()
			}
		}
	}
}

// How long after a round that failed the next one waits: longer each time, for
// Multus may not be installed for hours.
const (
	minPause = 2 * time.Second
	maxPause = time.Minute
)

// attach makes the attachments agree with the task, as far as it can.
func (c *Component) attach(ctx context.Context, t task) error {
	nads, err := c.Kube.NADs(ctx)
	if errors.Is(err, types.ErrNotInstalled) && len(t.ports) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	nodes := t.nodes
	if suspects(t, nads) {
		if nodes, err = c.present(ctx, t); err != nil {
			return err
		}
	}
	var errs []error
	for _, ch := range plan(t, nads, nodes) {
		errs = append(errs, c.change(ctx, t, ch))
	}
	return errors.Join(errs...)
}

// present is the names of the nodes that there are now: the table may be late,
// and without one of them its attachments would be taken from it.
func (c *Component) present(ctx context.Context, t task) ([]string, error) {
	fresh, err := c.Kube.FreshNodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the owners of network attachments: %w", err)
	}
	var names []string
	for _, n := range fresh {
		names = append(names, n.Name)
	}
	if !slices.Contains(names, t.owner.Name) {
		return nil, fmt.Errorf("find the owners of network attachments: node %s is not in the list", t.owner.Name)
	}
	return names, nil
}

func (c *Component) change(ctx context.Context, t task, ch change) error {
	log := c.Log.WithField("interface", ch.ifname)
	if ch.ensure {
		ctx := types.Because(ctx, "CONTROLLER", "an application of this node uses port "+ch.ifname)
		if err := c.Kube.EnsureNAD(ctx, ch.ifname, t.owner); err != nil {
			return err
		}
		log.Info("network attachment exists for this node")
	}
	if ch.release == nil {
		return nil
	}
	ctx = types.Because(ctx, "CONTROLLER", "no application uses port "+ch.ifname+" there any more")
	if err := c.Kube.ReleaseNAD(ctx, ch.ifname, ch.release, t.keep); err != nil {
		return err
	}
	for node := range ch.release {
		log.WithField("node", node).Info("network attachment is no longer needed by this node")
	}
	return nil
}

func (c *Component) collect(now time.Time) {
	if err, ok := c.round.Take(); ok {
		c.ended(now, err)
	}
	if err, ok := c.following.Take(); ok && err != nil {
		c.notificationsLost = now.Add(period)
		c.Log.WithError(err).Warn("network interfaces are checked only once a minute")
	}
}

func (c *Component) ended(now time.Time, err error) {
	c.done = task{} // a round that did not go through may have done a part
	switch {
	case err == nil:
		c.done, c.doneAt = c.running, now
		c.tried, c.backoff, c.lastErr = task{}, 0, nil
	case !c.calledOff:
		c.backoff = min(max(2*c.backoff, minPause), maxPause)
		c.tried, c.pause, c.lastErr = c.running, now.Add(c.backoff), err
	}
}

func (c *Component) raise(ctx context.Context, now time.Time, a action) error {
	ctx = types.Because(ctx, "CONTROLLER", "an application of this node uses the port")
	links := map[string]link{}
	for _, p := range a.ports {
		if l, ok := c.links[p]; ok {
			links[p] = l
		}
	}
	var errs []error
	for _, p := range a.raise {
		was, before := links[p]
		state, err := c.Links.Raise(p)
		if state == SetUp || err != nil {
			types.Did(ctx, c.Operations, "set link up", "link/"+p, err)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		is := link{state: state}
		if state == SetUp {
			is.raised = now
		}
		links[p] = is
		log := c.Log.WithField("interface", p)
		switch {
		case state == SetUp && was.state != SetUp:
			log.Info("network interface set up")
		case state == Absent && !before:
			log.Warn("the host has no such network interface, unless an application has it already")
		case state == Absent && was.state != Absent:
			log.Info("network interface has disappeared from the host, for example because an application got it")
		case state == WasUp && was.state == Absent && before:
			log.Info("network interface is back on the host")
		}
	}
	c.links = links
	return errors.Join(errs...)
}

// tell logs each flaw of an adapter once, for as long as it stands.
func (c *Component) tell(problems map[adapter]string) {
	for at, text := range problems {
		if c.problems[at] != text {
			c.Log.WithField("app", at.app).Warn(text)
		}
	}
	c.problems = problems
}
