package drain

import (
	"cmp"
	"time"

	"github.com/zedkube/zedkube/types"
)

// leaveAgain is the pause after a leave that failed.
const leaveAgain = time.Hour

// complete keeps the node as it is until it goes down, or is given back.
func complete(f facts, a *action) {
	passedBy := f.rec.dead || f.rec.cordoned.IsZero() // the gates
	switch {
	case f.stopped():
		over(f, a, whyStopped(f))
	case f.device() && f.rec.status.Status <= types.DrainNotRequested && !f.rec.dead && !f.rec.kept:
		lookAgain(f, a)
	case f.requests[byLeave].stands && !(f.rec.dead && f.device() && f.deadSince.IsZero() && f.known):
		leave(f, a)
	case f.expired():
		expire(f, a)
	case !f.living() || !f.known:
	case passedBy && f.due(cordonAfterDeadAPI):
		// Until the device goes down it is a node like any other again.
		a.verb, a.rec.locked = cordonAfterDeadAPI, true
		a.rec.node, a.rec.nodeBoot = f.node.Name, f.node.BootID
	case passedBy:
		a.wait(f.retry[cordonAfterDeadAPI].Sub(f.now))
	case !f.cordoned() && f.rec.losses <= maxLosses && f.due(cordon):
		a.verb = cordon
	}
	if a.rec.phase == types.PhaseComplete {
		a.waits = cmp.Or(a.waits, f.unusedWhy())
	}
}

// lookAgain is for a device that joins an operator's drain at its end: what was
// true then is looked at again, in time of its own.
func lookAgain(f facts, a *action) {
	r := &a.rec
	r.phase, r.reason = types.PhaseGates, "EVE asks for the drain as well"
	r.asked, r.ended, r.attempt = f.now, time.Time{}, 0
	if !r.cordoned.IsZero() {
		r.phase, r.cordoned = types.PhaseEmptying, f.now
	}
}

// afterFailure gives everything back: at once, or where COMPLETE was taken back
// once that has been heard. The status stays until somebody
// asks anew; an operator's drain has no status, only a request.
func afterFailure(f facts, a *action) {
	switch {
	case !f.member || f.forced != nil && f.forced.Status <= types.DrainNotRequested:
		over(f, a, whyStopped(f))
	case f.asksAnew():
		begin(f, a)
	case f.requests[byLeave].stands && !f.device() && f.now.Sub(f.rec.ended) > leaveAgain:
		begin(f, a) // nobody asks for a leave a second time
	case heldBack(f, a):
	case f.stopped() && !failed(f.rec.status.Status):
		over(f, a, whyStopped(f))
	default:
		giveBack(f, a)
	}
}

// giveBack undoes what drains have left on the cluster, one thing at a time:
// at once where this boot saw the drain, and when the node is Ready where it is
// from before a boot.
func giveBack(f facts, a *action) {
	try := func(v verb) {
		if f.due(v) {
			a.verb = v
		} else {
			a.wait(f.retry[v].Sub(f.now))
		}
	}
	if f.up {
		a.rec.rebooted = false
	}
	switch {
	case !f.known || !f.living() || f.rec.rebooted && !f.up:
	case f.ourCordon() && !f.tieBreaker && !f.node.CordonKept:
		try(uncordon)
	case f.node.CordonKept && !f.node.Unschedulable:
		try(unkeep)
	case f.legacy() && (f.node.CordonedByEVE() || !f.rec.adopted && f.node.Foreign()):
		try(uncordonLegacy)
	case !f.rec.adopted:
		a.rec.adopted = true
	case f.rec.locked && (f.member || f.rec.node != ""), f.lease:
		try(release)
		a.waits = f.holds
	}
}

// legacy reports that the cordon may be one that EVE's own zedkube made before
// this boot and would have undone after it.
func (f facts) legacy() bool {
	n := f.node
	return n.Unschedulable && n.CordonedBy == nil && !f.tieBreaker &&
		!n.TaintedAt.IsZero() && n.TaintedAt.Before(f.booted)
}
