package k3supdate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

const (
	// patchFor and minorFor are how long k3s may take to run the other version: the kube
	// container may download it, and a server replays its database.
	patchFor = 20 * time.Minute
	minorFor = 30 * time.Minute
	// restartAfter is when k3s is restarted where the binary on disk is another one already
	// and the kube container has not done so: it looks every 15 s.
	restartAfter = 2 * time.Minute
	seenAfter    = 5 * time.Minute  // of an agent: the tables have been filled if they ever are
	stableFor    = time.Minute      // for which the process of k3s has run
	checkedFor   = time.Minute      // for which what was listed counts
	checkEvery   = 30 * time.Second // while something waits for it
	again        = 10 * time.Second
	// keepDrained is how long this node stays drained for a change that something else delays.
	keepDrained = 10 * time.Minute
	// A node for which others wait renews its stamp, and they say it once it has not for a while.
	renewEvery = 15 * time.Second
)

type facts struct {
	now    time.Time
	uptime time.Duration
	agent  time.Duration // for which this agent has run
	hour   time.Duration // how long an hour is
	boot   string
	heard  bool // k3sconfig says what is wanted
	known  bool // the tables show the present, this node in this boot too

	version types.K3sVersionStatus
	own     types.Node
	nodes   []types.Node // by name
	watched []types.Node // the same as the watch has them, where nodes are those that were listed last
	order   []types.Node
	lock    types.Lease
	off     map[string]bool // nodes that are proved to be off
	stamps  types.HeardK3sStamps

	hold          string // what the hold file says, with who it is of
	unheld        string // why it is not known what it says; "" where it is
	holdIsOld     bool   // it was read before what was listed last
	consent       Consent
	release       types.K3sReleaseRequest
	retry         types.K3sRetryRequest
	rollback      types.K3sRollbackRequest
	requestsKnown bool // zedagent's and baseosmgr's
	deviceDrain   bool // one of them asks for a drain
	operatorDrain bool
	lacked        time.Duration // uptime since when something delays a change for which this node is drained, or a node that may reboot delays the restart; 0 for nothing
	blocked       time.Duration // uptime since when something that may last for ever keeps k3s from being stopped for a change; 0 for nothing
	ill           time.Duration // uptime since when k3s itself lacks something to run the version well; 0 where it is well
	drain         types.NodeDrainProgress
	leaves        bool
	cluster       string // ID; "" for none
	tie           string // UUID of its tie-breaker, "" for none
	left          bool   // the cluster in which the journal's step was begun
	component     string // which component's update is in the way
	conditions    []types.NodeStateCondition
	evidence      evidence
	found         Found
	prepared      prepared
	sum           string             // SHA-256 that the setting asks for
	process       k3sprocess.Process // zero where it is not known
	kubeInit      bool               // it is supervised by kube-init
	pods          map[string]bool    // of applications on this node, whether they run
	joined        bool               // others join the cluster at this node

	checked   *checked // under or before the lock, a moment ago
	busy      bool     // a call is under way
	acted     acted
	restarted time.Duration // uptime when this agent had k3s restarted
	refused   bool          // or tried to: it failed
	triedAt   time.Duration
	listed    time.Duration // when the cluster was last listed or nobody could be asked, or the agent began
	heardAt   time.Duration // when the nodes alone were
	unlisted  error         // why it could not be since
	looked    string        // version of the drain lock that is not for a change of k3s
	journal   types.KubeLifecycleJournal
	unread    bool // there is a journal that cannot be read
	unlooked  bool // it is not known whether there is one: the disk has not answered yet
	published types.KubeLifecycle
	restartFacts

	override   types.K3sOverrideStatus
	recovery   types.MountRecovery // of volumes that are not mounted
	alone      bool                // the device belongs to no cluster
	unanswered time.Duration       // for which the API server has not answered this agent
	runs       bool                // a process of k3s is there
}

// acted is the last call that changed the binary.
type acted struct {
	call call
	at   time.Duration // uptime of its beginning
	err  error
}

// checked is what was listed at once.
type checked struct {
	at      time.Duration // uptime
	lock    types.DrainLock
	nodes   []types.Node // those that renew their Leases are Ready
	storage types.Storage
	unready error // of the own API server
}

// call is what is done beside the steps.
type call int

const (
	noCall call = iota
	check
	take    // the drain lock, then check
	free    // the drain lock
	end     // the change in the drain lock, which is kept
	restart // k3s
	install // the staged binary
	restore // the former one
	renew   // its certificates: they are moved aside, and it is restarted
	putBack // those of before, and restart it
)

type action struct {
	status    types.KubeLifecycle
	journal   types.KubeLifecycleJournal
	call      call
	prepare   preparation
	lacked    time.Duration   // as in facts
	blocked   time.Duration   // likewise
	ill       time.Duration   // likewise
	renews    bool            // the call is for a restart for certificates
	overrides bool            // the call is for a change of the override
	stamp     *types.K3sStamp // to be written
	again     time.Duration
}

// from is the version that a change begins with.
func (f facts) from() string {
	if f.version.Running != "" {
		return f.version.Running
	}
	return f.version.Version
}

// decide says to which version k3s changes here, and when.
func decide(f facts) action {
	a := action{status: types.KubeLifecycle{Phase: types.LifecycleIdle, Wanted: f.version.Wanted, Failed: f.journal.Failed}, journal: f.journal}
	if f.left { // with its k3s and its data
		f.journal = types.KubeLifecycleJournal{Failed: f.journal.Failed, Release: f.journal.Release, Restarts: f.journal.Restarts}
		a.journal = f.journal
	}
	if r := &a.journal.Restarts; r.At.IsZero() && !f.unread && f.known && f.own.K3s != nil && !f.own.K3s.Restarted.IsZero() { // the journal was removed
		if r.At = f.own.K3s.Restarted; !f.request.RequestedAt.After(r.At) {
			r.Answers = f.request.RequestedAt
		}
		f.journal.Restarts = *r
	}
	a.status.Restart = types.K3sRestartStatus{Last: f.journal.Restarts.At, Failed: f.journal.Restarts.Failed}
	if f.journal.Failed.To != "" && (f.heard && f.journal.Failed.To != f.version.Wanted || f.retried()) && f.journal.Step == types.K3sStepNone {
		a.journal.Failed, a.status.Failed = types.K3sFailure{}, types.K3sFailure{} // the setting has changed, or an operator says so
		f.journal.Failed = a.journal.Failed
	}
	if f.journal.Override.To != "" && f.journal.Step == types.K3sStepNone && f.forgetsOverride() {
		f.journal.Override, a.journal.Override = types.K3sFailure{}, types.K3sFailure{}
	}
	a.status.Override.Failed = f.journal.Override
	if f.checked != nil && f.uptime >= f.checked.at+checkedFor {
		f.checked = nil
	}
	switch {
	case f.unread && f.unlooked && f.agent < readAfter:
		a.status = f.published
	case f.unread && f.unlooked:
		a.status.Phase, a.status.Reason = types.LifecycleWaits, "It is not known yet what this node was doing with k3s: the disk has not answered."
		a.status.Drain = f.published.Drain
	case f.unread:
		a.status.Phase, a.status.Reason = types.LifecycleStuck, "What this node was doing with k3s cannot be read: remove the file of KubeLifecycleJournal after a look at the drain lock and the version that runs."
		a.status.Drain = f.published.Drain
	case f.journal.Step != types.K3sStepNone && f.journal.Kind == types.K3sRestart:
		f.restarting(&a)
	case f.journal.Step != types.K3sStepNone && f.journal.Kind == types.K3sOverride:
		f.overriding(&a)
	case f.journal.Step != types.K3sStepNone:
		f.goesOn(&a)
	case !f.heard:
		a.status = f.published
	default:
		f.begins(&a)
		if a.journal.Step == types.K3sStepNone {
			f.takesBack(&a)
		}
	}
	if a.journal.Kind == f.journal.Kind { // nothing has begun or ended
		f.restarts(&a)
		f.overrides(&a)
	}
	if a.journal.Kind != types.K3sOverride && f.journal.Kind != types.K3sOverride {
		a.journal.Override = f.journal.Override
	}
	if a.journal.Restarts == (types.K3sRestarts{}) {
		a.journal.Restarts = f.journal.Restarts
	}
	if a.journal.Release.IsZero() {
		a.journal.Release = f.journal.Release
	}
	if len(f.nodes) > 0 && a.status.To != "" {
		a.status.Nodes = listed(f.order, a.status.To)
	}
	f.writes(&a)
	return a
}

// begins judges the change that the setting asks for, and begins it once nothing is in its way.
func (f facts) begins(a *action) {
	s := &a.status
	from, to := f.from(), f.version.Wanted
	v := verdict{kind: types.K3sSame}
	if to != "" && from != "" && to != from {
		v = judge(from, to, f.nodes)
		s.From, s.To, s.Kind, s.Refused = from, to, v.kind, v.refused
	}
	switch {
	case to == "":
		s.Reason = "The setting k3s.version is empty: k3s stays as it is. Which version EVE itself would install is not known."
	case from == "":
		s.Phase, s.Reason = types.LifecycleWaits, "Which version of k3s runs here is not known yet."
		s.Drain = f.published.Drain
	case v.refused != "":
		s.Phase, s.Reason = types.LifecycleRefused, v.why
	case to == from:
		s.Reason = "k3s is of the version that the setting k3s.version asks for."
	case !f.known:
		s.Phase, s.Reason = types.LifecycleWaits, "The API server does not answer, or this node's kubelet has not reported in this boot."
		s.Drain = f.published.Drain
		return
	default:
		s.Phase = types.LifecycleWaits
		s.Commit = commits(f.own, f.nodes, to)
		f.changes(a)
		return
	}
	if f.known { // nothing is to be done under a lock that a former run may have left
		f.gives(a)
	}
}

// changes begins the change, in three steps: look, take the lock and look again, release the version.
func (f facts) changes(a *action) {
	s := &a.status
	a.again = again
	if f.checked != nil {
		f.nodes = f.checked.nodes // they renew their Leases
		f.order = order(f.nodes)
	}
	mine, drains := f.mine(), f.drains(s.Kind)
	s.Preconditions = f.preconditions(s.Kind)
	lacking := notHeld(s.Preconditions)
	if drains {
		f.requestsDrain(a, lacking)
	}
	onlyChecks := !slices.ContainsFunc(lacking, func(p types.KubeLifecyclePrecondition) bool {
		return p.Name != "Volumes" && p.Name != "Lock" && (p.Name != "Drained" || f.asksForDrain())
	})
	switch {
	case len(lacking) > 0:
		s.Reason = waitsUntil("k3s is not changed yet: ", lacking, "zedkube k3s release "+s.To)
		if slices.ContainsFunc(lacking, func(p types.KubeLifecyclePrecondition) bool { return p.Name == "NotFailed" }) {
			s.Phase = types.LifecycleFailed
		}
		a.prepare = f.prepares(lacking)
		f.gives(a) // of a restart for certificates, too
		if !mine && onlyChecks && f.uptime >= f.triedAt+checkEvery {
			a.call = check
		}
	case f.checked == nil, f.busy, f.holdIsOld: // what is under way may free the drain lock
		s.Reason = "All nodes and the volumes with a replica here are looked at once more."
		if f.uptime >= f.triedAt+checkEvery || f.triedAt == 0 {
			a.call = check
		}
	case drains && f.checked.lock.Holder != f.own.Name:
		s.Reason = "The drain of this node does not have the drain lock."
	case !drains && !f.underLock(): // that of a former boot another node may be taking
		s.Reason = "The drain lock is taken."
		a.call = take
	case mine && !f.underLock():
		s.Reason = "The drain lock of a former change is freed."
		f.gives(a)
	default:
		a.journal = types.KubeLifecycleJournal{
			Step: types.K3sStepChange, From: s.From, To: s.To, Kind: s.Kind, BootID: f.boot, Cluster: f.cluster, Began: f.uptime, Commit: s.Commit,
			Pods: f.runningPods(), Volumes: replicas(f.checked.storage, f.own.Name), Rollback: f.rollback.RequestedAt,
		}
		s.Phase, s.Released = types.LifecycleChanges, s.To
		s.Reason = fmt.Sprintf("k3s changes from %s to %s.", s.From, s.To)
		if sum := f.evidence.staged; sum != "" {
			a.journal.Step, a.journal.Sum, s.Released, a.again = types.K3sStepSwap, sum, s.From, soon
		}
	}
}

// goesOn looks what has become of the change that was begun.
func (f facts) goesOn(a *action) {
	s, j := &a.status, &a.journal
	s.From, s.To, s.Kind, s.Commit, s.Released = j.From, j.To, j.Kind, j.Commit, j.To
	s.Phase, s.Reason = types.LifecycleChanges, fmt.Sprintf("k3s changes from %s to %s: ", j.From, j.To)
	target := j.To
	if f.startedAfterAll() {
		j.Step, j.Began, j.Restarted, j.Failed = types.K3sStepChange, f.uptime, true, types.K3sFailure{}
		if f.process.PID != 0 {
			j.Began = f.process.Start
		}
		if f.own.Name != "" { // else no node was heard of since the agent began
			j.Commit = commits(f.own, f.nodes, j.To)
		}
		s.Commit, s.Failed = j.Commit, j.Failed
	}
	if j.Step == types.K3sStepReturn {
		s.Commit = ""
		s.Phase, s.Reason = types.LifecycleReturns, fmt.Sprintf("k3s returns from %s to %s: ", j.To, j.From)
		target, s.Released = j.From, f.returned(*j)
	}
	if j.Kind == types.K3sMinor && (f.asksForDrain() || len(f.nodes) > 1) { // also again after a boot
		s.Drain = f.drainRequest(j.To)
	}
	j.Booted = j.Booted || j.BootID != f.boot
	if j.Step == types.K3sStepSwap {
		f.swaps(a)
		return
	}
	if j.BootID != f.boot {
		j.BootID, j.Began = f.boot, 0
	}
	if f.version.Running == j.To || f.known && f.own.KubeletVersion == j.To {
		j.Ran = true
	}
	f.journal = *j
	f.forgets(j.Began)
	a.again = again
	lacks, long := f.unverified(target), patchFor
	pods := f.onlyPods(lacks)
	ill := lacks != "" && lacks != f.looking() // it was well when it was looked at last, or shows before long that it is not
	a.ill = f.illSince(lacks)
	if lacks == "" || len(pods) > 0 {
		lacks = cmp.Or(f.notBack(), f.remounts())
	}
	if j.Kind == types.K3sMinor {
		long = minorFor
	}
	long = time.Duration(float64(long) * f.hour.Hours())
	lasts := time.Duration(float64(seenAfter) * f.hour.Hours())
	late := f.uptime >= j.Began+long && (f.known || f.agent >= seenAfter)
	returns := ill && j.Step == types.K3sStepChange && j.Commit == "" && f.canRollBack().Lacks == ""
	switch {
	case lacks == "" && f.published.LacksPods() && f.asksForDrain():
		// The drain frees the lock, under which k3s may be restarted as long as this is published. A restart that was
		// published before it no longer is, the next step sees.
		s.Reason += "its pods run again."
		s.Rollback, a.again = f.canRollBack(), soon
		return
	case lacks == "":
		*j = types.KubeLifecycleJournal{Failed: j.Failed}
		s.Released, s.Drain, s.Reason = "", types.NodeDrainRequest{}, fmt.Sprintf("k3s is of version %s.", target)
		if target == s.To {
			s.Phase, j.Failed, s.Failed = types.LifecycleIdle, types.K3sFailure{}, types.K3sFailure{}
		} else if j.Failed.To == "" { // it was withdrawn
			s.Phase = types.LifecycleIdle
		} else {
			s.Phase, s.Reason = types.LifecycleFailed, j.Failed.Why
		}
		f.gives(a)
		return
	case f.remounts() != "": // nothing else stops k3s meanwhile
		if s.Reason += lacks + "."; late {
			s.Phase = types.LifecycleStuck
		}
	case f.withdrawn():
		j.Commit, s.Commit = "", ""
		f.goesBack(a, fmt.Sprintf("k3s stays at %s: the change to %s is withdrawn, and has not begun to run.", j.From, j.To))
		return
	case f.rollsBack():
		f.returns(a)
		return
	case !late:
		s.Reason += lacks + "."
	case ill && f.remounted(long):
		s.Phase = types.LifecycleStuck
		s.Reason += lacks + "."
	case f.unstopped():
		s.Reason += lacks + ", and k3s of before is not stopped yet."
	case !f.known && j.Step == types.K3sStepChange && f.othersAway() != "": // to return would help nobody
		s.Phase = types.LifecycleStuck
		s.Reason += f.othersAway() + ". It goes on when that has ended."
	case returns && f.uptime < a.ill+lasts: // it may be well again in a moment
		if f.published.Phase == types.LifecycleStuck {
			s.Phase = types.LifecycleStuck
		}
		s.Reason += fmt.Sprintf("%s. It returns to %s once that has lasted for %s.", lacks, j.From, lasts)
	case returns:
		j.Failed = types.K3sFailure{To: j.To, Why: fmt.Sprintf("k3s did not run %s within %s: %s.", j.To, long, lacks), At: f.now.UTC().Truncate(time.Second)}
		f.goesBack(a, j.Failed.Why)
		return
	default:
		f.stuck(s, lacks+". ", pods)
		s.Reason += " " + s.Commit
		if name := f.found.Snapshot.Name; name != "" {
			s.Reason = strings.TrimSpace(s.Reason) + " The newest snapshot of etcd on this server is " + name + "."
		}
		s.Reason = strings.TrimSpace(s.Reason) + " " + f.recipe()
	}
	s.Rollback = f.canRollBack()
	f.acts(a, target)
}

// startedAfterAll reports that the version of a change which was taken back, without a failure, was started before its
// binary was replaced. Without that binary only the last server goes on with it, whose data is of that version. It does
// so after a failure, too: only to put the binary in its place can have failed there.
func (f facts) startedAfterAll() bool {
	j, p := f.journal, f.process
	if j.Step != types.K3sStepReturn || j.Sum == "" || f.busy {
		return false
	}
	runs, there := f.known && f.own.KubeletVersion == j.To, f.evidence.disk == j.To
	starts := p.PID != 0 && p.Start >= j.Began || p.PID == 0 && f.kubeInit && j.Began == 0 // 0 only after a boot: what starts then is what is there
	if j.Failed.To != "" {
		return (runs || there && starts) && j.Commit != ""
	}
	return there && (runs || starts) || runs && commits(f.own, f.nodes, j.To) != ""
}

// stuck says that a change is not over in its time, where it lacks nothing but pods also which.
func (f facts) stuck(s *types.KubeLifecycle, lacks string, pods []string) {
	s.Phase, s.NotBack = types.LifecycleStuck, pods
	switch r := f.recovery; {
	case len(pods) == 0, r.BootID != f.boot:
	case r.Phase == types.RepairActs:
		s.Reason += lacks + "Volumes are not mounted, and k3s is restarted for that under the drain lock of this change; the lock is kept until that has ended."
		return
	case r.Phase == types.RepairWaits: // for a time, or for what only an operator ends
		s.Reason += lacks + r.Reason + " The drain lock is kept until that has ended."
		return
	}
	s.Reason += lacks + "An operator must investigate; the drain lock is kept until that has ended."
}

// forgets what was listed before k3s was stopped.
func (f *facts) forgets(began time.Duration) {
	if f.checked != nil && f.checked.at <= max(began, f.recovery.Restarted(f.boot)) {
		f.checked = nil
	}
}

// remounts says that k3s restarts for volumes that are not mounted, "" where it does not. That may be under the lock of
// this node's change, which neither ends nor stops k3s meanwhile.
func (f facts) remounts() string {
	started := time.Duration(0)
	if f.process.PID != 0 {
		started = f.process.Start
	}
	if f.recovery.Restarts(f.boot, f.uptime, started) {
		return "k3s restarts for volumes that are not mounted"
	}
	return ""
}

// remounted reports whether k3s was restarted for volumes that are not mounted, less than that long ago: what it
// lacks until then is not of the change.
func (f facts) remounted(long time.Duration) bool {
	last := f.recovery.Restarted(f.boot)
	return last > 0 && f.uptime < last+long
}

// unstopped reports whether k3s of before the change still runs, with its binary replaced: because
// the other servers cannot do without it at the moment, which is no failure.
func (f facts) unstopped() bool {
	j, p := f.journal, f.process
	former := p.Start < j.Began && (p.PID != 0 || f.kubeInit && f.known)
	waits := !f.known || f.checked == nil || f.checked.lock.Holder == f.own.Name
	return j.Step == types.K3sStepChange && j.Sum != "" && !j.Restarted && f.evidence.disk == j.To && former && waits
}

// othersAway says that the etcd of this server runs, and is connected with too few others for the
// API server to answer.
func (f facts) othersAway() string {
	e, since := f.found.Etcd, max(f.journal.Began, f.process.Start)
	if f.evidence.at <= since || !f.found.HasEtcd || f.found.EtcdErr != nil || e.HasLeader || 2*(e.Connected+1) > e.Members {
		return ""
	}
	return fmt.Sprintf("etcd of this server runs without a leader, connected with %d of %s", e.Connected, phrase.Counted(e.Members-1, "other member"))
}

// recipe names what an operator may do where a change is stuck.
func (f facts) recipe() string {
	switch {
	case f.single():
		return TakeBackRecipe
	case f.found.HasEtcd && f.journal.Commit != "" && f.journal.Step != types.K3sStepReturn:
		return `See operations.md, "To take a cluster back to a snapshot".`
	}
	return `See operations.md, "Where a change is stuck".`
}

// withdrawn reports whether an operator takes back a change that has not begun to run.
func (f facts) withdrawn() bool {
	return f.untouched() && (f.version.Wanted == f.journal.From || f.hold != "")
}

// untouched reports whether the version of the change has never been on this disk. No data is
// of that version then, so that the last server may return as well.
func (f facts) untouched() bool {
	j, v := f.journal, f.version
	return j.Step == types.K3sStepChange && !j.Ran && f.heard && f.evidence.disk != j.To && v.Binary == j.From && (v.Running == "" || v.Running == j.From)
}

// volumesError is that the nodes were listed, and the volumes could not be: of that k3s is not to blame.
type volumesError struct{ error }

func (e volumesError) Unwrap() error { return e.error }

func (f facts) onlyVolumes() bool { return errors.As(f.unlisted, new(volumesError)) }

// lastListed is since when the list has failed.
func (f facts) lastListed() time.Duration {
	last := max(f.listed, f.journal.Began)
	if !f.onlyVolumes() {
		last = max(last, f.heardAt)
	}
	return last
}

// fails says why the cluster could not be listed for long, "" where it could.
func (f facts) fails() string {
	if f.unlisted == nil || f.uptime < f.lastListed()+seenAfter {
		return ""
	}
	said := why(f.unlisted)
	if list := "list volumes: "; f.onlyVolumes() && !strings.HasPrefix(said, list) { // it hangs
		said = list + said
	}
	return fmt.Sprintf("the cluster could not be listed for %s: %s", seenAfter, said)
}

// looking is what lacks while the cluster is listed once more, or its volumes cannot be.
func (f facts) looking() string {
	if why := f.fails(); why != "" && f.onlyVolumes() {
		return why
	}
	return "it is looked at whether the kubelet renews its Lease"
}

// illSince is since when k3s itself lacks something, 0 where it is well. A look shows which: until then
// it is as it was. Where the nodes could be listed, and the volumes not, it is well; of servers that
// are away it is not to blame.
func (f facts) illSince(lacks string) time.Duration {
	looks := lacks == f.looking()
	switch {
	case lacks == "", looks && f.onlyVolumes(), !f.known && f.othersAway() != "":
		return 0
	case looks:
		return f.ill
	case lacks == f.fails():
		return cmp.Or(f.ill, f.lastListed())
	}
	return cmp.Or(f.ill, f.uptime)
}

// unverified says what shows that k3s does not run the version well, "" for nothing.
func (f facts) unverified(target string) string {
	j := f.journal
	i := -1
	if f.checked != nil {
		i = slices.IndexFunc(f.checked.nodes, func(n types.Node) bool { return n.Name == f.own.Name })
	}
	switch {
	case !f.known:
		return "the API server does not answer"
	case f.own.KubeletVersion != target || f.version.Running != target:
		return "the kubelet reports " + f.own.KubeletVersion
	case !f.version.OnDisk, f.evidence.disk != "" && f.evidence.disk != target:
		return "the k3s on disk is not " + target
	case f.process.PID != 0 && f.uptime < f.process.Start+stableFor:
		return fmt.Sprintf("k3s has run for less than %s", stableFor)
	case f.own.Etcd && f.own.EtcdVoter == types.ConditionFalse:
		return "the member of etcd on this node does not vote"
	case j.Step == types.K3sStepReturn && j.Failed.To != "" && (f.own.K3s == nil || f.own.K3s.Failed != j.Failed.To):
		return "the other nodes have not been told of the failure"
	case i < 0 && f.fails() != "" && f.onlyVolumes() && f.own.Ready != types.ConditionTrue: // of what was listed nothing is kept
		return "this node is not Ready"
	case i < 0:
		return cmp.Or(f.fails(), f.looking())
	case f.checked.nodes[i].Ready != types.ConditionTrue:
		return "this node is not Ready, or its kubelet does not renew its Lease"
	case f.own.IsServer() && f.checked.unready != nil: // that of a worker is another node's
		return "the API server of this node is not ready: " + why(f.checked.unready)
	}
	return ""
}

// notBack says what ran here before and does not now, "" for nothing. Time, not the former
// version, brings it back.
func (f facts) notBack() string {
	if pods := f.notRunning(); len(pods) > 0 { // known also while the cluster is listed once more
		return "pod " + pods[0] + " ran before and does not run again"
	}
	return f.worseOff()
}

// notRunning are the pods that ran here before, and are there and do not run.
func (f facts) notRunning() []string {
	return slices.DeleteFunc(slices.Clone(f.journal.Pods), func(pod string) bool {
		runs, there := f.pods[pod]
		return runs || !there
	})
}

// onlyPods are those, where the change lacks nothing else. While the cluster is listed once more, which it is again
// and again, that is as it was before.
func (f facts) onlyPods(unverified string) []string {
	looking := unverified == f.looking() && f.fails() == "" && f.published.LacksPods()
	if looking || unverified == "" && f.worseOff() == "" {
		return f.notRunning()
	}
	return nil
}

// worseOff says which volume, or what of etcd, is worse than before, "" for nothing.
func (f facts) worseOff() string {
	j := f.journal
	for _, v := range f.checked.storage.Volumes {
		if was, there := j.Volumes[v.Name]; there && v.State == "attached" && v.HealthyReplicas() < min(was, max(v.Wanted, 1)) && !v.HealthyOn(f.own.Name) {
			return "volume " + v.Name + " has fewer healthy replicas than before, and none on this node"
		}
	}
	// Of a server that is away the change is not to blame.
	if e := f.evidence; j.Step == types.K3sStepChange && j.Kind != types.K3sRestart && f.own.Etcd && e.at > max(j.Began, f.process.Start) && len(types.QuorumOf(f.checked.nodes).Down) == 0 {
		return e.etcd.lacks
	}
	return ""
}

// mine reports that the drain lock is held for a change of k3s on this node.
func (f facts) mine() bool {
	return f.checked != nil && f.checked.lock.Holder == f.own.Name && f.checked.lock.Task == types.TaskK3sChange
}

// underLock reports that a change of k3s may begin under the lock that this node has.
func (f facts) underLock() bool {
	return f.mine() && f.checked.lock.BootID == f.boot && !f.checked.lock.Ended
}

// gives frees the drain lock if it is held for a change of k3s. That is known once the lock
// has been read. A drain of this node that goes on under it still needs it, if it is not for k3s alone.
func (f facts) gives(a *action) {
	switch {
	case f.mine() && f.remounts() != "":
	case f.mine() && f.drain.Holds() && !f.drain.OnlyForK3s():
	case f.mine() && !f.drain.Holds() && f.stillNeeded():
		if f.underLock() {
			a.call = end // so that others can tell once it is not needed, and a drain of this node need not wait
		}
	case f.mine():
		a.call = free
	case f.lock.Holder != f.own.Name || f.own.Name == "" || f.checked != nil || f.lock.Version == f.looked:
	case f.uptime >= f.triedAt+checkEvery || f.triedAt == 0:
		a.call = check
	}
	if f.lock.Holder == f.own.Name {
		a.again = again
	}
}

// stillNeeded reports that the lock of a change that has ended is kept, as one of a drain is
// (docs/decisions/0015-drain-lock.md): while a volume is worse off than when the lock was taken, which may have
// been for a drain in a former boot; after a reboot also until this node is back from that.
func (f facts) stillNeeded() bool {
	lock := f.checked.lock
	if lock.BootID == "" {
		return false
	}
	return len(lock.Degraded(f.checked.storage)) > 0 || lock.BootID != f.boot && slices.ContainsFunc(f.checked.nodes, func(n types.Node) bool {
		n.TieBreaker = n.BreaksTies(f.tie) // whose cordon stays
		return n.Name == f.own.Name && n.NotBack() != ""
	})
}

// writes is the stamp, where it differs from the one on the own Node.
func (f facts) writes(a *action) {
	if !f.heard || !f.known || f.unread { // of what is under way the journal knows
		return
	}
	stamp := types.K3sStamp{Wanted: f.version.Wanted, Step: a.journal.Step, To: a.journal.To, Failed: a.journal.Failed.To, Joined: f.joined, Restarted: a.journal.Restarts.At, Override: f.overrideStamp(a.journal.Override.To)}
	if waitsForOthers(a.status.Restart) {
		stamp.Restart = a.status.Restart.Wish
	}
	if e := f.evidence; e.etcdHas != "" {
		stamp.Leader, stamp.Etcd = e.etcdLead, e.etcdHas
	} else if f.own.K3s != nil && f.own.Etcd { // what was known last
		stamp.Leader, stamp.Etcd = f.own.K3s.Leader, f.own.K3s.Etcd
	}
	old := f.own.K3s
	if a.journal.Step != types.K3sStepNone || f.mine() || !a.status.Drain.RequestedAt.IsZero() { // else nobody waits for it
		if old != nil {
			stamp.Renewed = old.Renewed
		}
		if f.now.Sub(stamp.Renewed).Abs() >= renewEvery {
			stamp.Renewed = f.now.UTC().Truncate(time.Second)
		}
	}
	if old == nil || *old != stamp {
		a.stamp = &stamp
	}
}

// listed is the order, as it is published.
func listed(ordered []types.Node, to string) []types.KubeLifecycleNode {
	list, first := []types.KubeLifecycleNode{}, next(ordered, to)
	for _, n := range ordered {
		state := "later"
		switch {
		case n.KubeletVersion == to:
			state = "done"
		case n.Name == first:
			state = "next"
		}
		list = append(list, types.KubeLifecycleNode{Name: n.Name, Version: n.KubeletVersion, State: state})
	}
	return list
}

func (f facts) runningPods() (running []string) {
	for pod, runs := range f.pods {
		if runs {
			running = append(running, pod)
		}
	}
	slices.Sort(running)
	return running
}

// replicas counts the healthy replicas of each volume that has one on the node.
func replicas(s types.Storage, node string) map[string]int {
	was := map[string]int{}
	for _, v := range s.Volumes {
		if v.On(node) {
			was[v.Name] = v.HealthyReplicas()
		}
	}
	return was
}
