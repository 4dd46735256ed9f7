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
	r, ran := types.K3sRollback{To: j.From}, j.Ran || f.own.KubeletVersion == j.To
	switch {
	case j.Step != types.K3sStepChange && j.Step != types.K3sStepSwap:
		return types.K3sRollback{}
	case j.Step == types.K3sStepSwap: // it has not begun to run
	case f.untouched(): // no data can be of its version
	case f.single() && f.evidence.disk != j.From:
		r.Lacks = "A single node returns only together with its datastore. That cannot be replaced while k3s runs, and zedkube cannot keep k3s stopped. " + TakeBackRecipe
	case f.single():
		r.Loses = losesSince
	case !f.known && f.agent < seenAfter:
		r.Lacks = "What runs here is not known yet."
	case ran && j.Sum == "":
		r.Lacks = "k3s " + j.To + " has run on this node, and the binary of before was not kept."
	case ran && !f.known && j.Booted: // else this node has had the drain lock all the time, and no other one has changed
		r.Lacks = "k3s " + j.To + " has run on this node, which has booted since: while the API server does not answer it is not known whether other servers have changed."
	case j.Commit != "":
		r.Lacks = j.Commit
	default:
		r.Lacks = commits(f.own, f.nodes, j.To)
	}
	return r
}

// TakeBackRecipe is what to read before a single node is taken back.
const (
	TakeBackRecipe = `See operations.md, "To take a single node back".`
	losesSince     = "What was written to the datastore since the copy of before the change is lost; that copy has to be in its place already. " + TakeBackRecipe
)

// single reports whether the datastore is the SQLite of a single node, which is seen here.
func (f facts) single() bool {
	return f.journal.Commit != "" && f.journal.Step != types.K3sStepReturn && f.evidence.at != 0 && f.evidence.disk != "" && !f.found.HasEtcd && !f.own.Etcd
}

// rollsBack reports whether an operator takes back the change that is under way.
func (f facts) rollsBack() bool {
	can := f.canRollBack()
	return can.To != "" && can.Lacks == "" && (can.Loses == "" || f.rollback.LoseChanges) && f.rollback.Version == f.journal.To && !f.rollback.RequestedAt.Equal(f.journal.Rollback)
}

// returns begins the way back. The version counts as failed, or the change would begin again.
func (f facts) returns(a *action) {
	j := &a.journal
	j.Failed = types.K3sFailure{To: j.To, Why: "An operator took the change to " + j.To + " back.", At: f.now.UTC().Truncate(time.Second)}
	if j.Step == types.K3sStepChange {
		j.Commit = "" // the last server returns, too, as its operator says
	}
	f.goesBack(a, fmt.Sprintf("k3s returns from %s to %s: an operator took the change back.", j.To, j.From))
}

// takesBack is for a single node whose change has ended, and on which an operator has put the
// former binary and the datastore of then, while k3s is kept stopped: that version is released.
func (f facts) takesBack(a *action) {
	is, was := f.evidence.disk, f.version.Version
	kind, _, err := types.JudgeK3sStep(is, was)
	if err != nil || kind == types.K3sSame || !f.heard || f.known || f.evidence.at == 0 || f.found.HasEtcd || f.own.Etcd {
		return
	}
	a.status.From, a.status.To, a.status.Rollback = is, was, types.K3sRollback{To: is, Loses: losesSince}
	if f.rollback.Version != was || !f.rollback.LoseChanges {
		return
	}
	a.journal = types.KubeLifecycleJournal{
		Step: types.K3sStepReturn, From: is, To: was, Kind: kind, BootID: f.boot, Began: f.uptime, Rollback: f.rollback.RequestedAt,
		Failed: types.K3sFailure{To: was, Why: "An operator took the change to " + was + " back.", At: f.now.UTC().Truncate(time.Second)},
	}
	a.status.Phase, a.status.Failed, a.status.Released, a.again = types.LifecycleReturns, a.journal.Failed, is, soon
	a.status.Reason = fmt.Sprintf("k3s returns from %s to %s: an operator took the change back.", was, is)
}
