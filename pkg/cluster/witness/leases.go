package witness

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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
