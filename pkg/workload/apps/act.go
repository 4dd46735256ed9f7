package apps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/types"
)

const (
	// actTimeout bounds a whole task: many applications are taken from one node.
	actTimeout = 2 * time.Minute
	// heldPause is how long nothing is tried while another node repairs.
	heldPause = 3 * time.Second
	// minPause is how long an application is left alone after a try, whatever came
	// of it; after failures it grows up to maxPause.
	minPause = 5 * time.Second
	maxPause = 2 * time.Minute
	// conflictPause is for a table to catch up with someone who was faster.
	conflictPause = time.Second
	// mostSteps is how many steps of each application are kept for people.
	mostSteps = 12
)

// task is what is done in one go under the repair lease.
type task struct {
	act     types.RepairAct
	self    types.Node
	lost    types.Node // for a failover, and to fence or unfence
	deleted bool       // its Node is: lost is what is remembered
	targets []target
	others  []podClaims              // what a fence of the lost node concerns
	known   map[string]bool          // UIDs of the pods that the cluster has on a fenced node
	words   map[string]witnessReport // of the witnesses, at the decision
	renewed time.Time                // when the kubelet of the lost node did, by its clock
}

// outcome is what came of a task.
type outcome struct {
	task  task
	steps map[string][]types.RepairStep // by application
	fails map[string]error
	err   error // of the whole
}

// begin acts beside the steps.
func (c *Component) begin(ctx context.Context, t task) {
	if c.working.Begin(ctx, actTimeout, func(ctx context.Context) outcome { return c.work(ctx, t) }) {
		c.mem.acting = &t
	}
}

// work carries a task out while no other node repairs.
func (c *Component) work(ctx context.Context, t task) outcome {
	w := &worker{Kube: c.Kube, task: t, now: time.Now, uptime: c.Uptime, steps: map[string][]types.RepairStep{}, fails: map[string]error{}}
	err := c.Kube.Repair(ctx, t.self.Name, w.do)
	return outcome{task: t, steps: w.steps, fails: w.fails, err: err}
}

// finish takes in what came of a task, and says when its applications are next.
func (c *Component) finish(out outcome) {
	c.mem.acting = nil
	rest := map[string]pause{}
	for key, p := range c.mem.rest {
		if c.Uptime()-p.until < maxPause {
			rest[key] = p
		}
	}
	c.mem.rest = rest
	switch {
	case errors.Is(out.err, types.ErrHeld):
		rest[""] = pause{until: c.Uptime() + heldPause}
		return
	case out.err != nil:
		key := ""
		if len(out.task.targets) == 0 {
			key = out.task.lost.UID
		}
		c.complain(key, out.err, true, c.Log.WithFields(logrus.Fields{"act": out.task.act, "node": out.task.lost.Name}))
	}
	for _, t := range out.task.targets {
		err := out.fails[t.key]
		c.complain(t.key, err, len(out.steps[t.key]) > 0, c.Log.WithFields(logrus.Fields{"app": t.key, "act": out.task.act}))
		c.keep(t.key, out.steps[t.key])
		for _, s := range out.steps[t.key] {
			c.Log.WithFields(logrus.Fields{"app": t.key, "act": s.Act}).Info(s.Step)
		}
	}
}

// complain sets the pause after a try, and logs a failure once. Where nothing
// was left to be done it is others that take their time.
func (c *Component) complain(key string, err error, did bool, log logrus.FieldLogger) {
	last := c.mem.rest[key]
	longer := min(max(2*last.last, minPause), maxPause)
	p := pause{last: minPause}
	switch {
	case errors.Is(err, types.ErrConflict):
		p = pause{last: min(max(2*last.last, conflictPause), minPause), why: err.Error()}
	case err != nil:
		p = pause{last: longer, why: err.Error()}
	case !did:
		p.last = longer
	}
	if p.why != "" && p.why != last.why {
		log.WithError(err).Warn("repair failed")
	}
	p.until = c.Uptime() + p.last
	if c.mem.rest == nil {
		c.mem.rest = map[string]pause{}
	}
	c.mem.rest[key] = p
}

// keep adds steps to the status of an application.
func (c *Component) keep(key string, steps []types.RepairStep) {
	s, ok := c.Repairs.Get(key)
	if !ok || len(steps) == 0 {
		return
	}
	s.Steps = append(append([]types.RepairStep{}, s.Steps...), steps...)
	s.Steps = s.Steps[max(0, len(s.Steps)-mostSteps):]
	if err := c.Repairs.Publish(key, s); err != nil {
		c.Log.WithError(err).WithField("app", key).Error("repair steps cannot be published")
	}
}

// told is what is published of a verdict.
func (f facts) told(a app, v verdict) types.AppRepairStatus {
	old := f.repairs[a.key]
	s := types.AppRepairStatus{
		AppUUID: a.cfg.UUIDandVersion.UUID, Name: a.cfg.DisplayName, Phase: v.phase, Act: v.act, Reason: v.reason,
		Since: f.now, Lost: v.lost.Name, Stuck: a.set.Note.Stuck, Evidence: v.evidence, Steps: old.Steps,
	}
	if v.act == actSettle {
		s.Act = types.ActNone
	}
	if r, ok := f.request(a); ok {
		s.Heard = r.ID
	}
	if p, ok := a.representativePod(f.self.Name); ok {
		s.Node = p.NodeName
	}
	if p := f.rest[a.key]; p.why != "" && v.target != nil {
		s.Reason += " " + fmt.Sprintf("The last attempt failed: %s.", p.why)
	}
	if f.acts(a.key) && s.Act != types.ActNone {
		s.Phase = types.RepairActs
	}
	if old.Phase == s.Phase && old.Act == s.Act && old.Reason == s.Reason {
		s.Since = old.Since
	}
	return s
}

// acts reports whether this node acts for the application right now.
func (f facts) acts(key string) bool {
	if f.acting == nil {
		return false
	}
	for _, t := range f.acting.targets {
		if t.key == key {
			return true
		}
	}
	return false
}
