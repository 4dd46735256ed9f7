package kubetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// PodsToEvict lists the pods of the node by name; those of a DaemonSet are
// left out, as kubectl does. Verb list.
func (c *Cluster) PodsToEvict(ctx context.Context, node string) ([]types.Pod, error) {
	if err := c.enter(ctx, "list", node); err != nil {
		return nil, err
	}
	var out []types.Pod
	for _, p := range c.Pods.All() {
		if p.NodeName == node && p.Owner.Kind != "DaemonSet" {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b types.Pod) int { return strings.Compare(a.Key(), b.Key()) })
	return out, nil
}

// Evict starts the pod's termination, unless a budget refuses it. A pod that
// is gone, or has been replaced under its name, counts as evicted. Verb evict.
func (c *Cluster) Evict(ctx context.Context, pod types.Pod) error {
	return c.change(ctx, "evict", pod.Key(), func() error {
		p, err := c.evictable(pod)
		if err != nil || p == nil {
			return err
		}
		p.Deleted = time.Now()
		if err := c.Pods.Publish(p.Key(), *p); err != nil {
			return err
		}
		time.AfterFunc(c.Grace, func() { c.gone(*p) })
		return nil
	})
}

// PlanEvict says what Evict would and changes nothing. Verb planevict.
func (c *Cluster) PlanEvict(ctx context.Context, pod types.Pod) error {
	if err := c.enter(ctx, "planevict", pod.Key()); err != nil {
		return err
	}
	_, err := c.evictable(pod)
	return err
}

// evictable is the pod as it is now, nil if there is nothing left to do.
func (c *Cluster) evictable(pod types.Pod) (*types.Pod, error) {
	p, ok := c.Pods.Get(pod.Key())
	if !ok || p.UID != pod.UID || p.Terminating() {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.budgets[pod.Key()] {
		return nil, fmt.Errorf("evict pod %s: %w", pod.Key(), types.ErrDisruptionBudget)
	}
	return &p, nil
}

// gone takes the pod out of the table, which shows nothing new while the API
// server fails.
func (c *Cluster) gone(p types.Pod) {
	c.mu.Lock()
	dead := c.fault != None
	c.mu.Unlock()
	if dead {
		time.AfterFunc(time.Second, func() { c.gone(p) })
		return
	}
	c.world.Lock()
	defer c.world.Unlock()
	if now, ok := c.Pods.Get(p.Key()); ok && now.UID == p.UID {
		_ = c.Pods.Unpublish(p.Key())
		c.ended(p)
		c.control()
	}
}

// Situations tells of each pod what SetSituation said, and of any other that
// one other node would take it. Verb situations.
func (c *Cluster) Situations(ctx context.Context, node string, pods []types.Pod) ([]types.PodSituation, error) {
	if err := c.enter(ctx, "situations", node); err != nil {
		return nil, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	var out []types.PodSituation
	for _, p := range pods {
		s, ok := c.held.situations[p.Key()]
		if !ok {
			s.Fits = 1
		}
		s.Pod = p
		out = append(out, s)
	}
	return out, nil
}

// SetSituation is what Situations tells of the pod under key from now on; Pod
// is filled in.
func (c *Cluster) SetSituation(key string, s types.PodSituation) {
	c.world.Lock()
	defer c.world.Unlock()
	if c.held.situations == nil {
		c.held.situations = map[string]types.PodSituation{}
	}
	c.held.situations[key] = s
}

// Storage returns what SetStorage said, whatever the node. Verb storage.
func (c *Cluster) Storage(ctx context.Context, node string) (types.Storage, error) {
	if err := c.enter(ctx, "storage", node); err != nil {
		return types.Storage{}, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	return c.held.storage, nil
}

// SetStorage is what Storage returns from now on.
func (c *Cluster) SetStorage(s types.Storage) {
	c.world.Lock()
	defer c.world.Unlock()
	c.held.storage = s
}

// VolumeUsers returns the pods of the node that use a volume, as SetVolumeUsers
// said. Verb users.
func (c *Cluster) VolumeUsers(ctx context.Context, node string) (map[string][]types.Pod, error) {
	if err := c.enter(ctx, "users", node); err != nil {
		return nil, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	out := map[string][]types.Pod{}
	for _, p := range c.Pods.All() {
		for volume, uses := range c.held.users {
			if p.NodeName == node && uses(p) {
				out[volume] = append(out[volume], p)
			}
		}
	}
	return out, nil
}

// SetVolumeUsers says which pods use the volume from now on.
func (c *Cluster) SetVolumeUsers(volume string, uses func(types.Pod) bool) {
	c.world.Lock()
	defer c.world.Unlock()
	if c.held.users == nil {
		c.held.users = map[string]func(types.Pod) bool{}
	}
	c.held.users[volume] = uses
}

// Event records the event. Verb event.
func (c *Cluster) Event(ctx context.Context, e types.Event) error {
	about := e.Node
	switch {
	case e.Pod.Name != "":
		about = e.Pod.Key()
	case e.Set.Name != "":
		about = e.Set.Key()
	}
	return c.change(ctx, "event", about, func() error {
		c.held.events = append(c.held.events, e)
		return nil
	})
}

// EventEffect is what the API server would be asked for an event, as the kill points name it: one that
// says the same about the same object as an earlier one is counted there.
func (c *Cluster) EventEffect(e types.Event) string {
	if slices.ContainsFunc(c.Events(), func(o types.Event) bool {
		return o.Node == e.Node && o.Pod.UID == e.Pod.UID && o.Set.UID == e.Set.UID && o.Warning == e.Warning && o.Reason == e.Reason && o.Message == e.Message
	}) {
		return "patch events"
	}
	return "create events"
}

// Events returns the recorded events, in order.
func (c *Cluster) Events() []types.Event {
	c.world.Lock()
	defer c.world.Unlock()
	return slices.Clone(c.held.events)
}
