package drain

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// againAfter is the pause after the drain of a leave, or for k3s, that failed.
const againAfter = time.Hour

// complete keeps the node as it is until it goes down, or is given back.
func complete(f facts, a *action) {
	passedBy := f.rec.Dead || f.rec.Cordoned == 0 // the gates
	switch {
	case f.stopped():
		abandon(f, a, whyStopped(f))
	case f.device() && f.rec.Status.Status <= types.DrainNotRequested && !f.rec.Kept && (!f.rec.Dead || f.answered()):
		drainAgain(f, a)
	case f.requests[byLeave].active && !(f.rec.Dead && f.device() && f.answered()):
		leave(f, a)
	case f.expired():
		expire(f, a)
	case !f.living() || !f.known:
	case passedBy && a.try(f, cordonAfterDeadAPI):
		// Until the device goes down it is a node like any other again.
		a.noteLock(f)
	case passedBy:
	case !f.cordoned() && f.losses() <= maxLosses && f.due(cordon):
		a.verb = cordon
	case f.lacksLock() && a.try(f, takeLock):
		a.noteLock(f)
	}
	if a.rec.Phase == types.PhaseComplete {
		a.waits = cmp.Or(a.waits, f.unusedWhy())
	}
}

// answered reports that the API server answers, and that it has the own node.
func (f facts) answered() bool { return f.deadSince == 0 && f.known }

// noteLock records, before the lock is taken, that it may be this node's.
func (a *action) noteLock(f facts) {
	a.rec.Locked, a.rec.Node, a.rec.NodeBoot = true, f.node.Name, f.node.BootID
}

// drainAgain is for a device that joins an operator's drain at its end: what was
// true then is looked at again, in time of its own.
func drainAgain(f facts, a *action) {
	r := &a.rec
	r.Phase, r.Reason = types.PhaseGates, "EVE requests the drain as well"
	r.Asked, r.Ended, r.Attempt = f.now, 0, 0
	r.Dead, r.Ends, r.Unemptied = false, false, false
	if r.Cordoned != 0 {
		r.Phase, r.Cordoned = types.PhaseEmptying, f.now
	}
}

// afterFailure gives everything back: at once, or where COMPLETE was taken back
// once that has been heard. The status stays until somebody
// requests a drain again; an operator's drain has no status, only a request.
func afterFailure(f facts, a *action) {
	switch {
	case !f.member || f.forced != nil && f.forced.Status <= types.DrainNotRequested:
		abandon(f, a, whyStopped(f))
	case f.hasNewRequest():
		begin(f, a)
	case (f.requests[byLeave].active || f.requests[byK3s].active) && !f.device() && f.now-f.rec.Ended > againAfter:
		begin(f, a) // nobody asks for that a second time
	case heldBack(f, a):
	case f.stopped() && !failed(f.rec.Status.Status):
		abandon(f, a, whyStopped(f))
	default:
		giveBack(f, a)
	}
}

// giveBack undoes what drains have left on the cluster, one thing at a time:
// at once where this boot saw the drain, and when the node is Ready where it is
// from before a boot.
func giveBack(f facts, a *action) {
	if f.up {
		a.rec.Rebooted = false
	}
	switch {
	case !f.known || !f.living() || f.rec.Rebooted && !f.up:
	case f.ourCordon() && !f.tieBreaker && !f.node.CordonKept:
		a.try(f, uncordon)
	case f.node.CordonKept && !f.node.Unschedulable:
		a.try(f, unkeep)
	case f.legacy() && (f.node.CordonedByEVE() || !f.rec.Adopted && f.node.Foreign()):
		a.try(f, uncordonLegacy)
	case !f.rec.Adopted:
		a.rec.Adopted = true
	case f.rec.Locked && (f.member || f.rec.Node != ""), f.lease:
		a.try(f, release)
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

// heardFor is how long a drain that is taken back is said to have failed before its
// lock and its cordon go: an agent that is about to use it after all learns of it, or the
// device is down by then.
const heardFor = time.Minute

// usedBy says what shows that the device is going down, or that an update is under
// way, "" for nothing.
func usedBy(seen observed, r record) string {
	switch s := seen.agent; {
	case s.DeviceReboot:
		return "nodeagent says that the device reboots"
	case s.DevicePoweroff:
		return "nodeagent says that the device powers off"
	case s.DeviceShutdown:
		return "nodeagent says that the device shuts down"
	case s.UpdateInprogress:
		return "nodeagent says that an update is under way"
	}
	for _, path := range seen.markerPaths {
		// One that was there at COMPLETE is of something else. Clocks jump: that it is
		// another one counts, and not that it is newer.
		if mark, ok := seen.markers[path]; ok && mark != r.Markers[path] {
			return path + " says that the device goes down"
		}
	}
	return ""
}

// lookAtMarkers returns which markers have content, and what identifies each
// writing of them. It is never nil.
func lookAtMarkers(paths []string) map[string]string {
	markers := map[string]string{}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			markers[path] = safefile.Mark(info)
		}
	}
	return markers
}

// unusedFor is how long one of EVE's agents has been told COMPLETE, and the
// device is still up.
func (f facts) unusedFor() time.Duration {
	if f.rec.Phase != types.PhaseComplete || !f.device() || f.notPublished || f.rec.Status.Status != types.DrainComplete {
		return 0
	}
	return f.now - max(f.rec.Ended, f.rec.Said)
}

// onlyDevice reports that nobody but EVE's agents asks: for a person, for k3s or for a
// leave, COMPLETE stands for as long as it takes.
func (f facts) onlyDevice() bool {
	_, operator := f.requests[byOperator]
	_, k3s := f.requests[byK3s]
	_, leave := f.requests[byLeave]
	return !operator && !k3s && !leave
}

// expired reports that COMPLETE has been of no use for too long.
func (f facts) expired() bool {
	return f.inUse == "" && f.onlyDevice() && f.unusedFor() >= f.unusedAfter
}

// expire takes COMPLETE back: the drain has failed, and only a request that is
// another one begins a new drain.
func expire(f facts, a *action) {
	result(f, a, types.PhaseNotEmpty, fmt.Sprintf("the device has been allowed to go down for %s and has not: the drain is undone", f.unusedAfter))
	a.rec.Unused, a.rec.Dead, a.rec.Kept = true, false, false
}

// unusedWhy is what to say of a COMPLETE that has not been used for an hour, ""
// before that.
func (f facts) unusedWhy() string {
	if f.unusedFor() < f.hour {
		return ""
	}
	why := fmt.Sprintf("the device may go down and has not for more than %s", f.hour)
	switch {
	case f.inUse != "":
		return why + ": " + f.inUse
	case !f.onlyDevice():
		return why
	}
	return fmt.Sprintf("%s: after %s of this the drain is undone", why, f.unusedAfter)
}

// heldBack reports that what an unused drain holds is not to be given back yet.
func heldBack(f facts, a *action) bool {
	switch {
	case !f.rec.Unused || !f.ourCordon() && !f.rec.Locked:
		return false
	case f.inUse != "":
		a.waits = f.inUse
		return true
	case f.notPublished:
		return true
	}
	return !a.ripe(heardFor - (f.now - max(f.rec.Said, f.rec.Ended)))
}

// reportUnused reports once that nobody uses COMPLETE.
func (c *Component) reportUnused(f facts) {
	if why := f.unusedWhy(); why != "" && !c.mem.unused {
		c.mem.unused = true
		c.report(true, "DrainNotUsed", why)
	}
}
