package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/types"
)

// apply does what was decided: first it says so, then it acts.
func (c *Component) apply(ctx context.Context, f facts, a action) error {
	if a.stop && f.running != uncordon {
		// An uncordon is left to its end: cut short it could still arrive,
		// after the next drain's cordon.
		c.cancel()
	}
	changed := a.status != f.status
	var errs []error
	if changed {
		// What could not be said has not happened: the next step says it again.
		if err := c.Status.Publish(types.Global, a.status); err != nil {
			return fmt.Errorf("publish NodeDrainStatus: %w", err)
		}
		c.transition(f, a)
	}
	if a.consume {
		if !changed {
			c.Log.Warn("NodeDrainStatus force file removed: there is no drain to complete")
		}
		if err := c.consumeForce(); err != nil {
			errs = append(errs, err)
		}
	}
	if c.running == nil && a.verb != none {
		c.begin(ctx, f, a)
	}
	switch {
	case underWay(a.status.Status):
		c.countAttempts(f)
		c.reportWait(f, a)
	case !f.ourCordon():
		c.lastErr = nil // nothing is left to fail
	}
	if err := errors.Join(append(errs, c.lastErr)...); err != nil {
		return errors.Join(err, again(changed, a))
	}
	return again(changed, a)
}

// again wishes for the next step: at once after a change, within a second in a
// drain under way, else when asked for.
func again(changed bool, a action) error {
	switch d := a.again; {
	case changed:
		return loop.After(0)
	case underWay(a.status.Status) && (d <= 0 || d > time.Second):
		return loop.After(time.Second)
	case d > 0:
		return loop.After(d)
	}
	return nil
}

// reportWait logs what the drain waits for, once until it is something else.
func (c *Component) reportWait(f facts, a action) {
	if a.waits == "" || a.waits == c.mem.waits {
		return
	}
	c.mem.waits = a.waits
	c.Log.WithFields(logrus.Fields{"node": f.node.Name, "reason": a.waits}).
		Info("cordonAndDrainNode nodedrain-step: the drain waits")
}

// transition notes and logs that the status changes.
func (c *Component) transition(f facts, a action) {
	m, was, is := &c.mem, f.status.Status, a.status.Status
	m.since = f.now
	if underWay(is) && (!underWay(was) || a.status.RequestedBy != f.status.RequestedBy) {
		m.standing = f.now
	}
	if is != was {
		m.told = map[types.DrainRequester]bool{}
	}
	if final(is) {
		m.told[a.status.RequestedBy] = true
	}
	if underWay(is) && !underWay(was) {
		c.startOver(f.now)
	}
	if is == types.DrainRequested && is != was && f.forced == nil {
		c.Log.WithFields(logrus.Fields{
			"requester": a.status.RequestedBy.String(),
			"context":   strings.TrimSpace(f.deviceOp.context + " " + f.update.context),
		}).Info("NodeDrainRequest accepted")
		c.Log.Info("Beginning kubernetes node drain process this could be a very long operation depending on replica rebuilds (24hours+)")
	}
	if failed(is) && is != was {
		c.rememberFailed()
	}
	if !underWay(is) {
		c.lastErr = nil
	}
	act := "cordonAndDrainNode"
	if is == types.DrainCordoned || is == types.DrainFailedCordon {
		act = "cordonNode"
	}
	c.Log.WithFields(logrus.Fields{
		"node": f.node.Name, "from": was.String(), "to": is.String(),
		"requester": a.status.RequestedBy.String(), "reason": a.reason,
	}).Info(act + " nodedrain-step: NodeDrainStatus " + is.String())
	if is == types.DrainComplete && is != was {
		c.Log.Infof("kubevirt_node_drain_completion_time_seconds:%f", f.now.Sub(f.asked).Seconds())
	}
}

// startOver forgets the drain before.
func (c *Component) startOver(now time.Time) {
	m := &c.mem
	m.asked, m.resumed, m.newBoot = now, false, false
	m.cordonedAt, m.cordonSeen, m.losses, m.refusals = time.Time{}, false, 0, 0
	m.attempt, m.waits = 0, ""
	m.list, m.known, m.pods = time.Time{}, nil, nil
	clear(m.retry)
	clear(m.backoff)
	m.failed = map[time.Time]bool{}
	c.lastErr = nil
}

// rememberFailed notes the requests that a later, new one has to differ from.
func (c *Component) rememberFailed() {
	for _, from := range []requests{c.DeviceOp, c.Update} {
		if r, ok := from.Get(types.Global); ok {
			c.mem.failed[stamp(r.RequestedAt)] = true
		}
	}
}

// countAttempts begins the next of the five attempts when its time has come:
// with a fresh list, and with evictions that showed no effect tried again.
func (c *Component) countAttempts(f facts) {
	n := 1 + int(f.now.Sub(f.asked)/(f.timeout/attempts))
	if n <= c.mem.attempt || n > attempts {
		return
	}
	if c.mem.attempt > 0 {
		c.Log.WithFields(logrus.Fields{"node": f.node.Name, "attempt": n, "left": left(f.pods)}).
			Warn("cordonAndDrainNode nodedrain-step: the next attempt begins, pods are left")
		c.mem.list, c.mem.pods = time.Time{}, nil
	}
	c.mem.attempt = n
}
