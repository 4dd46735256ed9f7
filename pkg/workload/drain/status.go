package drain

import (
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// edge is how long one of the states under way has to stand before a final
	// one: EVE's zedagent acts on the end of nodeagent's "drain in progress",
	// so nodeagent has to see its beginning (docs/wire.md, "NodeDrainStatus").
	edge = 2 * time.Second
	// cordonedFor keeps CORDONED short: EVE's zedagent lets a second reboot or
	// shutdown through while it stands.
	cordonedFor = time.Second
)

// nextStatus takes NodeDrainStatus one step further on its way to where the drain is.
// EVE's agents get the status of the drain that they asked for: nobody else's exists
// for them, or they would wait for its end.
func nextStatus(f facts, a *action) {
	r := &a.rec
	was := r.Status
	next := types.NodeDrainStatus{Status: was.Status, RequestedBy: f.by()}
	switch s := was.Status; {
	case !f.member:
		next.Status = types.DrainNotSupported
	case s <= types.DrainNotSupported:
		next.Status = types.DrainNotRequested
	case r.Left && f.device(): // the membership hears of it in a moment, and then NOTSUPPORTED is true
	case failed(s) && (r.Phase == types.PhaseNoCordon || r.Phase == types.PhaseNotEmpty),
		s == types.DrainComplete && r.Phase == types.PhaseComplete && f.device():
		next = keepFinal(f, a)
	case s == types.DrainComplete && r.Unused && f.device():
		next.Status = types.DrainFailedDrain
	case r.Phase == types.PhaseIdle || !f.device(), s == types.DrainComplete: // that is another drain's
		next.Status = types.DrainNotRequested
	case f.notPublished && underWay(s): // every state of a drain is to be seen
	case next.RequestedBy != was.RequestedBy && underWay(s):
		// A new requester has to see the drain as it is first.
	case s == types.DrainRequested:
		next.Status = types.DrainStarting
	case s == types.DrainStarting && r.Cordoned != 0:
		next.Status = types.DrainCordoned
	case s == types.DrainCordoned && a.ripe(cordonedFor-(f.now-r.Said)):
		next.Status = types.DrainRetrying
	case s == types.DrainCordoned:
	case underWay(s) && ends(r.Phase) && a.ripe(edge-(f.now-r.Standing)):
		next.Status = finals[r.Phase]
	case underWay(s):
	case failed(s) && r.Phase == types.PhaseComplete: // seen by its requester already
		next.Status = types.DrainComplete
	default:
		next.Status = types.DrainRequested
	}
	noteStatus(f, r, next)
	a.published = f.masked(r.Status)
}

// masked is what is published for status: an operator's word instead, where the
// force file is no COMPLETE, which ends the drain itself.
func (f facts) masked(status types.NodeDrainStatus) types.NodeDrainStatus {
	if f.forced == nil || f.forced.Status == types.DrainComplete {
		return status
	}
	mask := *f.forced
	if mask.RequestedBy <= types.DrainRequesterNone {
		mask.RequestedBy = f.by()
	}
	return mask
}

var finals = map[types.DrainPhase]types.DrainStatus{
	types.PhaseComplete: types.DrainComplete,
	types.PhaseNoCordon: types.DrainFailedCordon,
	types.PhaseNotEmpty: types.DrainFailedDrain,
}

// try makes the call, or waits until it is due, and reports which.
func (a *action) try(f facts, v verb) (made bool) {
	if !f.due(v) {
		a.wait(f.retry[v] - f.now)
		return false
	}
	a.verb = v
	return true
}

// wait wishes for a step in d, if not sooner.
func (a *action) wait(d time.Duration) {
	if a.again <= 0 || d < a.again {
		a.again = d
	}
}

// ripe reports that nothing is left to wait, or else waits.
func (a *action) ripe(wait time.Duration) bool {
	if wait > 0 {
		a.wait(wait)
	}
	return wait <= 0
}

// noteStatus writes down that next is said.
func noteStatus(f facts, r *record, next types.NodeDrainStatus) {
	was := r.Status
	if next == was {
		return
	}
	r.Status, r.Said = next, f.now
	if underWay(next.Status) && (!underWay(was.Status) || next.RequestedBy != was.RequestedBy) {
		r.Standing = f.now
	}
	if next.Status != was.Status {
		r.Told = nil
	}
	if final(next.Status) {
		r.Told = append(slices.Clone(r.Told), next.RequestedBy)
	}
}

// keepFinal keeps a final state and tells every requester of it in turn.
func keepFinal(f facts, a *action) types.NodeDrainStatus {
	next := a.rec.Status
	tell := func(by types.DrainRequester) bool { return f.requests[agents[by]].active && !told(a.rec, by) }
	switch {
	case tell(types.DrainRequesterDeviceOp):
		next.RequestedBy = types.DrainRequesterDeviceOp
	case tell(types.DrainRequesterUpdate) && f.requests[byDeviceOp].active && !a.ripe(edge-(f.now-a.rec.Said)):
	case tell(types.DrainRequesterUpdate):
		next.RequestedBy = types.DrainRequesterUpdate
	case f.device() && !f.asking(next.RequestedBy) && told(a.rec, f.by()):
		next.RequestedBy = f.by() // the other one has gone
	}
	return next
}
