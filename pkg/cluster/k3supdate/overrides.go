package k3supdate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// unseenFor is when k3s counts as restarted where its process cannot be seen: the kube container
// looks at the override file every 15 s.
const unseenFor = 2 * time.Minute

// overrideWanted is what the override file is to be, "" where it is so. That of a device without
// a cluster is changed at once.
func (f facts) overrideWanted() string {
	if o := f.override; !f.alone && o.Accepted && o.InForce != "" && o.Sum != o.InForce {
		return o.Sum
	}
	return ""
}

// forgetsOverride reports whether the override that failed no longer counts.
func (f facts) forgetsOverride() bool {
	failed := f.journal.Override
	return f.override.Sum != "" && f.override.Sum != failed.To || f.retry.Version == failed.To && f.retry.FailedAt.Equal(failed.At)
}

// overrideOrder is in which order the nodes take an override: the one where the others join comes
// first, because k3s does not start with critical options that its server does not have.
func overrideOrder(nodes []types.Node) []types.Node {
	ordered := order(nodes)
	rank := func(n types.Node) int {
		if n.IsServer() && n.K3s != nil && n.K3s.Joined {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(ordered, func(a, b types.Node) int { return cmp.Compare(rank(a), rank(b)) })
	return ordered
}

// down reports whether k3s of this node has not answered for long, and does not run: nobody is
// hurt by another configuration, and it may be the cure.
func (f facts) down() bool { return !f.known && f.unanswered >= seenAfter && !f.runs }

// overrides begins a change of the override file, for which the kube container restarts k3s.
func (f facts) overrides(a *action) {
	o := &a.status.Override
	if o.Wanted = f.overrideWanted(); o.Wanted == "" || f.unread || !f.heard || a.journal.Step != types.K3sStepNone {
		return
	}
	if !f.known && !f.down() {
		o.Reason = "The API server does not answer, or this node's kubelet has not reported in this boot."
		return
	}
	heard := f.nodes
	if f.checked != nil {
		f.nodes = f.checked.nodes // they renew their Leases
	}
	f.order = overrideOrder(f.nodes)
	a.again = again
	before := a.call
	defer func() { a.overrides = a.call != before }()
	o.Preconditions = f.overridePreconditions(o.Wanted, heard)
	lacking := notHeld(o.Preconditions)
	if a.call == take {
		o.Reason = "Another change of k3s comes first, which restarts it as well."
		return
	}
	if len(lacking) > 0 {
		o.Reason = waitsUntil("the override of k3s is not changed yet: ", lacking, "zedkube k3s release override")
	}
	f.inTurn(a, &o.Reason, lacking, f.down(), f.overrideNow)
}

// overrideNow writes down what is to be changed and releases it, in one step.
func (f facts) overrideNow(a *action) {
	s, former := &a.status, f.override.InForce
	if former == types.K3sOverrideUnreadable { // it cannot be put back
		former = ""
	}
	a.call = noCall
	a.journal = types.KubeLifecycleJournal{
		Step: types.K3sStepChange, From: f.from(), To: f.from(), Kind: types.K3sOverride, BootID: f.boot, Cluster: f.cluster, Began: f.uptime,
		Failed: f.journal.Failed, Restarts: f.journal.Restarts, Sum: s.Override.Wanted, Former: former, Process: f.process.Start, Pods: f.runningPods(),
	}
	if f.checked != nil {
		a.journal.Volumes = replicas(f.checked.storage, f.own.Name)
	}
	s.Phase, s.From, s.To, s.Kind, s.Refused, s.Commit, s.Preconditions = types.LifecycleChanges, f.from(), f.from(), types.K3sOverride, "", "", nil
	s.Reason = fmt.Sprintf("k3s restarts with the override %s.", short(a.journal.Sum))
	s.Override.Reason, s.Override.Released, s.Override.Former = s.Reason, a.journal.Sum, former
}

// overriding looks what has become of the change of the override file.
func (f facts) overriding(a *action) {
	s, j := &a.status, &a.journal
	if j.BootID != f.boot { // it has started with the boot
		j.BootID, j.Began, j.Process = f.boot, 0, 0
	}
	if j.To == "" { // it was down, and its version not known
		j.From, j.To = f.from(), f.from()
	}
	f.journal = *j
	if wanted := f.overrideWanted(); f.cures(wanted) { // the lock is held, and nothing else helps this k3s
		j.Step, j.Sum, j.Began, j.Process, j.Override, j.Ran = types.K3sStepChange, wanted, f.uptime, f.process.Start, types.K3sFailure{}, false
	}
	f.journal = *j
	f.forgets(j.Began)
	lacks, ill := f.overrideLacks()
	var pods []string
	if !ill {
		pods = f.onlyPods(f.unverified(j.To))
	}
	ran := !ill && (lacks != f.looking() || f.fails() != "") // else a look shows it
	wait := f.remounts() != "" || ill && f.remounted(patchFor)
	if len(pods) > 0 {
		lacks = f.notBack()
	}
	hours := f.hour.Hours()
	late := f.uptime >= j.Began+time.Duration(float64(patchFor)*hours) && (f.known || f.agent >= seenAfter)
	if ran && j.Step == types.K3sStepChange {
		j.Ran = true
	}
	target := j.Sum
	s.Phase, s.Reason = types.LifecycleChanges, fmt.Sprintf("k3s restarts with the override %s: %s.", short(j.Sum), lacks)
	switch {
	case lacks == "":
		target = ""
		*j = types.KubeLifecycleJournal{Failed: j.Failed, Restarts: j.Restarts, Override: j.Override}
		s.Phase, s.Reason = types.LifecycleIdle, cmp.Or(j.Override.Why, "k3s was restarted with another override.")
		f.gives(a)
	case late && ill && !j.Ran && j.Step == types.K3sStepChange && j.Former != "" && j.Former != j.Sum:
		j.Override = types.K3sFailure{To: j.Sum, Why: fmt.Sprintf("k3s did not come up with the override %s: %s. The one of before is put back.", short(j.Sum), lacks), At: f.now.UTC().Truncate(time.Second)}
		j.Restarted = f.process.PID != 0 && f.process.Start <= j.Process // it was not stopped
		j.Step, j.Began, j.Process = types.K3sStepReturn, f.uptime, f.process.Start
		s.Phase, s.Reason, target = types.LifecycleReturns, j.Override.Why, j.Former
	default:
		if j.Step == types.K3sStepReturn {
			s.Phase, s.Reason, target = types.LifecycleReturns, fmt.Sprintf("k3s returns to the override %s: %s.", short(j.Former), lacks), j.Former
		}
		switch {
		case late && wait:
			s.Phase = types.LifecycleStuck
		case late:
			if f.stuck(s, " ", pods); ill || f.unlistable(lacks) {
				s.Reason += ` Another value of the setting k3s.config.override is written at once. See operations.md, "The settings of k3s".`
			} else {
				s.Reason += ` See operations.md, "Where a change is stuck".`
			}
		}
		if f.known && f.checked == nil && !f.busy {
			f.checks(a)
		}
	}
	a.again, a.overrides = again, true
	s.Override = types.K3sOverrideTurn{Wanted: f.overrideWanted(), Released: target, Former: j.Former, Failed: j.Override}
	if j.Step != types.K3sStepNone {
		s.From, s.To, s.Kind, s.Override.Reason = j.From, j.To, j.Kind, s.Reason
		if in := f.override.InForce; in != "" && in != target && f.agent >= again { // not by the status of a former run
			j.Process = f.process.Start // it runs with the file of before
		}
	}
}

// overrideLacks says what shows that k3s has not restarted well with the file that is released, ""
// for nothing, and whether k3s itself is at fault. While it is looked at nobody says so.
func (f facts) overrideLacks() (lacks string, ill bool) {
	j, target := f.journal, f.journal.Sum
	if j.Step == types.K3sStepReturn {
		target = j.Former
	}
	restarted := f.process.PID != 0 && f.process.Start > j.Process || f.process.PID == 0 && f.uptime >= j.Began+time.Duration(float64(unseenFor)*f.hour.Hours())
	lacks = f.unverified(j.To)
	switch {
	case f.override.InForce != target:
		return "the override file is not so yet", true
	case !restarted && !(j.Step == types.K3sStepReturn && j.Restarted):
		return "k3s has not been restarted yet", true
	case lacks != "":
		return lacks, lacks != f.looking()
	}
	told := f.own.K3s != nil && f.own.K3s.Override.InForce == target && f.own.K3s.Override.Failed == j.Override.To
	if lacks = cmp.Or(f.notBack(), f.remounts()); lacks == "" && !told {
		lacks = "the other nodes have not been told of it"
	}
	return lacks, false
}

// unlistable reports whether all that lacks is that the volumes could not be listed for long. Of that k3s is not to
// blame, but the override may be; k3s runs, so that quorum has to do without it, also where a node reboots.
func (f facts) unlistable(lacks string) bool {
	lack, _ := f.quorum()
	return lacks != "" && lacks == f.fails() && lack == "" && f.reboots() == ""
}

// cures reports whether the setting asks for another file than the one with which this k3s does
// not come up, or did not, or with which the volumes cannot be listed.
func (f facts) cures(wanted string) bool {
	if wanted == "" || wanted == f.journal.Sum || wanted == f.journal.Override.To || f.uptime < f.journal.Began+unseenFor || f.remounts() != "" {
		return false
	}
	lacks, ill := f.overrideLacks()
	return ill || f.unlistable(lacks)
}

// overridePreconditions are what a change of the override waits for. A k3s that is down waits for
// no other node. heard are the nodes as the watch has them.
func (f facts) overridePreconditions(wanted string, heard []types.Node) (list []types.KubeLifecyclePrecondition) {
	failed := f.journal.Override
	add := func(name, lacks string, release bool) {
		list = append(list, precondition(name, lacks, release, f.release.Version == wanted && f.release.RequestedAt.After(failed.At) && slices.Contains(f.release.Without, name)))
	}
	why := ""
	if failed.To == wanted {
		why = strings.TrimSuffix(failed.Why, ".") + "; zedkube k3s retry, or another value of the setting, ends that"
	}
	add("NotHeld", cmp.Or(f.hold, f.unheld), false)
	add("NotFailed", why, true)
	if f.down() {
		return list
	}
	othersFailed, differs, turn := f.overrideOthers(wanted, heard)
	add("OthersNotFailed", othersFailed, false)
	add("Agreed", differs, true)
	add("Turn", turn, true)
	add("SameBinary", f.otherBinary(), false)
	add("NoDrain", f.goesDown(false), false)
	lack, alone := f.quorum()
	add("Quorum", lack, false)
	add("QuorumWithoutThis", alone, true)
	f.healthy(add)
	add("Components", f.updating, true)
	add("Lock", f.locked(false), false)
	add("Volumes", f.degraded(), f.checked != nil)
	return list
}

// overrideOthers names a node on which this override failed, one of which it is not known that its
// setting is the same, and one that takes it before this one. A node whose k3s was down took it
// without the lock, and may have reported since the lock was taken here that it failed: heard.
func (f facts) overrideOthers(wanted string, heard []types.Node) (failed, differs, turn string) {
	first := func(text *string, format string, args ...any) {
		if *text == "" {
			*text = fmt.Sprintf(format, args...)
		}
	}
	for _, n := range slices.Concat(f.order, heard) {
		if n.Name != f.own.Name && n.K3s != nil && !n.Foreign() && n.K3s.Override.Failed == wanted {
			first(&failed, "k3s on node %s did not come up with this override", n.Name)
		}
	}
	before := true
	for _, n := range f.order {
		switch {
		case n.Name == f.own.Name:
			before = false
		case n.K3s == nil, n.Foreign(), n.K3s.Override == types.K3sOverrideStamp{}:
			first(&differs, "node %s runs no zedkube that changes the override in its turn", n.Name)
		case n.K3s.Override.Failed == wanted: // said above
		case n.K3s.Override.Wanted != wanted:
			first(&differs, "the setting k3s.config.override of node %s is another one, or is refused there", n.Name)
		case before && n.K3s.Override.InForce != wanted:
			first(&turn, "node %s takes the override before this one%s", n.Name, f.silence(n.Name))
		}
	}
	return failed, differs, turn
}

// overrideStamp is what is reported of the override here to the other nodes.
func (f facts) overrideStamp(failed string) types.K3sOverrideStamp {
	s, o := types.K3sOverrideStamp{InForce: f.override.InForce, Failed: failed}, f.override
	switch {
	case o.Accepted:
		s.Wanted = o.Sum
	case o.InForce == "" && f.own.K3s != nil: // what was known last
		s.Wanted, s.InForce = f.own.K3s.Override.Wanted, f.own.K3s.Override.InForce
	}
	return s
}

// short is enough of a SHA-256 to tell it from others.
func short(sum string) string { return phrase.Cut(sum, 12) }
