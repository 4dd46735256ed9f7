package drain

import (
	"cmp"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

const (
	relistEvery  = 10 * time.Second // for pods the last list did not know
	refreshEvery = time.Minute      // in case an event was missed
	evictAgain   = 10 * time.Second // an accepted eviction that shows no effect
	checkedFor   = 15 * time.Second // how long a look at everything may be relied on
	loneLook     = 15 * time.Second // for the volumes, where no other node is schedulable
	longWait     = 30 * time.Second // between looks at volumes, of which there may be thousands
)

// empties is the work on a cordoned node: its pods go, then its volumes.
func empties(f facts, a *action) {
	switch {
	case !f.living() || !f.known:
		a.waits = f.why
		return
	case !f.cordoned():
		a.try(f, cordon)
		return
	case f.window > 0 && f.now-f.rec.Cordoned < f.window:
		// Agents that know no lock may be about to drain as well.
		a.waits = "another node may be starting a drain: its agent is not known to use the drain lock"
		a.wait(f.window - (f.now - f.rec.Cordoned))
		return
	case f.due(list) && listDue(f):
		a.verb = list
		return
	case f.lone():
		// An evicted pod would only be down sooner; the gates count all the same.
		a.waits = cmp.Or(f.check.lock, f.check.quorum, f.check.rebuilt(), "no other node is Ready and schedulable")
		a.try(f, check)
		return
	}
	pods := f.evictions()
	if a.evict = pods.evictNow(); len(a.evict) > 0 {
		a.verb = evict
	} else if next := pods.next(f.now); next > 0 {
		a.wait(next)
	}
	switch {
	case pods.left() > 0:
		return
	case len(f.came) > 0:
		a.waits = lacking(f)
		return
	case f.held && f.check.passed(f.now):
		a.waits = "the fault marker delays COMPLETE"
	default:
		a.waits = lacking(f)
	}
	a.try(f, check)
}

// lone reports that no other node would take the pods of a device that goes down.
func (f facts) lone() bool { return f.alone != 0 && !f.onlyLeaves() }

// otherSchedulable reports that another node would, as far as that is known.
func (f facts) otherSchedulable() bool {
	return f.living() && f.known && f.synced && f.alone == 0 && f.others > 0
}

// notLooked is why a drain ends of which nothing is known to be lacking.
const notLooked = "nothing was found in the way, but not everything could be checked in time"

// lacking is what the drain cannot end without, "" where nothing is known to be
// lacking.
func lacking(f facts) string {
	pods, c := f.evictions(), f.check
	switch {
	case !f.living() || !f.known:
		return f.why
	case f.rec.Phase == types.PhaseGates && f.gates != "":
		return f.gates
	case f.rec.Phase == types.PhaseGates && !f.entered && f.rec.Refusals == 0:
		return cmp.Or(f.trouble, "the drain lock and the quorum could not be checked")
	case f.rec.Phase == types.PhaseGates:
		return cmp.Or(f.trouble, "the node could not be cordoned")
	case pods.left() > 0:
		names := keys(pods.remaining())
		return phrase.Counted(len(names), "pod") + " left: " + outlook.Some(names)
	case !f.node.Unschedulable:
		return cmp.Or(f.trouble, "the watch of the nodes does not show the cordon yet")
	case f.list == 0:
		return cmp.Or(f.trouble, "the pods on this node have not been listed yet")
	case len(f.came) > 0:
		return cmp.Or(f.trouble, "the pods on this node have to be listed again, because new ones have appeared: "+outlook.Some(f.came))
	case len(c.pods) > 0 && !c.lone:
		return "the last list still had " + phrase.Counted(len(c.pods), "pod") + ": " + outlook.Some(c.pods)
	case c.lock != "":
		return c.lock
	case len(c.volumes) > 0:
		var names []string
		for _, v := range c.volumes {
			names = append(names, v.Name)
		}
		return phrase.Counted(len(names), "volume") + " in the way: " + outlook.Some(names)
	case c.quorum != "":
		return c.quorum
	case f.window > 0 && f.now-f.rec.Cordoned < f.window:
		return "another node may be starting a drain: its agent is not known to use the drain lock"
	}
	return f.trouble
}

// listDue says when the last fresh list is not worth its name any more.
func listDue(f facts) bool {
	age := f.now - f.list
	pods := f.evictions()
	unseen, longest := pods.unseen(f.list)
	doubt := len(f.came) > 0 || unseen > 0
	switch {
	case f.list == 0:
		return true
	case pods.left() == unseen:
		// As long again as the watch has been late, or a list each second would
		// follow from a watch that hangs.
		return doubt && age >= min(max(longest, time.Second), relistEvery)
	case doubt || !f.synced:
		return age >= relistEvery
	}
	return age >= refreshEvery
}

// checkAgain is the pause between two looks at everything: volumes let go within
// seconds, and a rebuild takes hours.
func checkAgain(waited time.Duration) time.Duration {
	switch {
	case waited < 10*time.Second:
		return time.Second
	case waited < time.Minute:
		return 3 * time.Second
	case waited < 10*time.Minute:
		return 10 * time.Second
	}
	return longWait
}
