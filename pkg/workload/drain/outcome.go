package drain

import (
	"errors"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

const (
	// cordonEvery is the pause between refused cordons.
	cordonEvery  = 5 * time.Second
	minBackoff   = time.Second
	maxBackoff   = 10 * time.Second
	maxLookAgain = 5 * time.Second
	maxRefused   = 5 * time.Second // the back-off of one pod's eviction
	// lateFor is how long a write without an answer may still arrive.
	lateFor = 15 * time.Second
	// muteFor is how long a write without an answer speaks for a dead API that
	// is otherwise alive: the next one is tried sooner, if there is one to try.
	muteFor = callTimeout + 2*maxBackoff
)

// writes are the verbs that write the own Node, and nothing without it.
var writes = map[verb]bool{cordon: true, cordonAfterDeadAPI: true, deleteNode: true, uncordon: true, unkeep: true, uncordonLegacy: true}

// collect takes in the outcomes of the calls that have ended.
func (c *Component) collect() {
	for lane := range lanes {
		out, ok := c.calls[lane].Take()
		if !ok {
			continue
		}
		done, now := c.running[lane], c.now()
		c.running[lane] = nil
		c.hear(now, done, out)
		if !done.cut {
			c.takeIn(now, done.call, out)
		}
	}
}

// hear notes whether writes are answered; a call that was cut short is no
// evidence, but its write may still arrive.
func (c *Component) hear(now time.Time, done *runningCall, out outcome) {
	m := &c.mem
	// The conditions are for people: that they cannot be shown ends no drain.
	silent := errors.Is(out.err, types.ErrNoAnswer) && done.verb != conditions
	if done.cut || silent {
		m.late = now
	}
	switch {
	case done.cut:
	case silent:
		m.mute = since(m.mute, done.began, true)
	case out.wrote || writes[done.verb]: // a no is an answer, and so is "not now"
		m.mute = time.Time{}
	}
}

// takeIn takes in one outcome.
func (c *Component) takeIn(now time.Time, done call, out outcome) {
	m := &c.mem
	c.noteError(done.verb, out.err)
	c.pause(now, done.verb, out)
	if out.locked {
		m.lock, m.lockKnown = out.lock, true
	}
	if out.listed {
		c.takeList(now, out.pods, done.known)
	}
	if out.looked {
		c.mem.looked = done.began
		c.takeLook(now, out.only)
	}
	if out.stored {
		c.takeVolumes(now, slices.Clone(out.volumes))
	}
	if done.verb == evict {
		c.takeEvictions(now, done.pods, out.results)
	}
	if out.err != nil {
		switch done.verb { // what it said before may not be true any more
		case enter:
			m.gates, m.quorum = "", ""
		case check:
			m.check = checked{}
		}
		return
	}
	c.takeAnswer(now, done, out)
}

// takeAnswer takes in what a call that went well was for.
func (c *Component) takeAnswer(now time.Time, done call, out outcome) {
	m := &c.mem
	switch done.verb {
	case enter:
		m.gates, m.quorum, m.entered = out.gates, out.check.quorum, time.Time{}
		if out.gates == "" {
			m.entered = now
		}
	case cordon, cordonAfterDeadAPI:
		c.takeCordon(now, done)
	case uncordon:
		c.report(false, "Uncordoned", "the node takes pods again: no drain wants its cordon")
	case uncordonLegacy:
		c.rec.adopted = true
		c.report(false, "FormerCordonUndone", "a cordon that EVE's own zedkube left from before this boot was undone")
	case release:
		m.holds = out.gates
		if out.freed {
			m.freed = now
		}
		m.notLock = ""
		if out.notOurs && out.lock.Holder == done.node.Name {
			m.notLock = out.lock.Version
		}
		// A write that was given up may yet take the lock.
		if out.notOurs && now.Sub(m.late) >= lateFor {
			c.rec.locked = false
		}
	case deleteNode:
		m.holds = out.gates
		m.ended = out.ended
		m.deleted = out.gates == "" && !out.ended
	case check:
		m.check = out.check
		m.check.at = now
	case conditions:
		m.view.shown, m.view.shownAt = done.cond, now
	case situations:
		m.view.situations = out.situation
		m.view.stranded = union(m.view.stranded, outlook.Stranded(out.situation))
	}
}

// noteError keeps what the loop is to log; what was only asked or told is worth
// a line when it changes.
func (c *Component) noteError(v verb, err error) {
	if v < situations {
		if err != nil || v == c.mem.errVerb {
			c.mem.lastErr, c.mem.errVerb = err, v
		}
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != c.mem.tellErr {
		c.Log.WithError(err).Warn("the drain cannot explain itself fully")
	}
	c.mem.tellErr = text
}

// takeCordon notes that the node takes no more pods.
func (c *Component) takeCordon(now time.Time, done call) {
	r := &c.rec
	if done.verb == cordonAfterDeadAPI {
		r.dead = false
	}
	if r.cordoned.IsZero() {
		r.cordoned = now
	}
	r.refusals = 0
	r.node, r.nodeBoot = done.node.Name, done.node.BootID
	// What was listed before may have grown since.
	c.mem.cordonAgain, c.mem.cordonSeen, c.mem.list, c.mem.check = now, false, time.Time{}, checked{}
}

// pause says when a verb may be called again: later and later while it fails.
func (c *Component) pause(now time.Time, v verb, out outcome) {
	m := &c.mem
	var wait time.Duration
	switch {
	case out.err != nil && v == cordon && errors.Is(out.err, types.ErrRefused):
		c.rec.refusals++
		wait = cordonEvery
	case out.err != nil:
		wait = min(max(2*m.backoff[v], minBackoff), maxBackoff)
		if v == check {
			wait = min(wait, maxLookAgain) // many requests, any of which an overloaded server may turn away
		}
		m.backoff[v] = wait
	default:
		delete(m.backoff, v)
		wait = c.unhurried(now, v, out)
	}
	m.retry[v] = now.Add(wait)
}

// unhurried is the pause after a call that went well, and perhaps found that
// the time has not come yet.
func (c *Component) unhurried(now time.Time, v verb, out outcome) time.Duration {
	switch {
	case v == check && len(out.check.volumes) > 0:
		return checkAgain(now.Sub(c.mem.emptied))
	case v == check: // what has passed is relied on for no longer than checkedFor
		return min(checkAgain(now.Sub(c.mem.emptied)), 10*time.Second)
	case v == enter && out.weighed && now.Sub(c.rec.asked) > 10*time.Minute:
		return 10 * time.Second
	case v == enter && out.gates != "" && now.Sub(c.rec.asked) > time.Minute:
		return 5 * time.Second
	case v == enter && out.gates != "":
		return 2 * time.Second
	case v == release && out.notOurs:
		return max(minBackoff, lateFor-now.Sub(c.mem.late))
	case (v == release || v == deleteNode) && out.gates != "", v == lookHere:
		return longWait
	case v == release, v == deleteNode, v == situations:
		return 10 * time.Second
	case v == storage:
		return 30 * time.Second
	}
	return minBackoff
}

// union is the names of both, in order.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// takeVolumes notes which volumes are in the way, since when, and how fast
// their rebuilds go.
func (c *Component) takeVolumes(now time.Time, volumes []types.DrainVolume) {
	v := &c.mem.view
	stay := map[string]time.Time{}
	v.volumes = volumes
	for i := range v.volumes {
		vol := &v.volumes[i]
		stay[vol.Name] = since(v.stands[vol.Name], now, true)
		vol.Since = c.wall(stay[vol.Name])
		vol.ETA = v.pace.ETA(vol.Name, vol.Percent, now)
		if empty := c.mem.emptied; !empty.IsZero() && now.Sub(later(stay[vol.Name], empty)) >= outlook.NeverAfter {
			outlook.StillInUse(vol)
		}
	}
	v.stands = stay
}
