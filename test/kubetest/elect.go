package kubetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
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

// SetAttachments is what VolumeAttachments there are from now on.
func (c *Cluster) SetAttachments(all ...types.Attachment) {
	c.world.Lock()
	defer c.world.Unlock()
	c.held.apps.attachments = slices.Clone(all)
}

// NodeAttachments returns those of the node that SetAttachments said and nobody
// has deleted. Verb attachments.
func (c *Cluster) NodeAttachments(ctx context.Context, node string) ([]types.Attachment, error) {
	if err := c.enter(ctx, "attachments", node); err != nil {
		return nil, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	return slices.DeleteFunc(slices.Clone(c.held.apps.attachments), func(a types.Attachment) bool { return a.Node != node }), nil
}

// DeleteAttachment removes this very one at once, also from what Storage
// returns. Verb deleteattachment.
func (c *Cluster) DeleteAttachment(ctx context.Context, a types.Attachment) error {
	return c.write(ctx, "deleteattachment", a.Name, func() error {
		same := func(b types.Attachment) bool { return b.Name == a.Name && b.UID == a.UID }
		c.held.apps.attachments = slices.DeleteFunc(slices.Clone(c.held.apps.attachments), same)
		c.held.storage.Attachments = slices.DeleteFunc(slices.Clone(c.held.storage.Attachments), same)
		return nil
	})
}

// Fence takes the node out of service, unless it is Ready, another one, or
// somebody else has done so. A fence that stands stays as it is. Verb fence.
func (c *Cluster) Fence(ctx context.Context, node types.Node, fence types.Fence) error {
	return c.edit(ctx, "fence", node.Name, func(n *types.Node) error {
		switch {
		case n.UID != node.UID:
			return fmt.Errorf("%w: it is another one", types.ErrConflict)
		case n.Ready == types.ConditionTrue:
			return fmt.Errorf("%w: it is Ready", types.ErrConflict)
		case n.OutOfService && n.Fence == nil:
			return fmt.Errorf("%w: somebody else has done so", types.ErrConflict)
		case n.OutOfService:
			return nil
		}
		n.OutOfService, n.Fence, n.FenceLeft = true, &fence, nil
		return nil
	})
}

// Unfence takes back a Fence, nobody else's. Verb unfence.
func (c *Cluster) Unfence(ctx context.Context, node types.Node) error {
	return c.edit(ctx, "unfence", node.Name, func(n *types.Node) error {
		switch {
		case n.UID != node.UID:
			return fmt.Errorf("%w: it is another one", types.ErrConflict)
		case node.FenceLeft != nil && n.Fence != nil && !n.Fence.Same(*node.FenceLeft):
			return fmt.Errorf("%w: it was fenced again", types.ErrConflict)
		case node.FenceLeft != nil: // a taint that is there by now is somebody else's
			n.Fence, n.FenceLeft = nil, nil
		case n.Fence != nil:
			n.OutOfService, n.Fence = false, nil
		}
		return nil
	})
}

// Witness writes w on the node; a zero one removes it. Verb witness.
func (c *Cluster) Witness(ctx context.Context, node string, w types.Witness) error {
	w.Sightings = slices.Clone(w.Sightings)
	return c.edit(ctx, "witness", node, func(n *types.Node) error {
		n.Witness = &w
		if w.Round == 0 && len(w.Sightings) == 0 {
			n.Witness = nil
		}
		return nil
	})
}

// Designate writes what a node says of its applications; a zero d is removed.
// Verb designate.
func (c *Cluster) Designate(ctx context.Context, node string, d types.Designations) error {
	d.Apps = maps.Clone(d.Apps)
	return c.edit(ctx, "designate", node, func(n *types.Node) error {
		n.Designated = &d
		if d.Equal(types.Designations{}) {
			n.Designated = nil
		}
		return nil
	})
}

// StampK3s writes what a node says of its k3s. Verb stamp k3s.
func (c *Cluster) StampK3s(ctx context.Context, node string, stamp types.K3sStamp) error {
	return c.edit(ctx, "stamp k3s", node, func(n *types.Node) error {
		n.K3s = &stamp
		return nil
	})
}

// Ready asks nobody. Verb ready.
func (c *Cluster) Ready(ctx context.Context) error { return c.enter(ctx, "ready", "") }

// DeprecatedAPIs returns none, of an API server that has run for two days. Verb deprecated apis.
func (c *Cluster) DeprecatedAPIs(ctx context.Context) (types.DeprecatedAPIs, error) {
	return types.DeprecatedAPIs{StartedAt: time.Now().Add(-48 * time.Hour)}, c.enter(ctx, "deprecated apis", "")
}

// AppPodsNow lists the pods of the namespace of the applications. Verb apppods.
func (c *Cluster) AppPodsNow(ctx context.Context) ([]types.Pod, error) {
	if err := c.enter(ctx, "apppods", ""); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Collect(maps.Values(c.Pods.All())), func(p types.Pod) bool { return p.Namespace != types.NamespaceApps }), nil
}

// SetRunningPods is what runs on the node from now on, whatever the tables say.
func (c *Cluster) SetRunningPods(node string, pods ...types.PodRef) {
	c.world.Lock()
	defer c.world.Unlock()
	if c.held.apps.running == nil {
		c.held.apps.running = map[string][]types.PodRef{}
	}
	c.held.apps.running[node] = slices.Clone(pods)
}

// RunningPods returns what SetRunningPods said. Verb runningpods.
func (c *Cluster) RunningPods(ctx context.Context, node types.Node) ([]types.PodRef, error) {
	if err := c.enter(ctx, "runningpods", node.Name); err != nil {
		return nil, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	return slices.Clone(c.held.apps.running[node.Name]), nil
}
