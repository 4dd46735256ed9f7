package kubetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/zedkube/zedkube/types"
)

// ChangeNode changes the row of a node that is there, while no verb does.
func (c *Cluster) ChangeNode(name string, change func(*types.Node)) {
	c.world.Lock()
	defer c.world.Unlock()
	if n, ok := c.Nodes.Get(name); ok {
		change(&n)
		_ = c.Nodes.Publish(name, n)
	}
}

// edit carries out a verb on one node; a row that is not changed stays as it is.
func (c *Cluster) edit(ctx context.Context, verb, node string, change func(*types.Node) error) error {
	return c.write(ctx, verb, node, func() error {
		n, ok := c.Nodes.Get(node)
		if !ok {
			return fmt.Errorf("%s node %s: not found", verb, node)
		}
		if err := change(&n); err != nil {
			return fmt.Errorf("%s node %s: %w", verb, node, err)
		}
		return c.Nodes.Publish(node, n)
	})
}

// Cordon marks the node unschedulable in the name of by. A cordon of zedkube's
// that stands is dated anew and not kept any more; any other is left as it is.
// Verb cordon.
func (c *Cluster) Cordon(ctx context.Context, node string, by types.Cordon) error {
	by.By = "zedkube"
	return c.edit(ctx, "cordon", node, func(n *types.Node) error {
		switch {
		case !n.Unschedulable:
			n.TaintedAt = time.Now()
		case !n.CordonedForDrain() || by.Kind != "":
			return nil
		}
		n.Unschedulable, n.CordonedBy, n.CordonKept = true, &by, by.Kind != ""
		return nil
	})
}

// Uncordon undoes a cordon of zedkube's that is not kept, and leaves any other
// alone. Verb uncordon.
func (c *Cluster) Uncordon(ctx context.Context, node string) error {
	return c.edit(ctx, "uncordon", node, func(n *types.Node) error {
		switch {
		case n.CordonedBy == nil:
			n.CordonKept = false
		case !n.CordonKept:
			n.Unschedulable, n.CordonedBy, n.TaintedAt = false, nil, time.Time{}
		}
		return nil
	})
}

// UncordonWorkloads undoes a cordon for disabled workloads. Verb uncordonworkloads.
func (c *Cluster) UncordonWorkloads(ctx context.Context, node string) error {
	return c.edit(ctx, "uncordonworkloads", node, func(n *types.Node) error {
		if n.Cordoner() == types.CordonedDisabled {
			n.Unschedulable, n.CordonedBy, n.CordonKept, n.TaintedAt = false, nil, false, time.Time{}
		}
		return nil
	})
}

// UncordonLegacy undoes a cordon of EVE's own agent: one that names nobody, is
// older than before, and was written by it or is on a node without a fresh stamp.
// Verb uncordonlegacy.
func (c *Cluster) UncordonLegacy(ctx context.Context, node string, before time.Time) error {
	return c.edit(ctx, "uncordonlegacy", node, func(n *types.Node) error {
		old := !n.TaintedAt.IsZero() && n.TaintedAt.Before(before)
		if n.Unschedulable && n.CordonedBy == nil && old && (n.Foreign() || n.CordonedByEVE()) {
			n.Unschedulable, n.TaintedAt = false, time.Time{}
		}
		return nil
	})
}

// KeepCordon keeps a cordon of zedkube's; without one it fails. Verb keepcordon.
func (c *Cluster) KeepCordon(ctx context.Context, node string) error {
	return c.edit(ctx, "keepcordon", node, func(n *types.Node) error {
		if n.CordonedBy == nil {
			return errors.New("not cordoned by zedkube")
		}
		n.CordonKept = true
		return nil
	})
}

// Unkeep takes KeepCordon back. Verb unkeep.
func (c *Cluster) Unkeep(ctx context.Context, node string) error {
	return c.edit(ctx, "unkeep", node, func(n *types.Node) error {
		n.CordonKept = false
		return nil
	})
}

// Stamp writes the stamp on the node. Verb stamp.
func (c *Cluster) Stamp(ctx context.Context, node string, stamp types.AgentStamp) error {
	stamp.Masters = slices.Clone(stamp.Masters)
	return c.edit(ctx, "stamp", node, func(n *types.Node) error {
		n.Agent, n.StampedAt = &stamp, time.Now()
		return nil
	})
}

// ForgetStamp takes the stamp off the node; it is an error that wraps
// types.ErrConflict if another one is there by now. Verb forgetstamp.
func (c *Cluster) ForgetStamp(ctx context.Context, node types.Node) error {
	return c.edit(ctx, "forgetstamp", node.Name, func(n *types.Node) error {
		if n.UID != node.UID || n.Agent != nil && !n.StampedAt.Equal(node.StampedAt) {
			return types.ErrConflict
		}
		n.Agent, n.StampedAt, n.StampStale, n.StampUnconfirmed, n.Witness, n.Designated, n.K3s = nil, time.Time{}, false, false, nil, nil, nil
		return nil
	})
}

// SetDrainConditions shows the conditions in the row. Verb conditions.
func (c *Cluster) SetDrainConditions(ctx context.Context, node string, conditions types.DrainConditions) error {
	return c.edit(ctx, "conditions", node, func(n *types.Node) error {
		n.DrainInProgress, n.Drained = condition(conditions.InProgress), condition(conditions.Drained)
		n.DrainReason = conditions.Reason
		return nil
	})
}

func condition(holds bool) types.ConditionStatus {
	if holds {
		return types.ConditionTrue
	}
	return types.ConditionFalse
}

// DeleteNode removes the row; it is an error that wraps types.ErrConflict if
// another Node has its name by now. Verb deletenode.
func (c *Cluster) DeleteNode(ctx context.Context, node types.Node) error {
	return c.write(ctx, "deletenode", node.Name, func() error {
		n, ok := c.Nodes.Get(node.Name)
		switch {
		case !ok:
			return nil
		case n.UID != node.UID:
			return fmt.Errorf("delete node %s: %w", node.Name, types.ErrConflict)
		}
		return c.Nodes.Unpublish(node.Name)
	})
}

// FreshNodes lists the rows by name. The Lease of a Ready node has just been
// renewed, that of another never, unless SetRenewed said so. Verb nodes.
func (c *Cluster) FreshNodes(ctx context.Context) ([]types.Node, error) {
	if err := c.enter(ctx, "nodes", ""); err != nil {
		return nil, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	all := c.Nodes.All()
	var out []types.Node
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := all[name]
		if at, ok := c.held.renewed[name]; ok {
			n.RenewedAt = at
		} else if n.Ready == types.ConditionTrue {
			n.RenewedAt = time.Now()
		}
		out = append(out, n)
	}
	return out, nil
}

// NodeLease returns what SetRenewed said of the node, zero for nothing; that of a
// Ready node has just been renewed. Verb nodelease.
func (c *Cluster) NodeLease(ctx context.Context, node string) (time.Time, error) {
	if err := c.enter(ctx, "nodelease", node); err != nil {
		return time.Time{}, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	if at, ok := c.held.renewed[node]; ok {
		return at, nil
	}
	if n, _ := c.Nodes.Get(node); n.Ready == types.ConditionTrue {
		return time.Now(), nil
	}
	return time.Time{}, nil
}

// SetRenewed makes at the time when the node's Lease was renewed for the last
// time.
func (c *Cluster) SetRenewed(node string, at time.Time) {
	c.world.Lock()
	defer c.world.Unlock()
	if c.held.renewed == nil {
		c.held.renewed = map[string]time.Time{}
	}
	c.held.renewed[node] = at
}

// DrainLock returns the lock. Verb lock.
func (c *Cluster) DrainLock(ctx context.Context) (types.DrainLock, error) {
	if err := c.enter(ctx, "lock", ""); err != nil {
		return types.DrainLock{}, err
	}
	return c.Lock(), nil
}

// SetDrainLock takes or changes the lock, unless somebody did since the
// version of lock. Verb setlock.
func (c *Cluster) SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error) {
	err := c.write(ctx, "setlock", lock.Holder, func() error {
		if lock.Version != c.held.lock.Version {
			return fmt.Errorf("set drain lock for %s: %w", lock.Holder, types.ErrConflict)
		}
		lock = c.hold(lock)
		return nil
	})
	if err != nil {
		return types.DrainLock{}, err
	}
	return lock, nil
}

// FreeDrainLock deletes the lock, unless somebody changed it since the version
// of lock. Verb freelock.
func (c *Cluster) FreeDrainLock(ctx context.Context, lock types.DrainLock) error {
	return c.write(ctx, "freelock", lock.Holder, func() error {
		switch {
		case lock.Version == "", c.held.lock.Version == "":
		case lock.Version != c.held.lock.Version:
			return fmt.Errorf("free drain lock of %s: %w", lock.Holder, types.ErrConflict)
		default:
			c.hold(types.DrainLock{})
		}
		return nil
	})
}

// Lock is the lock as it is, whatever fails; without Version there is none.
func (c *Cluster) Lock() types.DrainLock {
	c.world.Lock()
	defer c.world.Unlock()
	lock := c.held.lock
	lock.Volumes = maps.Clone(lock.Volumes)
	return lock
}

// SetLock makes lock the lock, under a new version, whoever holds it; without
// Holder there is none from now on.
func (c *Cluster) SetLock(lock types.DrainLock) {
	c.world.Lock()
	defer c.world.Unlock()
	c.hold(lock)
}

// hold makes lock the lock, under a new version; without Holder there is none.
func (c *Cluster) hold(lock types.DrainLock) types.DrainLock {
	if lock.Holder == "" {
		c.held.lock = types.DrainLock{}
		if c.Leases != nil {
			_ = c.Leases.Unpublish(types.DrainLockName)
		}
		return types.DrainLock{}
	}
	c.held.version++
	lock.Version = strconv.Itoa(c.held.version)
	c.held.lock = lock
	c.held.lock.Volumes = maps.Clone(lock.Volumes)
	if c.Leases != nil {
		_ = c.Leases.Publish(types.DrainLockName, types.Lease{
			Name: types.DrainLockName, Holder: lock.Holder, Acquired: lock.Since.UTC().Round(0), Version: lock.Version, Task: lock.Task, BootID: lock.BootID,
		})
	}
	return lock
}
