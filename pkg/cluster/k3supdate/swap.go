package k3supdate

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// swapFor is how long it may take to put a binary in its place, or the former one back.
	swapFor = 5 * time.Minute
	// restartStaged is restartAfter where the binary was put there by zedkube: the version has
	// to reach the kube container first, which looks every 15 s.
	restartStaged = 30 * time.Second
	soon          = time.Second
	// rebootFor is how long k3s, with the new binary in its place, is not stopped beside a node that may
	// reboot without the drain lock: one whose drain a person has forced may never do so; and how long the
	// change waits there for a server that is away, a volume that is rebuilt or a list that fails.
	rebootFor = 30 * time.Minute
)

// swaps puts the staged binary in its place, or sees that it is there. k3s goes on with the
// former one meanwhile, so that all of it can be taken back.
func (f facts) swaps(a *action) {
	s, j := &a.status, &a.journal
	s.Released, a.again = j.From, again
	s.Reason += "the staged k3s is put in its place."
	booted, since := j.BootID != f.boot, j.Began
	if booted {
		since = f.uptime - f.agent // that was in another boot
	}
	runs := booted && f.known && f.own.KubeletVersion == j.To // which a look need not show
	late := f.uptime >= since+2*swapFor
	switch e := f.evidence; {
	case !runs && (f.busy || e.at == 0):
		if late {
			s.Phase, s.Reason = types.LifecycleStuck, s.Reason+" The disk does not answer."
		}
	case runs, e.disk == j.To:
		j.Step, j.Began = types.K3sStepChange, f.uptime
		if booted { // k3s has started with it, or will
			j.BootID, j.Began = f.boot, 0
		}
		s.Released, a.again = j.To, soon
		s.Reason = fmt.Sprintf("k3s changes from %s to %s: its binary is in its place.", j.From, j.To)
	case booted && e.disk == "": // k3s may have started as To, on whose data From is not to start
		s.Reason = fmt.Sprintf("k3s changes from %s to %s: the device has booted, and which k3s is on its disk is not known: %s.", j.From, j.To, cmp.Or(e.binary.why, "it does not say its version"))
		if late {
			s.Phase = types.LifecycleStuck
			s.Reason += ` An operator must investigate; the drain lock is kept until that has ended. See operations.md, "Where a change is stuck".`
		}
	case f.rollsBack():
		f.returns(a)
	case booted, f.heard && (f.version.Wanted == j.From || f.hold != ""):
		f.goesBack(a, fmt.Sprintf("k3s stays at %s: the change to %s has not begun, and is taken back.", j.From, j.To))
	case e.disk == j.From && e.staged != j.Sum, f.uptime >= j.Began+swapFor:
		why := f.failedTo(install)
		if why == "" {
			why = cmp.Or(e.binary.lacks, "it is not what was staged before")
		}
		j.Failed = types.K3sFailure{To: j.To, Why: fmt.Sprintf("k3s %s could not be put in its place: %s.", j.To, why), At: f.now.UTC().Truncate(time.Second)}
		f.goesBack(a, j.Failed.Why)
	case e.disk == j.From && (f.uptime >= f.acted.at+again || f.acted.call != install):
		a.call = install
	}
}

// goesBack begins the way back.
func (f facts) goesBack(a *action, why string) {
	s, j := &a.status, &a.journal
	former := f.process.PID != 0 && f.process.Start < j.Began || f.unstopped() && f.known && f.own.KubeletVersion == j.From
	j.Restarted = j.Step == types.K3sStepSwap || former && !j.Ran // k3s was not stopped
	if j.Restarted {
		j.Pods, j.Volumes = nil, nil // what does not run does not for another reason
	}
	if j.Failed.To != "" {
		j.Release = f.release.RequestedAt // another one is asked for after a K3sRetryRequest, too
	}
	j.Step, j.BootID, j.Began = types.K3sStepReturn, f.boot, f.uptime
	s.Phase, s.Failed, s.Reason, a.again = types.LifecycleReturns, j.Failed, why, soon
	s.Released = f.returned(*j)
}

// returned is the version that is released on the way back: From once its binary is in its
// place again, or the kube container would download it, with k3s stopped. Where that
// fails, it is the only way after a failure, unless the k3s of before still runs; but kube-init
// of EVE 17.3 never comes to an end of it.
func (f facts) returned(j types.KubeLifecycleJournal) string {
	goesOn := j.Failed.To == "" || j.Commit != "" || f.process.PID != 0 && f.process.Start < j.Began && j.Restarted
	if j.Sum == "" || f.evidence.disk == j.From || f.uptime >= j.Began+swapFor && !f.kubeInit && (f.evidence.disk != j.To && f.evidence.disk != "" || !goesOn) {
		return j.From
	}
	return j.To
}

// acts is what is to be done for a step, once nothing else is under way: put the former
// binary back, restart k3s where it is not the one in its place, list the cluster.
func (f facts) acts(a *action, target string) {
	s, j, p := &a.status, &a.journal, f.process
	back, after := j.Step == types.K3sStepReturn, restartAfter
	if j.Sum != "" {
		after = restartStaged
	}
	inPlace := f.evidence.disk == target || f.evidence.disk == "" && f.known && !f.version.OnDisk
	wrong := f.known && f.own.KubeletVersion != target
	// What is in its place says no version, and k3sconfig has not seen the former one there. Where nothing has failed, and on
	// the last server, To may have started, unless From runs.
	runs := f.known && !wrong
	nameless := f.evidence.disk == "" && f.evidence.at > j.Began && (j.Failed.To != "" && j.Commit == "" || runs) && !(runs && f.version.OnDisk)
	ours := f.restarted > j.Began && p.Start >= f.restarted // what it may replay takes its time
	stale := p.Start < j.Began || back && j.Sum != "" && wrong && f.uptime >= p.Start+swapFor && !ours
	once := !j.Restarted || j.Sum != "" && wrong && p.PID != 0 && f.uptime >= f.restarted+restartAfter ||
		back && wrong && p.PID == 0 && f.kubeInit && f.asksAgain() // it was started before its binary was replaced
	if !j.Restarted && (f.busy || !f.known || f.reboots() != "") {
		a.lacked = f.lacked // until it is seen that no node may reboot
	}
	if !j.Restarted { // until a look shows it
		a.blocked = f.blocked
	}
	switch {
	case f.remounts() != "":
	case f.busy: // with a look, as a rule: until its end what was said besides still is so
		if strings.HasPrefix(f.published.Reason, s.Reason) {
			s.Reason = f.published.Reason
		}
	case back && j.Sum != "" && (f.evidence.disk == j.To || nameless):
		why := f.failedTo(restore)
		if why != "" {
			s.Reason += " The former k3s could not be put back: " + why + "."
		} else if p.Start >= j.Began && !(nameless && runs) {
			j.Began, j.Restarted = f.uptime, false // it was started with the one that is replaced now
		}
		if f.uptime >= f.acted.at+again || f.acted.call != restore {
			a.call = restore
		}
	case inPlace && stale && once && (wrong || back) && (p.PID != 0 || f.kubeInit && j.Sum != "") && f.uptime >= j.Began+after:
		why, reboots := f.mustNot()
		worse, lasting := f.worsened(), f.lasting()
		switch {
		case lasting != "":
			a.blocked = cmp.Or(f.blocked, f.uptime)
		case f.checked != nil:
			a.blocked = 0
		}
		switch {
		case back:
		case lasting != "" && f.unstopped() && f.uptime >= a.blocked+rebootFor:
			s.Commit = "" // it is kept in the journal: the version may be started all the same
			f.goesBack(a, fmt.Sprintf("k3s stays at %s: the change to %s is taken back, because %s.", j.From, j.To, lasting))
			return
		case why != "" || worse != "":
			s.Reason += " It is not restarted yet: " + cmp.Or(why, worse) + "."
			if reboots {
				a.lacked = cmp.Or(f.lacked, f.uptime)
			}
			f.checks(a)
			return
		}
		if f.unstopped() {
			j.Began = f.uptime // from now on it may take its time
		}
		j.Restarted, a.call = true, restart
	case f.known && !wrong: // also while the last look still counts, so that what it says goes on
		f.checks(a)
	}
}

// asksAgain reports that kube-init, which alone knows the process, may be asked to restart k3s on the way back. Once it
// has accepted that, or where a former agent may have asked, k3s has its time: it may replay its database.
func (f facts) asksAgain() bool {
	since, wait := max(f.restarted, f.journal.Began), swapFor
	switch began := f.uptime - f.agent; {
	case f.restarted > 0 && f.restarted >= f.journal.Began:
		if !f.refused {
			wait = patchFor
		}
	case began > f.journal.Began:
		since, wait = began, patchFor
	}
	return f.uptime >= since+wait
}

// checks lists the cluster, if that was not done a moment ago.
func (f facts) checks(a *action) {
	if f.uptime >= f.triedAt+checkEvery {
		a.call = check
	}
}

// mustNot says why k3s is not to be stopped now after all, "" for nothing, and whether that is
// a node that may reboot.
func (f facts) mustNot() (why string, reboots bool) {
	if f.checked == nil {
		return cmp.Or(f.fails(), "the other nodes are looked at once more"), false
	}
	if holder := f.checked.lock.Holder; holder != f.own.Name {
		return "this node does not have the drain lock any more", false
	}
	f.nodes = f.checked.nodes
	if lack, _ := f.quorum(); lack != "" {
		return lack, false
	}
	if f.lacked == 0 || f.uptime < f.lacked+rebootFor {
		why = f.reboots()
	}
	return why, why != ""
}

// lasting says what keeps k3s from being stopped and may do so for ever, "" for nothing: who ends it
// may wait for the drain lock of this change.
func (f facts) lasting() string {
	if f.checked == nil {
		return f.fails()
	}
	f.nodes = f.checked.nodes
	lack, _ := f.quorum()
	return cmp.Or(lack, f.worsened())
}

// worsened names a volume that has become degraded since the change began, where the binary was staged.
// Without one the wait for it would be a failure of the version.
func (f facts) worsened() string {
	if f.journal.Sum == "" || f.released("Volumes") {
		return ""
	}
	return f.degraded()
}

// failedTo says why the last call of that kind failed, "" where it did not.
func (f facts) failedTo(what call) string {
	if f.acted.call != what || f.acted.at < f.journal.Began {
		return ""
	}
	return why(f.acted.err)
}
