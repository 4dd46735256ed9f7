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
	if t.kind == unlock {
		return "", r.unlock(ctx)
	}
	err = c.Kube.Repair(ctx, own.Name, func(ctx context.Context) (err error) {
		switch t.kind {
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
	if errors.Is(out.err, errLocked) {
		c.looked = false
	}
	switch log := c.Log.WithField("node", done.task.node.Name); {
	case out.err != nil && done.calledOff:
	case out.err != nil:
		c.reason = "the last attempt failed: " + out.err.Error()
		c.lastErr = fmt.Errorf("repair the cluster: %w", out.err)
	case out.reason != "":
	case done.task.kind == unlock:
		c.looked, c.pause, c.backoff = true, 0, 0
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
