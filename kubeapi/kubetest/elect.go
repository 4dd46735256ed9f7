package kubetest

import (
	"context"
	"sync"
	"time"
)

// lease is the one lock candidates compete for.
type lease struct {
	mu     sync.Mutex
	holder string
	lost   error // makes every running election end with this error
	nudge  chan struct{}
}

// electEvery is how often a candidate looks at the lease. One who cannot for
// electSilent does not know any more who leads, and has lost what it held.
const (
	electEvery  = time.Second
	electSilent = 23 * time.Second
)

// Elect competes for the lease until ctx is done, which gives it back, or
// until EndElections.
func (c *Cluster) Elect(ctx context.Context, identity string, changed func(leader string, leads bool)) error {
	if err := c.enter(ctx, "elect", identity); err != nil {
		return err
	}
	seen, looked := "", time.Now()
	timer := time.NewTicker(electEvery)
	defer timer.Stop()
	defer c.release(identity)
	for {
		leader, nudge, err := c.claim(identity)
		if err != nil {
			return err
		}
		switch {
		case !c.failing():
			looked = time.Now()
		case time.Since(looked) >= electSilent:
			c.release(identity)
			leader = ""
		}
		if leader != seen {
			seen = leader
			changed(leader, leader == identity)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-nudge:
		}
	}
}

// EndElections ends the running elections with err; new ones work.
func (c *Cluster) EndElections(err error) {
	l := &c.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = err
	if l.nudge != nil {
		close(l.nudge)
		l.nudge = nil
	}
}

// Leader is the present holder of the lease, "" for none.
func (c *Cluster) Leader() string {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	return c.lease.holder
}

// SetLeader makes identity the holder of the lease, "" nobody.
func (c *Cluster) SetLeader(identity string) {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	c.lease.holder = identity
}

func (c *Cluster) claim(identity string) (string, <-chan struct{}, error) {
	l := &c.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lost; err != nil {
		l.lost = nil
		return "", nil, err
	}
	if l.holder == "" && !c.failing() {
		l.holder = identity
	}
	if l.nudge == nil {
		l.nudge = make(chan struct{})
	}
	return l.holder, l.nudge, nil
}

func (c *Cluster) release(identity string) {
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	if c.lease.holder == identity {
		c.lease.holder = ""
	}
}
