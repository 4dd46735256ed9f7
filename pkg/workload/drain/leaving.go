package drain

import (
	"context"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

// A leave is for good: EVE's kube container empties Longhorn's replica directory
// once EdgeNodeClusterStatus is withdrawn (docs/wire.md, "Kube container"). So
// it is judged more strictly than a drain for a reboot: no drain policy lets the
// last healthy replica of a volume go, and what was not looked at is taken for
// the last one. Only an operator's consent says otherwise
// (docs/decisions/0025-leaving-is-for-good.md).

// endsHere is the reason of a drain that evicts nothing.
const endsHere = "the cluster ceases to exist with this node, as consented to: nothing is evicted"

const (
	// noteEvery is how old the time of an unchanged look may get in the journal:
	// each is a write to the disk.
	noteEvery = time.Minute
	// lookedFor is how long before the API server became silent the last look at
	// the volumes may have been made: a pause, a whole call, and noteEvery for an
	// agent that has started again since.
	lookedFor = longWait + callTimeout + noteEvery + 30*time.Second
)

// leave deletes the Node of a node that is empty, last of all, and only after
// all others that want the drain have been told of its end.
func leave(f facts, a *action) {
	heard := !f.device() || f.rec.Status.Status == types.DrainComplete && f.now-f.rec.Said >= edge &&
		(!f.requests[byUpdate].active || told(f.rec, types.DrainRequesterUpdate))
	switch {
	case !heard:
		a.wait(edge)
	case f.ended: // the volumes were looked at just before
		departed(f, a)
	case f.answered() && (f.rec.Dead || f.rec.Ends && !f.ends):
		drainAgain(f, a) // nothing was evicted, and now it can be
		a.rec.Reason = "other nodes can run its pods and hold its volumes again"
	case f.rec.Unemptied && !f.rec.Kept && f.answered() && (f.onlyLeaves() || !f.device() && f.otherSchedulable()):
		drainAgain(f, a)
		a.rec.Reason = "nothing was evicted for another request: for a leave it is"
	case f.rec.Unemptied && !f.rec.Kept && !f.onlyLeaves() && !f.gone():
		a.waits = "nothing was evicted: the node leaves once nobody else requests its drain"
	case f.rec.Dead || f.gone() || f.deleted && !f.known && f.missing != 0:
		if why := f.atStake(); why != "" {
			a.waits = why
			f.checkLeave(a)
			return
		}
		departed(f, a)
	case f.isDead(f.rec.Ended):
		a.rec.Dead = true
	case !f.living() || !f.known:
		a.waits = f.why
	case !f.node.Deleted.IsZero():
		a.waits = "its Node is being deleted, blocked by finalizers " + outlook.Some(f.node.Finalizers)
		if why := f.atStake(); why != "" {
			a.waits += "; " + why
		}
		f.checkLeave(a) // that may take days, in which the last other replica can be lost
	default:
		a.waits = f.holds // while the call is made too, or its reason would come and go
		a.try(f, deleteNode)
	}
}

// departed is the end of a leave.
func departed(f facts, a *action) {
	abandon(f, a, "the node has left the cluster")
	a.rec.Left, a.rec.Locked = true, false
}

// isDead reports that the API server has been silent for as long as a drain waits
// for it, which began at since.
func (f facts) isDead(since time.Duration) bool {
	return f.deadSince != 0 && f.now-max(since, f.deadSince) >= f.skip
}

// outdated reports that the last look is from so long before the API server
// became silent that it says nothing of what there was then.
func (f facts) outdated() bool {
	return f.deadSince != 0 && (f.looked == 0 || f.looked < f.deadSince-lookedFor)
}

// atStake says what data would be lost by a leave without anybody's consent, as
// far as the last look knows; "" for none. Data is at stake: what this drain has
// not looked at in this boot is taken for the only copy. Where the own Node is
// gone, only a look that began after that counts.
func (f facts) atStake() string {
	l := f.rec.Look
	if l == nil || f.bootID == "" || l.BootID != f.bootID || f.missing != 0 && f.looked < f.missing {
		if f.consent != nil && f.consent.Unknown {
			return ""
		}
		return "the volumes were not checked in this leave, so this node may have the only copy of some data; " + outlook.RemedyGiveUpData
	}
	if l.Omitted > 0 {
		return fmt.Sprintf("%d volumes have no healthy replica except on this node, more than can be consented to", len(l.Volumes)+l.Omitted)
	}
	return lost(f.consent.Lacks(l.Volumes))
}

// lost says which volumes a leave would take along, "" for none.
func lost(volumes []types.LeaveVolume) string {
	if len(volumes) == 0 {
		return ""
	}
	var names []string
	for _, v := range volumes {
		names = append(names, v.Name)
	}
	have := "have"
	if len(names) == 1 {
		have = "has"
	}
	return phrase.Counted(len(names), "volume") + " " + have + " no healthy replica except on this node: " + outlook.Some(names) + "; " + outlook.RemedyGiveUpData
}

// checkLeave looks at the volumes of a node that is in no list any more, or whose
// Node is being deleted.
func (f facts) checkLeave(a *action) {
	if f.living() && (!f.known || !f.node.Deleted.IsZero()) {
		a.try(f, checkLeave)
	}
}

// endsWith reports that the cluster ends with this node, and that an operator
// has consented to it.
func (f facts) endsWith() bool {
	return f.onlyLeaves() && f.synced && f.ends && f.consent != nil && f.consent.Ends
}

// recordLoss puts on record that a leave takes data along by consent.
func (c *Component) recordLoss(ctx context.Context, f facts) {
	if f.consent == nil {
		return
	}
	ctx = types.Because(ctx, "OPERATOR", fmt.Sprintf("the loss of %s was consented to at %s", phrase.Counted(len(f.consent.Volumes), "volume"), f.consent.Given.UTC().Format(time.RFC3339)))
	types.Did(ctx, c.Operations, "leave with data", "node/"+f.self, nil)
}
