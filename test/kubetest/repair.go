package kubetest

import (
	"context"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

// How long the right to repair lasts after its last renewal, how often it is
// renewed, and how long before its end its holder stops.
const (
	rightLasts  = 10 * time.Second
	rightRenews = 2500 * time.Millisecond
	rightMargin = 2 * time.Second
)

// right is the right to repair.
type right struct {
	holder string
	until  time.Time
	turn   map[string]chan struct{} // one repair at a time under each name
}

// Repair carries out do while identity has the right to repair. It returns an
// error that wraps types.ErrHeld at once when another has it. Where the API
// server fails meanwhile the right is not renewed, and do's context ends before
// another could have it. Verb repair.
func (c *Cluster) Repair(ctx context.Context, identity string, do func(ctx context.Context) error) error {
	turn := c.repairTurn(identity)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return fmt.Errorf("repair as %s: %w", identity, ctx.Err())
	}
	if err := c.change(ctx, "repair", identity, func() error { return c.takeRight(identity) }); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	renewed := make(chan struct{})
	go func() { defer close(renewed); defer cancel(); c.renewRight(ctx, identity) }()
	err := do(ctx)
	cancel()
	<-renewed
	c.world.Lock()
	defer c.world.Unlock()
	if c.held.right.holder == identity {
		c.held.right.holder = ""
	}
	return err
}

// Repairer is who has the right to repair now, "" for nobody.
func (c *Cluster) Repairer() string {
	c.world.Lock()
	defer c.world.Unlock()
	if !time.Now().Before(c.held.right.until) {
		return ""
	}
	return c.held.right.holder
}

// SetRepairer gives the right to repair to identity, "" for nobody, whoever has
// it; it lasts for d without being renewed.
func (c *Cluster) SetRepairer(identity string, d time.Duration) {
	c.world.Lock()
	defer c.world.Unlock()
	c.held.right.holder, c.held.right.until = identity, time.Now().Add(d)
}

func (c *Cluster) repairTurn(identity string) chan struct{} {
	c.world.Lock()
	defer c.world.Unlock()
	r := &c.held.right
	if r.turn == nil {
		r.turn = map[string]chan struct{}{}
	}
	if r.turn[identity] == nil {
		r.turn[identity] = make(chan struct{}, 1)
	}
	return r.turn[identity]
}

// takeRight is called with world held.
func (c *Cluster) takeRight(identity string) error {
	r, now := &c.held.right, time.Now()
	if r.holder != "" && r.holder != identity && now.Before(r.until) {
		return fmt.Errorf("repair as %s: %w: %s", identity, types.ErrHeld, r.holder)
	}
	r.holder, r.until = identity, now.Add(rightLasts)
	return nil
}

// renewRight returns when ctx is done, another has the right, or it is about to
// run out.
func (c *Cluster) renewRight(ctx context.Context, identity string) {
	ticker := time.NewTicker(rightRenews)
	defer ticker.Stop()
	end := time.NewTimer(rightLasts - rightMargin)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-ticker.C:
		}
		if c.failing() {
			continue
		}
		c.world.Lock()
		err := c.takeRight(identity)
		c.world.Unlock()
		if err != nil {
			return
		}
		end.Reset(rightLasts - rightMargin)
	}
}

func (c *Cluster) failing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault != None
}
