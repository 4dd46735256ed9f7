package k3supdate

import (
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

// retried reports whether an operator has asked that this very failure no longer count.
func (f facts) retried() bool {
	return f.retry.Version == f.journal.Failed.To && f.retry.FailedAt.Equal(f.journal.Failed.At)
}

// canRollBack is what an operator's request to return would do while a change is under way.
func (f facts) canRollBack() types.K3sRollback {
	j := f.journal
	r := types.K3sRollback{To: j.From}
	switch {
	case j.Step != types.K3sStepChange && j.Step != types.K3sStepSwap:
		return types.K3sRollback{}
	case j.Step == types.K3sStepSwap: // it has not begun to run
	case f.untouched(): // no data can be of its version
	case !f.known && f.agent < seenAfter:
		r.Lacks = "What runs here is not known yet."
	case (j.Ran || f.own.KubeletVersion == j.To) && (j.Sum == "" || !f.known): // with the former binary, and others that are not past it, there is a way
		r.Lacks = "k3s " + j.To + " has run on this node, and the data is of that version."
	case j.Commit != "":
		r.Lacks = j.Commit
	default:
		r.Lacks = commits(f.own, f.nodes, j.To)
	}
	return r
}

// rollsBack reports whether an operator takes back the change that is under way.
func (f facts) rollsBack() bool {
	can := f.canRollBack()
	return can.To != "" && can.Lacks == "" && f.rollback.Version == f.journal.To && !f.rollback.RequestedAt.Equal(f.journal.Rollback)
}

// returns begins the way back. The version counts as failed, or the change would begin again.
func (f facts) returns(a *action) {
	j := &a.journal
	j.Failed = types.K3sFailure{To: j.To, Why: "An operator took the change to " + j.To + " back.", At: f.now.UTC().Truncate(time.Second)}
	f.goesBack(a, fmt.Sprintf("k3s returns from %s to %s: an operator took the change back.", j.To, j.From))
}
