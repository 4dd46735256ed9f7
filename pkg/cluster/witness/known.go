package witness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// knownFor is how long a Node that is deleted is remembered once no application
// has anything there: a table may show that late.
const knownFor = 24 * time.Hour

// missing are the Nodes that are deleted although an application still has
// something there. Nothing else asks whether their devices answer.
func (c *Component) missing(nodes map[string]types.Node) []types.Node {
	var lost []types.Node
	for name, k := range c.Known.All() {
		if _, there := nodes[name]; !there && c.used(name) {
			lost = append(lost, k.Node())
		}
	}
	slices.SortFunc(lost, func(a, b types.Node) int { return cmp.Compare(a.Name, b.Name) })
	return lost
}

// used reports whether the cluster has anything of an application on a node.
func (c *Component) used(node string) bool {
	for _, p := range c.AppPods.All() {
		if p.NodeName == node {
			return true
		}
	}
	for _, v := range c.VMIs.All() {
		if v.NodeName == node {
			return true
		}
	}
	return false
}

// know remembers where the devices of all Nodes are, and when their kubelets last
// renewed their Leases, for when they are deleted. What it knows of a Node that is
// missing stays as it was; of a cluster that this device has left, nothing does.
func (c *Component) know(nodes map[string]types.Node, left bool) error {
	var errs []error
	for name, n := range nodes {
		delete(c.unused, name)
		if n.UID != "" && n.InternalIP != "" {
			errs = append(errs, c.keep(c.seen(n), journalEvery))
		}
	}
	for name, k := range c.Known.All() {
		if _, there := nodes[name]; there {
			continue
		}
		delete(c.renewed.by, name) // a Node of that name that is created again begins with a Lease of its own
		since, counted := c.unused[name]
		if left || counted && c.Uptime()-since >= knownFor && !c.used(name) {
			delete(c.unused, name)
			if err := errors.Join(c.Known.Unpublish(name), c.Journal.Unpublish(name)); err != nil {
				errs = append(errs, fmt.Errorf("forget node %s: %w", name, err))
			}
			continue
		}
		errs = append(errs, c.keep(k, 0))
		switch {
		case c.used(name):
			delete(c.unused, name)
		case !counted:
			c.unused[name] = c.Uptime()
		}
	}
	return errors.Join(errs...)
}

// seen is what is to be remembered of a Node that is there.
func (c *Component) seen(n types.Node) types.KnownNode {
	k := types.KnownNode{Name: n.Name, UID: n.UID, InternalIP: n.InternalIP, ExternalIP: n.ExternalIP}
	if old, _ := c.Known.Get(n.Name); old.UID == n.UID {
		k.LeaseRenewed, k.LeaseSeen = old.LeaseRenewed, old.LeaseSeen
	}
	if by := c.renewed.by[n.Name]; !by.IsZero() && !by.Equal(k.LeaseRenewed) {
		k.LeaseRenewed, k.LeaseSeen = by, c.renewed.arrived
	}
	return k
}

// keep remembers k in memory, and on disk unless only a renewal differs there that
// was seen less than pause before.
func (c *Component) keep(k types.KnownNode, pause time.Duration) error {
	var errs []error
	if old, ok := c.Known.Get(k.Name); !ok || old != k {
		errs = append(errs, c.Known.Publish(k.Name, k))
	}
	old, ok := c.Journal.Get(k.Name)
	apart := k.LeaseSeen.Sub(old.LeaseSeen).Abs()
	old.LeaseRenewed, old.LeaseSeen = k.LeaseRenewed, k.LeaseSeen
	if !ok || old != k || apart > 0 && apart >= pause {
		errs = append(errs, c.Journal.Publish(k.Name, k))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remember node %s: %w", k.Name, err)
	}
	return nil
}

const (
	// leasesEvery is from one list of the Leases to the next: kubelets renew them
	// every ten seconds, and one list is cheaper than all these events.
	leasesEvery = 30 * time.Second
	// leasesTimeout bounds a list.
	leasesTimeout = 20 * time.Second
	// journalEvery is how far the journal of a Node that is there is behind in
	// renewals: a disk need not be written for each. That of a Node that is missing is
	// not behind.
	journalEvery = time.Hour
)

// leases are the last renewals of the kubelets' Leases.
type leases struct {
	by      map[string]time.Time // by node, each by the clock of its kubelet
	arrived time.Time            // when the list came, by this node's clock
	err     error
}

// load takes over what a former process has left on disk.
func (c *Component) load() error {
	var errs []error
	for name, k := range c.Journal.All() {
		errs = append(errs, c.Known.Publish(name, k))
	}
	return errors.Join(errs...)
}

// askLeases takes what has come of the last list, and begins the next one in time.
func (c *Component) askLeases(ctx context.Context) {
	if l, ok := c.leases.Take(); ok {
		if c.leaseErr = l.err; l.err == nil {
			c.renewed = l
		}
	}
	if now := c.Uptime(); c.listed == 0 || now-c.listed >= leasesEvery {
		c.listed = now
		c.leases.Begin(ctx, leasesTimeout, c.listLeases)
	}
}

func (c *Component) listLeases(ctx context.Context) leases {
	by, err := c.Kube.NodeLeases(ctx)
	if err != nil {
		return leases{err: fmt.Errorf("remember when nodes renew their Leases: %w", err)}
	}
	return leases{by: by, arrived: time.Now().Round(0).UTC()}
}
