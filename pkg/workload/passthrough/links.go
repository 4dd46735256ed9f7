package passthrough

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/types"
)

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
	if err := netlink.LinkSetUp(link); err != nil {
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

// collect takes in what has ended beside the steps.
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

// raise sets the links up, and tells what has changed about them.
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
