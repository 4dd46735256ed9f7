package drain

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

// storage lists the volumes. What the controller says of Longhorn's drain policy
// goes before what Longhorn has been told so far.
func (c *Component) storage(ctx context.Context, in call) (types.Storage, error) {
	s, err := c.Kube.Storage(ctx, in.node.Name)
	s.Policy = cmp.Or(in.policy, s.Policy)
	return s, err
}

// enter takes the lock if it may be had, and then looks whether quorum allows a
// node to go; if not, the lock is given back: others may be luckier.
func (c *Component) enter(ctx context.Context, in call, out *outcome) error {
	lock, err := c.Kube.DrainLock(ctx)
	if err != nil {
		return err
	}
	out.lock, out.locked = lock, true
	// What the table shows of another holder is enough to go on waiting.
	if out.gates = lockable(lock, in.node.Name, in.rows, types.Storage{}); out.gates != "" {
		return nil
	}
	nodes, err := c.freshNodes(ctx, in)
	if err != nil {
		return err
	}
	if out.check.quorum = quorum(nodes, in.node.Name); out.check.quorum != "" {
		out.gates = out.check.quorum
		return c.yield(ctx, in, lock, out)
	}
	if lock, err = c.take(ctx, in, lock, nodes, out); err != nil || out.gates != "" {
		return conflict(err, out)
	}
	out.lock = lock
	if nodes, err = c.freshNodes(ctx, in); err != nil {
		return err
	}
	if out.check.quorum = quorum(nodes, in.node.Name); out.check.quorum != "" {
		out.gates = out.check.quorum
		return c.yield(ctx, in, lock, out)
	}
	return nil
}

// yield gives the lock back while nothing has been done under it.
func (c *Component) yield(ctx context.Context, in call, lock types.DrainLock, out *outcome) error {
	if !ours(lock, in.node.Name) || in.node.CordonedBy != nil {
		return nil
	}
	err := c.Kube.FreeDrainLock(ctx, lock)
	out.wrote = err == nil
	return conflict(err, &outcome{})
}

// take makes lock ours if its holder does not need it. A lock that is ours
// already keeps what was recorded first.
func (c *Component) take(ctx context.Context, in call, lock types.DrainLock, nodes []types.Node, out *outcome) (types.DrainLock, error) {
	own, _ := nodeNamed(nodes, in.node.Name)
	if ours(lock, in.node.Name) && lock.BootID == own.BootID && !lock.Ended {
		return lock, nil
	}
	s, err := c.storage(ctx, in)
	if err != nil {
		return lock, err
	}
	if out.gates = lockable(lock, in.node.Name, nodes, s); out.gates != "" {
		out.weighed = true
		return lock, nil
	}
	mine := types.DrainLock{
		Holder: in.node.Name, BootID: own.BootID, Since: time.Now().UTC(),
		Volumes: outlook.HealthyReplicas(s, in.node.Name), Version: lock.Version,
	}
	if ours(lock, in.node.Name) {
		mine.Since, mine.Volumes = lock.Since, lock.Volumes
	}
	set, err := c.Kube.SetDrainLock(ctx, mine)
	out.wrote = err == nil
	return set, err
}

// makeUp is for a device that was allowed to go down without Kubernetes, which
// answers again before it has. It may go down any moment, so the cordon does not
// wait for the lock.
func (c *Component) makeUp(ctx context.Context, in call, out *outcome) error {
	err := c.takeIfFree(ctx, in, out)
	return errors.Join(err, c.Kube.Cordon(ctx, in.node.Name, in.by))
}

// takeIfFree makes the lock ours; that its holder needs it is no error.
func (c *Component) takeIfFree(ctx context.Context, in call, out *outcome) error {
	lock, err := c.Kube.DrainLock(ctx)
	if err != nil || lockable(lock, in.node.Name, in.rows, types.Storage{}) != "" {
		return err
	}
	nodes, err := c.freshNodes(ctx, in)
	if err != nil {
		return err
	}
	_, err = c.take(ctx, in, lock, nodes, out)
	return conflict(err, out)
}

// release frees the lock if it is ours and nobody needs it held any more. While
// volumes are still worse than before it says that the drain has ended, so that
// others can tell once they are not.
func (c *Component) release(ctx context.Context, in call, out *outcome) error {
	lock, err := c.Kube.DrainLock(ctx)
	if err != nil {
		return err
	}
	out.lock, out.locked = lock, true
	if !ours(lock, in.node.Name) {
		out.notOurs = true
		return nil
	}
	nodes, err := c.freshNodes(ctx, in)
	if err != nil {
		return err
	}
	s, err := c.storage(ctx, in)
	if err != nil {
		return err
	}
	ended := lock
	ended.Ended = true // no drain is wanted, or release would not be called
	if out.gates = needed(ended, nodes, s); out.gates == "" {
		if err := c.Kube.FreeDrainLock(ctx, lock); err != nil {
			return err
		}
		out.lock, out.notOurs, out.wrote, out.freed = types.DrainLock{}, true, true, true
		return nil
	}
	if own, ok := nodeNamed(nodes, in.node.Name); ok && own.BootID == lock.BootID && !lock.Ended {
		_, err = c.Kube.SetDrainLock(ctx, ended)
		return conflict(err, &outcome{})
	}
	return nil
}

// checkAll looks afresh at everything that COMPLETE promises, but for pods that
// come back however often they are evicted. Where no other node takes the pods
// that is the gates alone.
func (c *Component) checkAll(ctx context.Context, in call, out *outcome) (err error) {
	nodes, err := c.freshNodes(ctx, in) // before the pods: it may take a while
	if err != nil {
		return err
	}
	if out.pods, err = c.Kube.PodsToEvict(ctx, in.node.Name); err != nil {
		return err
	}
	out.listed, out.check.lone = true, in.alone
	for _, p := range out.pods {
		if in.remains(p) {
			out.check.pods = append(out.check.pods, p.Key())
		}
	}
	if len(out.check.pods) > 0 && !in.alone {
		return nil
	}
	if !in.alone {
		s, err := c.storage(ctx, in)
		if err != nil {
			return err
		}
		if s, err = c.leaveToPods(ctx, in, s); err != nil {
			return err
		}
		out.volumes, out.stored = in.inTheWay(s, outlook.ReadyNodes(nodes), out), true
		out.check.volumes = out.volumes
	}
	out.check.quorum = quorum(nodes, in.node.Name)
	lock, err := c.Kube.DrainLock(ctx)
	if err != nil {
		return err
	}
	var entry outcome
	if lock, err = c.take(ctx, in, lock, nodes, &entry); err != nil {
		err = conflict(err, &entry)
	}
	out.lock, out.locked, out.check.lock = lock, true, entry.gates
	if in.alone && err == nil {
		out.check.volumes = c.rebuilding(ctx, in, outlook.ReadyNodes(nodes))
	}
	return err
}

// rebuilding returns the volumes whose last healthy replica is here while another
// is rebuilt on a node that is Ready and cordoned. It is the one thing that a
// drain waits for where no other node takes pods: the pods stay, and so the
// rebuild goes on. What cannot be looked at is not waited for, since Longhorn
// works badly where the peers are down.
func (c *Component) rebuilding(ctx context.Context, in call, ready map[string]bool) []types.DrainVolume {
	node := in.node.Name
	peers := false
	for name, is := range ready {
		peers = peers || is && name != node
	}
	if !peers {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loneLook)
	defer cancel()
	s, err := c.storage(ctx, in)
	if err != nil {
		return nil
	}
	return outlook.RebuiltElsewhere(s, node, ready)
}
