package drain

import (
	"errors"
	"math"
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

// applyAnswer takes in what came of one call.
func (s *state) applyAnswer(seen observed, a answer) {
	s.noteSilence(seen.now, a.done, a.out)
	if !a.done.cut {
		s.applyOutcome(seen, a.done.call, a.out)
	}
}

// noteSilence notes whether writes are answered; a call that was cut short is no
// evidence, but its write may still arrive.
func (s *state) noteSilence(now time.Duration, done runningCall, out outcome) {
	m := &s.mem
	// The conditions are for people: that they cannot be shown ends no drain.
	silent := errors.Is(out.err, types.ErrNoAnswer) && done.verb != conditions
	if done.cut || silent && done.verb != uncordon { // or one that is tried for ever would keep a silence from its end
		m.late = now
	}
	switch {
	case done.cut, silent && done.verb == uncordon: // no drain needs one: it ends none either
	case silent:
		m.mute = since(m.mute, done.now, true)
	case out.did(writeLock) || out.did(freeLock) || writes[done.verb]: // a no is an answer, and so is "not now"
		m.mute = 0
	}
}

// applyOutcome takes in what a call of the present drain has found.
func (s *state) applyOutcome(seen observed, done call, out outcome) {
	m, now := &s.mem, seen.now
	s.noteError(done.verb, out.err)
	s.pause(now, done.verb, out)
	if out.did(readLock) {
		m.lock, m.lockKnown = out.lock, true
	}
	if out.did(readPods) {
		s.applyList(now, out.pods, done.nodePods)
	}
	if out.looked {
		m.looked = done.now
		s.applyLook(seen, out.only)
	}
	if out.stored {
		s.applyVolumes(now, slices.Clone(out.volumes))
	}
	if done.verb == evict {
		s.applyEvictions(now, done.pods, out.results)
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
	s.applyResult(now, done, out)
}

// applyResult takes in what a call that went well was for.
func (s *state) applyResult(now time.Duration, done call, out outcome) {
	m := &s.mem
	switch done.verb {
	case enter:
		m.gates, m.quorum, m.enteredAt = out.gates, out.check.quorum, 0
		if out.gates == "" {
			m.enteredAt = now
		}
	case cordon, cordonAfterDeadAPI:
		s.applyCordon(now, done)
	case uncordon:
		why := "no drain is in progress"
		if drains(s.rec.Phase) {
			why = "its drain has not begun, and waits"
		}
		s.report(false, "Uncordoned", "node uncordoned: "+why)
	case uncordonLegacy:
		s.rec.Adopted = true
		s.report(false, "FormerCordonUndone", "node uncordoned: EVE's own zedkube had cordoned it before this boot")
	case release:
		m.holds = out.gates
		if out.did(freeLock) {
			m.freed = now
		}
		m.notLock = ""
		if out.notOurs && out.lock.Holder == done.node.Name {
			m.notLock = out.lock.Version
		}
		// A write that was given up may yet take the lock.
		if out.notOurs && (m.late == 0 || now-m.late >= lateFor) {
			s.rec.Locked = false
		}
	case deleteNode:
		m.holds = out.gates
		m.ended = out.ended
		m.deleted = out.gates == "" && !out.ended
	case check:
		m.check = out.check
		m.check.at = now
		if m.check.uncordoned && !m.cordonSeen && m.cordonAgain != 0 { // the table may show it later, and then it is a loss
			m.cordonAgain = 0
			m.unseen++
		}
	case conditions:
		m.view.shown, m.view.shownAt = done.cond, now
	case situations:
		m.view.situations = out.situation
		m.view.stranded = union(m.view.stranded, outlook.Stranded(out.situation))
	}
}

// noteError keeps what the loop is to log; what was only asked or told is worth
// a line when it changes.
func (s *state) noteError(v verb, err error) {
	if v < situations {
		if err != nil || v == s.mem.errVerb {
			s.mem.lastErr, s.mem.errVerb = err, v
		}
		return
	}
	s.reportOnce(&s.mem.reportErr, err, "could not determine everything that the drain waits for, or show it")
}

// applyCordon notes that the node takes no more pods.
func (s *state) applyCordon(now time.Duration, done call) {
	r := &s.rec
	if done.verb == cordonAfterDeadAPI {
		r.Unemptied = r.Unemptied || r.Dead
		r.Dead = false
	}
	if r.Cordoned == 0 && (done.verb == cordon || r.Phase != types.PhaseGates) { // a drain that began again meanwhile takes the lock first
		r.Cordoned = now
	}
	r.Refusals = 0
	r.Node, r.NodeBoot = done.node.Name, done.node.BootID
	// What was listed before may have grown since.
	s.mem.cordonAgain, s.mem.cordonSeen, s.mem.list, s.mem.check = now, false, 0, checked{}
}

// pause says when a verb may be called again: later and later while it fails.
func (s *state) pause(now time.Duration, v verb, out outcome) {
	m := &s.mem
	var wait time.Duration
	switch {
	case out.err != nil && v == cordon && errors.Is(out.err, types.ErrRefused):
		s.rec.Refusals++
		wait = cordonEvery
	case out.err != nil:
		wait = min(max(2*m.backoff[v], minBackoff), maxBackoff)
		if v == check {
			wait = min(wait, maxLookAgain) // many requests, any of which an overloaded server may turn away
		}
		m.backoff[v] = wait
	default:
		delete(m.backoff, v)
		wait = s.pauseAfterSuccess(now, v, out)
	}
	m.retry[v] = now + wait
}

// pauseAfterSuccess is the pause after a call that went well, and perhaps found that
// the time has not come yet.
func (s *state) pauseAfterSuccess(now time.Duration, v verb, out outcome) time.Duration {
	switch {
	// The table does not show the cordon yet, and the look does not count. A cordon that was undone is not made again
	// and again so soon.
	case v == check && s.mem.list == 0 && !out.check.uncordoned:
		return minBackoff
	case v == check && len(out.check.volumes) > 0:
		return checkAgain(s.emptyFor(now))
	case v == check: // what has passed is relied on for no longer than checkedFor
		return min(checkAgain(s.emptyFor(now)), 10*time.Second)
	case v == enter && out.weighed && now-s.rec.Asked > 10*time.Minute:
		return 10 * time.Second
	case v == enter && out.gates != "" && now-s.rec.Asked > time.Minute:
		return 5 * time.Second
	case v == enter && out.gates != "":
		return 2 * time.Second
	case v == release && out.notOurs && s.mem.late != 0:
		return max(minBackoff, lateFor-(now-s.mem.late))
	case v == release && out.notOurs:
		return minBackoff
	case (v == release || v == deleteNode) && out.gates != "", v == checkLeave:
		return longWait
	case v == release, v == deleteNode, v == situations:
		return 10 * time.Second
	case v == takeLock: // sooner than yieldFor
		return 5 * time.Second
	case v == storage:
		return 30 * time.Second
	}
	return minBackoff
}

// emptyFor is for how long no pod has been left; for ever where that is not known.
func (s *state) emptyFor(now time.Duration) time.Duration {
	if s.mem.emptied == 0 {
		return math.MaxInt64
	}
	return now - s.mem.emptied
}

// union is the names of both, in order.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// applyVolumes notes which volumes are in the way, since when, and how fast
// their rebuilds go.
func (s *state) applyVolumes(now time.Duration, volumes []types.DrainVolume) {
	v := &s.mem.view
	stay := map[string]time.Duration{}
	v.volumes = volumes
	for i := range v.volumes {
		vol := &v.volumes[i]
		stay[vol.Name] = since(v.blockingSince[vol.Name], now, true)
		vol.Since = s.wallTime(stay[vol.Name])
		vol.ETA = v.pace.ETA(vol.Name, vol.Percent, now)
		if empty := s.mem.emptied; empty != 0 && now-max(stay[vol.Name], empty) >= outlook.NeverAfter {
			outlook.StillInUse(vol)
		}
	}
	v.blockingSince = stay
}

// applyLook notes what a look found a leave to lose.
func (s *state) applyLook(seen observed, only []types.LeaveVolume) {
	was, now := s.rec.Look, seen.now
	omitted := max(0, len(only)-types.MaxLeaveVolumes)
	only = only[:len(only)-omitted]
	if was != nil && was.BootID == seen.bootID && slices.Equal(was.Volumes, only) && was.Omitted == omitted &&
		now-was.Uptime < noteEvery {
		return
	}
	s.rec.Look = &types.StorageLook{BootID: seen.bootID, Uptime: now, At: s.wallTime(now), Volumes: only, Omitted: omitted}
}
