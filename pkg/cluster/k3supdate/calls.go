package k3supdate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/alive"
	"github.com/zedkube/zedkube/types"
)

// call does what was decided, and lists what the next decision rests on.
func (c *Component) call(ctx context.Context, what call, f facts) result {
	r := result{call: what}
	switch what {
	case restart, renew, putBack:
		if r.err = c.files(ctx, what, f); r.err != nil || what == putBack && !f.journal.Restored && f.process.PID != 0 && f.process.Start < f.journal.Began {
			return r // the process of before goes on with those of before
		}
		r.err = c.K3s.Restart(ctx, f.process)
		types.Did(ctx, c.Operations, "restart k3s", "node/"+f.own.Name, r.err)
		return r
	case install:
		r.err = c.Disk.Install(ctx, f.journal.To, f.journal.Sum)
		return c.acts(ctx, r, "install k3s", f.journal.To, f)
	case restore:
		r.err = c.Disk.Restore(ctx, f.journal.From)
		return c.acts(ctx, r, "restore k3s", f.journal.From, f)
	case free, end:
		r.err = c.free(ctx, f.checked.lock, what == end)
		return r
	case take:
		if r.err = c.take(ctx, f); r.err != nil {
			return r
		}
	}
	r.checked, r.err = c.check(ctx, f.own.Name)
	return r
}

// files moves the certificates of k3s aside, or back, where that is asked for.
func (c *Component) files(ctx context.Context, what call, f facts) (err error) {
	var files []string
	switch what {
	case renew:
		files = c.LeafFiles.Files()
		err = c.LeafFiles.Aside(f.request.RequestedAt)
		types.Did(ctx, c.Operations, "set certificates aside", "directory/"+kept, err)
	case putBack:
		err = c.LeafFiles.Back(f.journal.Restarts.Answers)
		types.Did(ctx, c.Operations, "set certificates back", "directory/"+kept, err)
	}
	if len(files) == 0 {
		return err
	}
	left := c.LeafFiles.Files()
	for _, name := range files {
		if !slices.Contains(left, name) {
			types.Did(ctx, c.Operations, "set certificate aside", "file/"+name, nil)
		}
	}
	return err
}

// take makes the drain lock ours, if it is still as it was when that was decided.
func (c *Component) take(ctx context.Context, f facts) error {
	lock, err := c.Kube.DrainLock(ctx)
	if err != nil {
		return err
	}
	if lock.Version != f.checked.lock.Version || lock.Holder != f.checked.lock.Holder {
		return fmt.Errorf("take the drain lock: %w", types.ErrConflict)
	}
	volumes := replicas(f.checked.storage, f.own.Name)
	if lock.Holder == f.own.Name && lock.Task == types.TaskK3sChange { // of a former change: what that recorded still counts
		volumes = lock.WithVolumes(volumes)
	}
	_, err = c.Kube.SetDrainLock(ctx, types.DrainLock{
		Holder: f.own.Name, BootID: f.own.BootID, Since: time.Now().UTC(), Task: types.TaskK3sChange,
		Volumes: volumes, Version: lock.Version,
	})
	return err
}

// free gives back the drain lock that was judged. One that is kept says that the change has ended. Where somebody has
// written the lock since, it is a conflict: the lock is read, and judged, once more.
func (c *Component) free(ctx context.Context, judged types.DrainLock, kept bool) error {
	if kept {
		judged.Ended = true
		_, err := c.Kube.SetDrainLock(ctx, judged)
		return err
	}
	return c.Kube.FreeDrainLock(ctx, judged)
}

// check lists the lock, the nodes and the volumes. Of a list without this node nothing is
// concluded.
func (c *Component) check(ctx context.Context, own string) (*checked, error) {
	before, err := c.Kube.FreshNodes(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := alive.Nodes(ctx, c.Kube.FreshNodes, before)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(nodes, func(n types.Node) bool { return n.Name == own }) {
		return nil, fmt.Errorf("list nodes: node %s is not among them", own)
	}
	storage, err := c.Kube.Storage(ctx, own)
	if err != nil {
		return nil, volumesError{err}
	}
	lock, err := c.Kube.DrainLock(ctx)
	if err != nil {
		return nil, err
	}
	return &checked{at: c.Uptime(), lock: lock, nodes: nodes, storage: storage, unready: c.Kube.Ready(ctx)}, nil
}

// acts records what was done to the binary, and looks what has come of it.
func (c *Component) acts(ctx context.Context, r result, did, version string, f facts) result {
	types.Did(ctx, c.Operations, did, "version/"+version, r.err)
	g := c.gather(ctx, f.found, "") // the version is to be released soon; the API server is asked with the next look
	r.gathered = &g
	return r
}
