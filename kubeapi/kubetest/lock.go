package kubetest

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/zedkube/zedkube/types"
)

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
		_ = c.Leases.Publish(types.DrainLockName, types.Lease{Name: types.DrainLockName, Holder: lock.Holder, Version: lock.Version})
	}
	return lock
}
