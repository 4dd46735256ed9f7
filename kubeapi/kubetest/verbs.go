package kubetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Cordon marks the node unschedulable in the name of by; a cordon that stands
// already is left as it is.
func (c *Cluster) Cordon(ctx context.Context, node string, by types.Cordon) error {
	if err := c.enter(ctx, "cordon", node); err != nil {
		return err
	}
	n, err := c.node(node)
	if err != nil || n.Unschedulable {
		return err
	}
	n.Unschedulable, n.CordonedBy = true, &by
	return c.Nodes.Publish(node, n)
}

// Uncordon undoes a cordon of zedkube's and leaves any other alone.
func (c *Cluster) Uncordon(ctx context.Context, node string) error {
	if err := c.enter(ctx, "uncordon", node); err != nil {
		return err
	}
	n, err := c.node(node)
	if err != nil || n.CordonedBy == nil {
		return err
	}
	n.Unschedulable, n.CordonedBy = false, nil
	return c.Nodes.Publish(node, n)
}

// PodsToEvict lists the pods of the node by name; those of a DaemonSet are
// left out, as kubectl does.
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
// is gone, or has been replaced under its name, counts as evicted.
func (c *Cluster) Evict(ctx context.Context, pod types.Pod) error {
	if err := c.enter(ctx, "evict", pod.Key()); err != nil {
		return err
	}
	p, ok := c.Pods.Get(pod.Key())
	if !ok || p.UID != pod.UID || p.Terminating() {
		return nil
	}
	c.mu.Lock()
	refused, grace := c.budgets[pod.Key()], c.Grace
	c.mu.Unlock()
	if refused {
		return fmt.Errorf("evict pod %s: %w", pod.Key(), types.ErrDisruptionBudget)
	}
	p.Deleted = time.Now()
	if err := c.Pods.Publish(p.Key(), p); err != nil {
		return err
	}
	time.AfterFunc(grace, func() { c.gone(p) })
	return nil
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
	if now, ok := c.Pods.Get(p.Key()); ok && now.UID == p.UID {
		_ = c.Pods.Unpublish(p.Key())
	}
}
