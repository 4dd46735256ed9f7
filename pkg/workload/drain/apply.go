package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/types"
)

// apply does what was decided. It writes it down first: after a kill at any
// point the next process goes on from there. Then it acts, then it speaks.
func (c *Component) apply(ctx context.Context, f facts, a action) error {
	c.settleCalls(a)
	was := c.rec
	c.rec = a.rec
	c.logNotes()
	defer c.logNotes() // what is reported from here on
	if f.dropForce {
		c.dropOldForce()
	}
	c.transition(f, was, a)
	if a.rec.Left && !was.Left {
		c.recordLoss(ctx, f)
	}
	errs := []error{c.journal(f.now)}
	errs = append(errs, c.publishProgress(f, a))
	c.recordForceFile(ctx, f)
	if a.consume {
		if c.consumeForce(drains(was.Phase) || ends(was.Phase)) {
			errs = append(errs, c.journal(f.now))
		}
	}
	if !c.busy(acting) && a.verb != none {
		c.act(ctx, f, a)
	}
	changed, err := c.publishStatus(f.now, a.published)
	errs = append(errs, err)
	c.beginReport(ctx, f)
	c.reportWait(f, a)
	c.reportUnused(f)
	if !drains(a.rec.Phase) && !f.ourCordon() && !a.rec.Locked {
		c.mem.lastErr = nil // nothing is left to fail
	}
	errs = append(errs, c.mem.lastErr)
	return errors.Join(errors.Join(errs...), again(changed || a.rec.Phase != was.Phase, a))
}

// publishStatus publishes NodeDrainStatus. What could not be published nobody has heard:
// it counts from when it can be.
func (c *Component) publishStatus(now time.Duration, status types.NodeDrainStatus) (changed bool, err error) {
	if said, _ := c.Status.Get(types.Global); said == status {
		c.mem.notPublished = false
		return false, nil
	}
	was := c.mem.notPublished
	err = c.Status.Publish(types.Global, status)
	c.mem.notPublished = err != nil
	if err != nil {
		return false, fmt.Errorf("publish NodeDrainStatus: %w", err)
	}
	if was && underWay(c.rec.Status.Status) {
		c.rec.Said, c.rec.Standing = now, now
	}
	return true, nil
}

// settleCalls ends what a drain that is over has under way. What gives something
// back is left to its end: cut short it could still arrive, after the next
// drain's cordon.
func (c *Component) settleCalls(a action) {
	r := c.running[acting]
	if !a.stop || r == nil {
		return
	}
	switch r.verb {
	case uncordon, unkeep, uncordonLegacy, release:
	default:
		c.cancel(acting)
	}
}

// again wishes for the next step: at once after a change, within a second in a
// drain under way, else when asked for.
func again(changed bool, a action) error {
	switch d := a.again; {
	case changed:
		return loop.After(0)
	case drains(a.rec.Phase) && (d <= 0 || d > time.Second):
		return loop.After(time.Second)
	case d > 0:
		return loop.After(d)
	}
	return nil
}

// journal writes the record down where it has changed. A disk that is full is
// reported and stops nothing: NodeDrainProgress carries a copy.
func (c *Component) journal(now time.Duration) error {
	j, last := types.NodeDrainJournal(c.rec), c.mem.journal
	j.BootID, j.Serial, j.Uptime = c.BootID, last.Serial, last.Uptime
	if last.Total > 0 && j.Asked == last.Asked {
		j.Total = last.Total // a pod that is made again for ever is not worth a write each time
	}
	switch same := reflect.DeepEqual(j, last); {
	case same && !c.mem.unwritten:
		return nil
	case !same:
		c.rec.Serial++
		c.mem.journal = types.NodeDrainJournal(c.rec)
		c.mem.journal.BootID, c.mem.journal.Uptime = c.BootID, now
	}
	err := c.Journal.Publish(types.Global, c.mem.journal)
	c.mem.unwritten = err != nil
	if err != nil {
		return fmt.Errorf("write the drain's journal: %w", err)
	}
	return nil
}

// act starts the call that was decided on.
func (c *Component) act(ctx context.Context, f facts, a action) {
	if a.verb == cordon && a.rec.Phase != types.PhaseGates {
		c.Log.WithField("node", f.node.Name).Warn("cordonNode: the node became schedulable during its drain, it is cordoned again")
	}
	by := types.Cordon{By: "zedkube", Reason: "node drain for " + strings.Join(asking(a.rec), ", "), Since: f.wall}
	c.begin(ctx, f, acting, call{verb: a.verb, by: by, pods: a.evict, alone: f.lone(), stays: c.staying()})
}

// asking names the requesters in their order.
func asking(r record) []string {
	var names []string
	for _, name := range requesters {
		if _, ok := r.Requests[name]; ok {
			names = append(names, name)
		}
	}
	return names
}

// reportWait logs what the drain waits for, once until it is something else.
func (c *Component) reportWait(f facts, a action) {
	if a.waits == "" || a.waits == c.mem.waits || !drains(a.rec.Phase) {
		return
	}
	c.mem.waits = a.waits
	c.Log.WithFields(logrus.Fields{"node": f.node.Name, "reason": a.waits}).
		Info("cordonAndDrainNode nodedrain-step: the drain waits")
}

// transition logs and reports what changes.
func (c *Component) transition(f facts, was record, a action) {
	is := a.rec
	if is.Asked != was.Asked {
		c.forget()
	}
	if is.Status != was.Status {
		act := "cordonAndDrainNode"
		if s := is.Status.Status; s == types.DrainCordoned || s == types.DrainFailedCordon {
			act = "cordonNode"
		}
		c.Log.WithFields(logrus.Fields{
			"node": f.node.Name, "from": was.Status.Status.String(), "to": is.Status.Status.String(),
			"requester": is.Status.RequestedBy.String(), "reason": is.Reason,
		}).Info(act + " nodedrain-step: NodeDrainStatus " + is.Status.Status.String())
	}
	if is.Attempt > was.Attempt && was.Attempt > 0 {
		c.anotherTry(f, is.Attempt)
	}
	if is.Phase == was.Phase {
		return
	}
	c.mem.lastErr = nil
	switch {
	case is.Phase == types.PhaseGates:
		c.begun(f, is)
	case is.Phase == types.PhaseComplete:
		c.Log.Infof("kubevirt_node_drain_completion_time_seconds:%f", (f.now - is.Asked).Seconds())
		c.report(false, "DrainComplete", is.Reason)
	case ends(is.Phase):
		c.report(true, "DrainFailed", is.Reason)
	case is.Phase == types.PhaseIdle && drains(was.Phase):
		c.report(false, "DrainCancelled", is.Reason)
	}
}

// begun logs a drain's beginning in the words that people search for.
func (c *Component) begun(f facts, is record) {
	var contexts []string
	for _, name := range asking(is) {
		contexts = append(contexts, is.Requests[name].Context)
	}
	c.Log.WithFields(logrus.Fields{
		"node": f.node.Name, "requester": strings.Join(asking(is), ","), "context": strings.Join(contexts, " "),
	}).Info("NodeDrainRequest accepted")
	c.Log.Info("Beginning kubernetes node drain process this could be a very long operation depending on replica rebuilds (24hours+)")
	c.report(false, "DrainStarted", "a drain was requested by "+strings.Join(asking(is), ", "))
}

// anotherTry begins the next attempt: with a fresh list, and with evictions
// that showed no effect tried again at once.
func (c *Component) anotherTry(f facts, n int) {
	c.Log.WithFields(logrus.Fields{"node": f.node.Name, "attempt": n, "left": f.evictions().left()}).
		Warn("cordonAndDrainNode nodedrain-step: the next attempt begins, pods are left")
	c.mem.list = 0
	for i := range c.mem.pods {
		e := &c.mem.pods[i]
		e.accepted, e.next, e.backoff = 0, 0, 0
	}
}

// logNotes logs what was noted.
func (c *Component) logNotes() {
	for _, n := range c.notes {
		c.Log.WithFields(n.fields).Log(n.level, n.text)
	}
	c.notes = nil
}

// beginReport asks the cluster why things take so long, and shows it how far we are.
func (c *Component) beginReport(ctx context.Context, f facts) {
	v := &c.mem.view
	if c.busy(reporting) || !f.known || !f.living() {
		return
	}
	decided := f
	decided.rec = c.rec
	want := types.DrainConditions{
		InProgress: drains(c.rec.Phase) || decided.waitsForLock(), Drained: c.rec.Phase == types.PhaseComplete && !c.rec.Dead,
		Reason: string(c.rec.Phase), Message: cmp.Or(v.reason, c.rec.Reason),
	}
	if c.rec.forced() {
		want.Drained, want.Reason = false, types.DrainForced
	}
	emptying := c.rec.Phase == types.PhaseEmptying || c.rec.forced() // what is left is shown
	pods := f.evictions().slow(f.now, patience)
	if !v.asked {
		pods = f.evictions().slow(f.now, 0) // before they go: where could they?
	}
	changed := f.due(conditions) && differs(f.node, want)
	var in call
	switch {
	case changed && types.EndsDrain(want.Reason): // before the Events: the other nodes wait because of it
		in.verb, in.cond = conditions, want
	case len(v.events) > 0:
		in.verb, in.report = event, v.events[0]
		in.report.Node = f.node.Name
		v.events = v.events[1:]
	case changed, f.due(conditions) && want.InProgress && want != v.shown && (v.shownAt == 0 || f.now-v.shownAt >= refreshEvery):
		in.verb, in.cond = conditions, want
	case emptying && len(pods) > 0 && f.due(situations):
		in.verb, v.asked = situations, true
		for _, e := range pods[:min(inquired, len(pods))] {
			in.pods = append(in.pods, e.pod)
		}
	case emptying && f.evictions().left() > 0 && f.now-f.rec.Cordoned >= patience && f.due(storage):
		in.verb = storage
	default:
		return
	}
	c.begin(ctx, f, reporting, in)
}

// differs reports that the Node's conditions say something else than want; a Node
// without them says that nothing is going on. The phase is a part of it: a node that
// waits is no node that drains, and one that is complete, of which DrainInProgress
// is False, may reboot.
func differs(n types.Node, want types.DrainConditions) bool {
	return n.DrainReason != want.Reason && (want.InProgress || types.EndsDrain(want.Reason) || types.EndsDrain(n.DrainReason)) || (n.DrainInProgress == types.ConditionTrue) != want.InProgress || (n.Drained == types.ConditionTrue) != want.Drained
}

// queue keeps an Event until it can be written; what happened first matters most.
func (s *state) queue(e types.Event) {
	if v := &s.mem.view; len(v.events) < maxEvents {
		v.events = append(v.events, e)
	}
}

// queueBlocked writes an Event on a pod that will not go by itself.
func (c *Component) queueBlocked(f facts, b types.DrainBlocker) {
	v := &c.mem.view
	if v.reported == nil {
		v.reported = map[string]bool{}
	}
	v.reported[b.Pod] = true
	for _, e := range f.pods {
		if e.pod.Key() == b.Pod {
			c.queue(types.Event{Pod: e.pod, Warning: true, Reason: "DrainBlocked", Message: b.Why})
		}
	}
}
