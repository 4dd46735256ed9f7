package drain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// sureAfter is how long an own node has to be missing, which may just be
	// registering, and all the others unable to take pods, which may be back soon.
	sureAfter   = time.Minute
	maxRefusals = 10
	maxLosses   = 3                // of the cordon, to somebody else
	settle      = 10 * time.Second // until the tables show a cordon, or a lock, of ours
	attempts    = 5
)

// decide is the drain's rule book: which phase follows, what to do in it, and
// what NodeDrainStatus says meanwhile.
func decide(f facts) action {
	if f.outdated() {
		f.rec.Look = nil // as if there had been none, for an operator's consent too
	}
	a := action{rec: f.rec}
	a.rec.Requests = f.standing()
	if !f.requests[byLeave].active {
		a.rec.Look = nil // what it found may have changed before the next leave
	}
	switch {
	case f.forced != nil && f.forced.Status == types.DrainComplete && forceComplete(f, &a):
	case f.rec.Phase == types.PhaseIdle:
		idle(f, &a)
	case drains(f.rec.Phase):
		drain(f, &a)
	case f.rec.Phase == types.PhaseComplete:
		complete(f, &a)
	default:
		afterFailure(f, &a)
	}
	a.stop = a.stop || !drains(a.rec.Phase) && drains(f.rec.Phase)
	if f.known && !f.legacy() {
		a.rec.Adopted = true // also while a drain waits: before it there is no stamp, and others wait for that
	}
	nextStatus(f, &a)
	return a
}

// idle is a node without a drain: nothing of ours has any business there.
func idle(f facts, a *action) {
	if a.rec.Left && !f.requests[byLeave].active {
		a.rec.Left = false // the membership has heard of it
	}
	if !f.stopped() && f.asks() && !a.rec.Left {
		begin(f, a)
		return
	}
	giveBack(f, a)
}

// begin starts a drain. What the one before left of the cordon and the lock is
// taken over.
func begin(f facts, a *action) {
	a.rec = f.rec.between()
	a.rec.Phase, a.rec.Reason, a.rec.Asked = types.PhaseGates, "the drain starts", f.now
	a.rec.Requests, a.rec.Silent = f.standing(), f.rec.Silent
}

// abandon ends a drain without a result, and what it holds is given back.
func abandon(f facts, a *action, reason string) {
	a.rec = f.rec.between()
	a.rec.Phase, a.rec.Reason = types.PhaseIdle, reason
	a.rec.Requests, a.rec.Left = f.standing(), f.rec.Left
	a.stop = true
}

// result ends a drain with one.
func result(f facts, a *action, phase types.DrainPhase, reason string) {
	a.rec.Phase, a.rec.Reason, a.rec.Ended = phase, reason, f.now
	a.stop = true
	if phase == types.PhaseComplete {
		a.rec.Markers = f.markers
		if f.missing != 0 {
			a.rec.Cordoned = 0 // the cordon went with the Node, and the lock with both
		}
		return
	}
	// A later request with the same time is the same request, heard of again.
	var failed []time.Time
	for _, name := range requesters {
		if r, ok := a.rec.Requests[name]; ok {
			failed = append(failed, r.RequestedAt)
		}
	}
	a.rec.Failed = failed
}

// whyStopped is why no drain may run.
func whyStopped(f facts) string {
	switch {
	case !f.member:
		return "this node belongs to no cluster"
	case f.forced != nil && f.forced.Status <= types.DrainNotRequested:
		return "stopped by the force file"
	}
	return "the NodeDrainRequest was withdrawn"
}

// drain is the way from the request to the end.
func drain(f facts, a *action) {
	if f.stopped() {
		abandon(f, a, whyStopped(f))
		return
	}
	if f.rec.Phase == types.PhaseGates && f.rec.Cordoned != 0 {
		a.rec.Phase, a.rec.Reason = types.PhaseEmptying, "cordonNode: the node is cordoned"
		return
	}
	if phase, reason, dead := ending(f); phase != "" {
		if wait := notYetPublishable(f); wait > 0 {
			// What is true now may not be when it can be said.
			a.stop = true
			a.wait(wait)
			return
		}
		result(f, a, phase, reason)
		a.rec.Dead, a.rec.Ends, a.rec.Unemptied = dead, reason == endsHere, reason == noOthers || reason == noneReady || reason == notListed
		return
	}
	switch {
	case f.onlyLeaves() && (f.gone() || f.isDead(f.rec.Asked)):
		a.waits = f.atStake()
		f.checkLeave(a)
		return
	case f.rec.Phase == types.PhaseGates:
		gates(f, a)
		return
	}
	a.rec.Attempt = max(f.rec.Attempt, min(attempts, 1+int((f.now-f.rec.Cordoned)/max(f.timeout/attempts, 1))))
	empties(f, a)
}

// gone reports that the own node is none of the cluster's. One that was never
// seen may be joining, and to cut a join of etcd short is worse than to wait as
// long as for an API server that does not answer.
func (f facts) gone() bool {
	if f.missing == 0 || f.now-max(f.rec.Asked, f.missing) < sureAfter {
		return false
	}
	return f.registered || f.now-f.missing >= f.skip
}

// notYetPublishable is how long it is until the end of a drain can be said.
func notYetPublishable(f facts) time.Duration {
	switch s := f.rec.Status; {
	case !f.device():
		return 0
	case f.notPublished:
		return time.Second
	case s.Status == types.DrainCordoned:
		return max(cordonedFor-(f.now-f.rec.Said), time.Millisecond)
	case !underWay(s.Status) || s.Status == types.DrainRequested || s.RequestedBy != f.by():
		return time.Millisecond
	case s.Status == types.DrainStarting && f.rec.Cordoned != 0:
		return time.Millisecond
	}
	return edge - (f.now - f.rec.Standing)
}

// ending is how the drain ends now; without a phase it does not.
func ending(f facts) (phase types.DrainPhase, reason string, dead bool) {
	r := f.rec
	emptying := r.Phase == types.PhaseEmptying
	switch {
	case f.isDead(r.Asked) && (!f.onlyLeaves() || f.atStake() == ""):
		// A dead Kubernetes must not keep the device from its reboot for ever.
		return types.PhaseComplete, fmt.Sprintf("the API server has not answered for %s: nothing can be drained", f.skip), true
	case f.gone() && (!f.onlyLeaves() || f.atStake() == ""):
		return types.PhaseComplete, notListed, false
	case f.now-r.began() >= f.timeout:
		return types.PhaseNotEmpty, fmt.Sprintf("after %s: %s", f.timeout, cmp.Or(lacking(f), notLooked)), false
	case !emptying && r.Refusals >= maxRefusals:
		return types.PhaseNoCordon, fmt.Sprintf("cordonNode was refused %d times", r.Refusals), false
	case r.Refusals >= maxRefusals || f.losses() > maxLosses:
		return types.PhaseNotEmpty, fmt.Sprintf("cordonNode: undone by another client %d times, refused %d times", f.losses(), r.Refusals), false
	case !emptying || f.held || !f.living() || !f.known || !f.cordoned():
		return "", "", false
	case f.endsWith():
		return types.PhaseComplete, endsHere, false
	case !f.onlyLeaves() && f.synced && f.others == 0:
		return types.PhaseComplete, noOthers, false
	case !f.node.Unschedulable: // a look counts once the table shows the cordon, too: somebody may have undone it since
		return "", "", false
	case f.lone() && f.now-f.alone >= max(sureAfter, f.window) && f.check.open(f.now):
		return types.PhaseComplete, noneReady, false
	case f.check.passed(f.now) && len(f.came) == 0 && f.evictions().left() == 0:
		return types.PhaseComplete, "no pod is left to evict and no volume blocks the drain" + f.evictions().leftAlone(), false
	}
	return "", "", false
}

// The reasons of a drain that evicts nothing: it cannot, or that would only take the pods down sooner.
const (
	notListed = "this node is not in the cluster's list of nodes"
	noOthers  = "there is no other node: nothing is evicted"
	noneReady = "no other node is Ready and schedulable: nothing is evicted"
)

// becauseForced is the reason of a drain that an operator called complete.
const becauseForced = "forced by the force file"

// forceComplete ends a drain once, in the operator's name. It reports false
// where the drain is about to begin, or its request may yet be heard of.
func forceComplete(f facts, a *action) bool {
	switch phase := f.rec.Phase; {
	case !f.member:
	case drains(phase), phase == types.PhaseComplete, ends(phase) && f.asks():
		if phase != types.PhaseComplete {
			result(f, a, types.PhaseComplete, becauseForced)
		}
		if !drains(phase) && phase != types.PhaseComplete {
			a.rec.Cordoned = 0 // the failure has undone it and given the lock back
		}
		a.rec.Kept = true
		a.consume = true
		return true
	case f.asks() || f.notReceived:
		return false
	}
	a.consume = true
	giveBack(f, a)
	return true
}

// told reports whether a requester has been told of the end.
func told(r record, by types.DrainRequester) bool { return slices.Contains(r.Told, by) }

// yieldFor is how long a node that has had the lock leaves it to those who wait
// for it: longer than they may take to look again.
const yieldFor = 6 * time.Second

// gates is the way to the cordon: one node of the cluster at a time, and never
// without quorum.
func gates(f facts, a *action) {
	switch {
	case !f.living() || !f.known:
		a.waits = f.why
	case !f.entered && f.gates != "" && f.cordonedIdly() && a.try(f, uncordon):
		a.waits = f.gates
	case f.unlocked != "":
		a.waits = f.unlocked
	case !f.entered && f.queued && f.freed != 0 && f.now-f.freed < yieldFor:
		a.waits = "another node waits for the drain lock, which this one has just held"
		a.wait(yieldFor - (f.now - f.freed))
	case !f.entered:
		a.waits = f.gates
		if a.try(f, enter) {
			a.noteLock(f)
		}
	default:
		a.try(f, cordon)
	}
}

// cordonedIdly reports that the cordon of an earlier drain stands, as one before a boot, and this node does not have the
// lock. The cordon would be of no use for hours; and beside another node that drains under the lock none might be
// schedulable, and that drain would go ahead as if this node could take none of its pods. Where nobody is seen to have
// the lock, it may be had in a moment, and the table may be late.
func (f facts) cordonedIdly() bool {
	holder := f.lockLease.Holder
	return f.up && f.ourCordon() && !f.tieBreaker && !f.node.CordonKept && holder != f.node.Name &&
		(holder != "" || f.now-f.waiting >= settle)
}
