package drain

import (
	"fmt"
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
	// sureAfter is how long an own node has to be missing, which may just be
	// registering, and all the others unable to take pods, which may be back soon.
	sureAfter    = time.Minute
	maxRefusals  = 10
	maxLosses    = 3                // of the cordon, to somebody else
	settle       = 10 * time.Second // until the table shows a cordon of ours
	attempts     = 5
	relistEvery  = 10 * time.Second // for pods the last list did not know
	refreshEvery = time.Minute      // in case an event was missed
	evictAgain   = 10 * time.Second // an accepted eviction that shows no effect
)

// decide is the drain's rule book.
func decide(f facts) action {
	s := f.status.Status
	switch {
	case f.forced != nil:
		return override(f)
	case s == types.DrainNotSupported && f.member:
		return become(f, types.DrainNotRequested, "this node belongs to a cluster")
	case s == types.DrainNotSupported:
		return idle(f)
	case s == types.DrainNotRequested && f.asks():
		return become(f, types.DrainRequested, "a NodeDrainRequest stands")
	case s == types.DrainNotRequested:
		return idle(f)
	case underWay(s):
		return drain(f)
	case failed(s) && f.asksAnew():
		return become(f, types.DrainRequested, "a new NodeDrainRequest stands")
	case failed(s):
		return stand(f)
	case s == types.DrainComplete && f.withdrawn():
		return become(f, types.DrainNotRequested, "the NodeDrainRequest was withdrawn")
	case s == types.DrainComplete:
		return stand(f)
	case f.member:
		return become(f, types.DrainNotRequested, "first value: this node belongs to a cluster")
	}
	return become(f, types.DrainNotSupported, "first value: this node belongs to no cluster yet")
}

// become publishes s for whoever asks.
func become(f facts, s types.DrainStatus, reason string) action {
	a := action{status: types.NodeDrainStatus{Status: s, RequestedBy: f.by()}, reason: reason}
	a.stop = !underWay(s)
	return a
}

// stay keeps the state; its requester follows the requests.
func stay(f facts) action { return become(f, f.status.Status, "the requester changed") }

// idle is a node without a drain: a cordon of ours has no business there.
func idle(f facts) action {
	a := stay(f)
	if f.withdrawn() {
		giveBack(f, &a)
	}
	return a
}

// giveBack undoes a cordon of ours: at once where this boot saw the drain, and
// when the node is Ready where the cordon is left from before a boot.
func giveBack(f facts, a *action) {
	switch {
	case !f.ourCordon() || f.tieBreaker || !f.living() || f.newBoot && f.node.Ready != types.ConditionTrue:
	case f.due(uncordon):
		a.verb = uncordon
	default:
		a.again = f.retry[uncordon].Sub(f.now)
	}
}

// drain is the way from REQUESTED to the end.
func drain(f facts) action {
	switch s := f.status.Status; {
	case f.withdrawn():
		return become(f, types.DrainNotRequested, "the NodeDrainRequest was withdrawn")
	case !f.asks():
		a := stay(f)
		a.waits = "it is not known yet whether the NodeDrainRequest still stands"
		return a
	case s == types.DrainRequested:
		return become(f, types.DrainStarting, "the drain starts")
	case s == types.DrainCordoned && f.now.Sub(f.since) >= cordonedFor:
		return become(f, types.DrainRetrying, "the drain goes on")
	case s == types.DrainStarting && !f.cordonedAt.IsZero() && f.living():
		return become(f, types.DrainCordoned, "cordonNode: the node takes no more pods")
	}
	if s, reason := ending(f); reason != "" {
		return finish(f, s, reason)
	}
	a := stay(f)
	work(f, &a)
	return a
}

// ending is how the drain ends now; without a reason it does not.
func ending(f facts) (types.DrainStatus, string) {
	quiet := later(f.asked, f.silentSince)
	starting := f.status.Status == types.DrainStarting
	switch {
	case !f.living() && f.now.Sub(quiet) >= f.skip:
		// A dead Kubernetes must not keep the device from its reboot for ever.
		return types.DrainComplete, fmt.Sprintf("the API server has been silent for %s: nothing can be drained", f.skip)
	case !f.missing.IsZero() && f.now.Sub(later(f.asked, f.missing)) >= sureAfter:
		return types.DrainComplete, "this node is not one of the cluster's"
	case f.now.Sub(f.asked) >= f.timeout:
		return types.DrainFailedDrain, fmt.Sprintf("%d pods are left after %s", left(f.pods), f.timeout)
	case starting && f.refusals >= maxRefusals:
		return types.DrainFailedCordon, fmt.Sprintf("cordonNode was refused %d times", f.refusals)
	case f.refusals >= maxRefusals || f.losses > maxLosses:
		return types.DrainFailedDrain, fmt.Sprintf("cordonNode: undone by somebody %d times, refused %d times", f.losses, f.refusals)
	case starting || f.held || !f.living() || !f.known || !f.cordoned():
		return 0, ""
	case f.synced && f.others == 0:
		return types.DrainComplete, "there is no other node: nothing is evicted"
	case !f.alone.IsZero() && f.now.Sub(f.alone) >= sureAfter:
		return types.DrainComplete, "no other node is Ready and takes pods: nothing is evicted"
	case empty(f):
		return types.DrainComplete, "no pod is left to evict"
	}
	return 0, ""
}

// finish publishes the final state as soon as the requester has seen the drain.
func finish(f facts, s types.DrainStatus, reason string) action {
	if by := f.by(); by != f.status.RequestedBy {
		return stay(f) // a new requester has to see the drain first
	}
	if wait := edge - f.now.Sub(f.standing); wait > 0 {
		a := stay(f)
		a.stop, a.again = true, wait
		return a
	}
	return become(f, s, reason)
}

// stand keeps a final state and tells every requester of it in turn.
func stand(f facts) action {
	a := stay(f)
	a.status.RequestedBy, a.reason = f.status.RequestedBy, "for the other requester"
	tell := func(r request, by types.DrainRequester) bool { return r.stands && !f.told[by] }
	switch wait := edge - f.now.Sub(f.since); {
	case tell(f.deviceOp, types.DrainRequesterDeviceOp):
		a.status.RequestedBy = types.DrainRequesterDeviceOp
	case tell(f.update, types.DrainRequesterUpdate) && f.deviceOp.stands && wait > 0:
		a.again = wait
	case tell(f.update, types.DrainRequesterUpdate):
		a.status.RequestedBy = types.DrainRequesterUpdate
	}
	if failed(f.status.Status) {
		giveBack(f, &a)
	}
	return a
}

// override obeys the force file. While it stands the drain stands still.
func override(f facts) action {
	forced := *f.forced
	if forced.Status == types.DrainComplete {
		return overrideComplete(f)
	}
	if forced.RequestedBy <= types.DrainRequesterNone {
		forced.RequestedBy = f.by()
	}
	a := action{status: forced, reason: "forced by the force file", stop: true}
	if forced.Status <= types.DrainNotRequested {
		giveBack(f, &a)
	}
	return a
}

// overrideComplete ends a drain once. A drain that is about to begin, or whose
// request may yet be heard of, is waited for; without one the file is used up.
func overrideComplete(f facts) action {
	const reason = "forced by the force file"
	s := f.status.Status
	begins := f.asks() && (s == types.DrainNotRequested || !final(s) && f.member)
	var a action
	switch {
	case underWay(s) && f.asks():
		a = finish(f, types.DrainComplete, reason)
	case failed(s) && f.asks(): // seen by its requester already
		a = become(f, types.DrainComplete, reason)
	case underWay(s), failed(s) && !f.withdrawn(), begins:
		f.forced = nil
		return decide(f)
	default:
		a = stay(f)
		a.status, a.consume = f.status, true
		return a
	}
	a.consume = a.status.Status == types.DrainComplete
	return a
}
