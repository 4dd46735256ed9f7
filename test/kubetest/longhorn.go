package kubetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/zedkube/zedkube/types"
)

// EditDisks has somebody else change Longhorn's node of that name, or makes it.
func (c *Cluster) EditDisks(node string, edit func(*types.LonghornNode)) {
	c.world.Lock()
	defer c.world.Unlock()
	n, ok := c.Disks.Get(node)
	if !ok {
		n = types.LonghornNode{Name: node, UID: "longhorn-" + node}
	}
	n.Disks = slices.Clone(n.Disks)
	edit(&n)
	_ = c.Disks.Publish(node, n)
}

// EditSetting has somebody else give a setting of Longhorn a value, or makes it.
func (c *Cluster) EditSetting(name, value string) {
	c.world.Lock()
	defer c.world.Unlock()
	_ = c.setSetting(name, value)
}

func (c *Cluster) setSetting(name, value string) error {
	return c.LonghornSettings.Publish(name, types.LonghornSetting{Name: name, UID: "setting-" + name, Version: c.nextVersion(), Value: value})
}

// nextVersion is called with world held.
func (c *Cluster) nextVersion() string {
	c.held.longhorn++
	return strconv.Itoa(c.held.longhorn)
}

// EditJob has somebody else change the snapshot job, which may be nil, into what
// edit returns, nil for none.
func (c *Cluster) EditJob(edit func(*types.SnapshotJob) *types.SnapshotJob) {
	c.world.Lock()
	defer c.world.Unlock()
	var was *types.SnapshotJob
	if j, ok := c.SnapshotJobs.Get(types.SnapshotJobName); ok {
		was = &j
	}
	is := edit(was)
	if is == nil {
		_ = c.SnapshotJobs.Unpublish(types.SnapshotJobName)
		return
	}
	is.Name = types.SnapshotJobName
	_ = c.setJob(*is)
}

func (c *Cluster) setJob(j types.SnapshotJob) error {
	j.Version = c.nextVersion()
	if j.UID == "" {
		j.UID = "job-" + j.Version
	}
	return c.SnapshotJobs.Publish(j.Name, j)
}

// SetReserved reserves so many bytes on the node's disks. Verb setreserved.
func (c *Cluster) SetReserved(ctx context.Context, node types.LonghornNode, bytes int64) (changed bool, err error) {
	err = c.write(ctx, "setreserved", node.Name, func() error {
		n, ok := c.Disks.Get(node.Name)
		if !ok || n.UID != node.UID {
			return fmt.Errorf("reserve on node %s: %w", node.Name, types.ErrConflict)
		}
		n.Disks = slices.Clone(n.Disks)
		for i := range n.Disks {
			changed = changed || n.Disks[i].Reserved != bytes
			n.Disks[i].Reserved = bytes
		}
		return c.Disks.Publish(n.Name, n)
	})
	return changed, err
}

// SetLonghornSetting changes the setting of that version. Verb setsetting.
func (c *Cluster) SetLonghornSetting(ctx context.Context, setting types.LonghornSetting, value string) error {
	return c.write(ctx, "setsetting", setting.Name, func() error {
		if s, ok := c.LonghornSettings.Get(setting.Name); !ok || s != setting {
			return fmt.Errorf("set %s: %w", setting.Name, types.ErrConflict)
		}
		return c.setSetting(setting.Name, value)
	})
}

// EnsureSnapshotJob makes the job, or changes its schedule. Verb ensurejob.
func (c *Cluster) EnsureSnapshotJob(ctx context.Context, cron string) (changed bool, err error) {
	err = c.write(ctx, "ensurejob", cron, func() error {
		j, ok := c.SnapshotJobs.Get(types.SnapshotJobName)
		switch {
		case !ok:
			j = types.SnapshotJob{Name: types.SnapshotJobName, Task: "snapshot", Groups: []string{"default"}, Retain: 3, Concurrency: 1, Ours: true}
		case !j.Ours:
			return fmt.Errorf("keep the snapshot job: it is not zedkube's")
		case j.Cron == cron:
			return nil
		}
		j.Cron, changed = cron, true
		return c.setJob(j)
	})
	return changed, err
}

// DeleteSnapshotJob deletes the job of that version. Verb deletejob.
func (c *Cluster) DeleteSnapshotJob(ctx context.Context, job types.SnapshotJob) (changed bool, err error) {
	err = c.write(ctx, "deletejob", job.Name, func() error {
		j, ok := c.SnapshotJobs.Get(job.Name)
		if ok && (j.UID != job.UID || j.Version != job.Version) {
			return fmt.Errorf("delete the snapshot job: %w", types.ErrConflict)
		}
		changed = ok
		return c.SnapshotJobs.Unpublish(job.Name)
	})
	return changed, err
}
