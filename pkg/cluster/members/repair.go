package members

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// repairTimeout bounds a whole repair, all its waiting included.
	repairTimeout = time.Minute
	// minPause is how long everything is left alone after a repair. As long as
	// there is something to repair the pause grows up to maxPause: what hinders a
	// repair may last for hours, and a node that has not been told yet that it is
	// the tie-breaker undoes the cordon at once.
	minPause = 10 * time.Second
	maxPause = time.Minute
	// restAfter is how long nobody removes anything after a removal: etcd and the
	// kubelets have to show first that the cluster goes on without that member.
	restAfter = time.Minute
)

// call is the repair under way.
type call struct {
	task      task
	calledOff bool // by this component
}

// outcome is what came of it.
type outcome struct {
	reason string // a sentence, where it is nobody's fault
	err    error
}

// begin repairs beside the steps, under a context that outlives this one.
func (c *Component) begin(ctx context.Context, f facts, t task) {
	c.running = &call{task: t}
	c.repairing.Begin(ctx, repairTimeout, func(ctx context.Context) (out outcome) {
		out.reason, out.err = c.repair(ctx, f.own, t)
		return out
	})
}

// repair does what the task says while no other node repairs.
func (c *Component) repair(ctx context.Context, own types.Node, t task) (reason string, err error) {
	r := repair{Kube: c.Kube, own: own, task: t}
	ctx = types.Because(ctx, "CONTROLLER", t.why())
	err = c.Kube.Repair(ctx, own.Name, func(ctx context.Context) (err error) {
		switch t.kind {
		case unlock:
			err = r.unlock(ctx)
		case tie:
			reason, err = r.cordonTieBreaker(ctx)
		case remove:
			_, reason, err = r.removal().Do(ctx)
		}
		return err
	})
	switch {
	case errors.Is(err, types.ErrHeld):
		return "another node is repairing the cluster", nil
	case errors.Is(err, types.ErrConflict) && !errors.Is(err, errLocked):
		return "another node was faster", nil
	}
	return reason, err
}

// collect takes in the outcome of the repair that has ended, if one has.
func (c *Component) collect() {
	out, ok := c.repairing.Take()
	if !ok {
		return
	}
	done := *c.running
	c.running, c.tried, c.reason, c.lastErr = nil, done.task, out.reason, nil
	c.backoff = min(max(2*c.backoff, minPause), maxPause)
	c.pause = c.Uptime() + c.backoff
	switch log := c.Log.WithField("node", done.task.node.Name); {
	case out.err != nil && done.calledOff:
	case out.err != nil:
		c.reason = "the last attempt failed: " + out.err.Error()
		c.lastErr = fmt.Errorf("repair the cluster: %w", out.err)
	case out.reason != "":
	case done.task.kind == remove:
		c.rest = c.Uptime() + restAfter
		log.Warn("stale member removed: its Node is deleted")
	case done.task.kind == tie:
		log.Info("the tie-breaker is cordoned and its pods are evicted")
	}
}

// cancel cuts the repair under way short.
func (c *Component) cancel() {
	if c.running != nil {
		c.running.calledOff = true
		c.repairing.Cancel()
	}
}

// repair is one repair under the right to it.
type repair struct {
	Kube
	own types.Node
	task
}

// why says what the task is for.
func (t task) why() string {
	switch t.kind {
	case tie:
		return "node " + t.node.Name + " is the cluster's tie-breaker"
	case remove:
		return "node " + t.node.Name + " is no longer among the cluster's masters"
	}
	return "the drain lock was left over from the removal of a member"
}

// unlock frees the lock that this node took to remove a member and did not give back: an
// earlier process, "zedkube nodes remove", or a request whose answer was lost. Nobody else
// would: the node is up and has not rebooted. Who needs it has the right to repair.
func (r repair) unlock(ctx context.Context) error {
	lock, err := r.DrainLock(ctx)
	if err != nil || lock.Holder != r.own.Name || lock.Task != types.TaskMembers {
		return err
	}
	return r.FreeDrainLock(ctx, lock)
}

// cordonTieBreaker cordons the tie-breaker and asks its pods to go, if all members still
// agree that it is one.
func (r repair) cordonTieBreaker(ctx context.Context) (reason string, err error) {
	nodes, err := listed(ctx, r, r.own)
	if err != nil {
		return "", err
	}
	if why := r.differentlyConfigured(nodes, onTie); why != "" {
		return why, nil
	}
	if !r.node.Unschedulable {
		cordon := types.Cordon{Reason: "this node is the cluster's tie-breaker", Since: time.Now().UTC().Round(0)}
		if err := r.Cordon(ctx, r.node.Name, cordon); err != nil {
			return "", err
		}
	}
	var errs []error
	for _, p := range r.pods {
		switch err := r.Evict(ctx, p); {
		case errors.Is(err, types.ErrDisruptionBudget):
			reason = fmt.Sprintf("a PodDisruptionBudget prevents the eviction of pod %s from the tie-breaker", p.Key())
		case err != nil:
			errs = append(errs, err)
		}
	}
	return reason, errors.Join(errs...)
}

// removal is the removal of the stale Node, if every rule still holds.
func (r repair) removal() Removal {
	return Removal{
		Remover: r.Kube, Own: r.own, Node: r.node, Late: r.past.long(r.node),
		Judge:   func(_ context.Context, nodes []types.Node) (string, error) { return r.judge(nodes), nil },
		Reason:  "StaleMemberRemoved",
		Message: fmt.Sprintf("node %s (%s) is no longer among the cluster's masters: node %s removed it", r.node.Name, r.node.UUID, r.own.Name),
	}
}

// judge says why the Node is not to be removed after all.
func (r repair) judge(nodes []types.Node) string {
	for _, n := range stale(nodes, r.configured) {
		if n.Name == r.node.Name && n.UID == r.node.UID {
			return r.notRemovable(n, nodes)
		}
	}
	return "node " + r.node.Name + " is no longer stale"
}
