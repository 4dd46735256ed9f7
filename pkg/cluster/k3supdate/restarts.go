package k3supdate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

const (
	day = 24 * time.Hour
	// confirmedFor is how old the newest time that was believed may be: it is kept once an hour.
	confirmedFor = 3 * time.Hour
	// rereadAfter is when the certificates have been read since k3s started: every 5 min.
	rereadAfter = 10 * time.Minute
	announced   = 10 * time.Minute // for which it is said before that etcd has no quorum meanwhile
	// endsWithin is how long a supervisor may take to end k3s.
	endsWithin   = 15 * time.Minute
	readAfter    = 30 * time.Second // of an agent: the certificates have been read
	mostTries    = 3                // after which k3s goes on as before
	mostFailures = 3                // restarts in a row, and as many again once it is urgent
	done         = "k3s was restarted for its certificates."
	// restoreAfter is when k3s does not come up with certificates that it was to make.
	restoreAfter = 10 * time.Minute
)

// restartFacts are those that restarts for certificates need besides.
type restartFacts struct {
	certs     types.K3sCertificates
	request   types.CertsResetRequest
	noRestart string // why k3s cannot be restarted; "" where it can
	layout    string // why no file of a certificate may be moved aside; "" where it may
	kept      bool   // files of certificates are still aside for this reset
	// filesUnseen says that the files of this reset have not been looked at.
	filesUnseen bool
	updating    string // which component is being updated; one that has failed is not, for good
}

// asks reports whether an operator waits for a restart.
func (f facts) asks() bool {
	return !f.request.RequestedAt.IsZero() && !f.request.RequestedAt.Equal(f.journal.Restarts.Answers)
}

// reset is the request by which certificates are moved aside, or have been; zero for none.
func (f facts) reset() time.Time {
	switch {
	case f.journal.Force:
		return f.journal.Restarts.Answers
	case f.asks() && f.request.Force:
		return f.request.RequestedAt
	}
	return time.Time{}
}

// wish says why k3s is to be restarted, by certificates that have been read since this agent
// and k3s started.
func (f facts) wish() types.K3sRestartWish {
	if len(f.certs.Leaves) == 0 || f.agent < readAfter {
		return ""
	}
	last := f.lastToExpire()
	switch left := f.certs.Leaves[0].NotAfter.Sub(f.now); {
	case !f.known && f.agent >= seenAfter && last.Where != "" && !last.NotAfter.After(f.now):
		return types.RestartExpired
	case left <= types.CertUrgentWithin:
		return types.RestartUrgent
	case f.asks() && (f.request.Force || left <= types.RenewalWindow(f.from())):
		return types.RestartAsked
	case left <= types.CertDueWithin:
		return types.RestartDue
	}
	return ""
}

// lastToExpire is the certificate with which the last of those expires that show that nobody can
// be asked: on a server those that k3s renews only when it starts, else those of its kubelet,
// which it makes again at each start. It renews that of the API server while it runs.
func (f facts) lastToExpire() types.K3sCertificate {
	var ofServer, ofKubelet types.K3sCertificate
	for _, leaf := range f.certs.Leaves { // the first to expire first
		switch where := leaf.Where; {
		case strings.HasSuffix(where, fmt.Sprint(":", types.PortAPI)):
		case strings.Contains(where, "/agent/"), strings.HasSuffix(where, fmt.Sprint(":", types.PortKubelet)):
			ofKubelet = leaf
		default:
			ofServer = leaf
		}
	}
	if ofServer.Where == "" || f.own.Name != "" && !f.own.IsServer() {
		return ofKubelet
	}
	return ofServer
}

// restarts begins a restart of k3s for its certificates, where no change of its version is
// about to begin: that starts k3s as well.
func (f facts) restarts(a *action) {
	r, j := &a.status.Restart, f.journal.Restarts
	if f.unread || !f.heard || a.journal.Step != types.K3sStepNone {
		return
	}
	if r.Wish = f.wish(); r.Wish == "" {
		if len(f.certs.Leaves) == 0 || f.agent < readAfter {
			return
		}
		if f.asks() { // there is nothing to renew
			j.Answers = f.request.RequestedAt
		}
		if j.Failures > 0 { // they have been renewed otherwise
			j.Failures, j.Failed, r.Failed = 0, "", ""
		}
		a.journal.Restarts = j
		return
	}
	if r.Wish == types.RestartExpired {
		a.status.From = f.from() // k3sconfig then looks for it on the disk
	} else if !f.known {
		r.Reason = "The API server does not answer, or this node's kubelet has not reported in this boot."
		if first, last := f.certs.Leaves[0].NotAfter, f.lastToExpire(); !first.After(f.now) && last.NotAfter.After(f.now) {
			r.Reason += fmt.Sprintf(" Without it k3s is restarted once certificate %s has expired as well, at %s.", last.Name, last.NotAfter.UTC().Format(time.RFC3339))
		}
		return
	} else if f.checked != nil {
		f.nodes = f.checked.nodes // they renew their Leases
		f.order = order(f.nodes)
	}
	a.again = again
	before := a.call
	defer func() { a.renews = a.call != before }()
	r.Preconditions = f.restartPreconditions(r)
	lacking := notHeld(r.Preconditions)
	if a.call == take {
		r.Reason = "The version of k3s changes first, which starts it as well."
		return
	}
	if len(lacking) > 0 {
		r.Reason = waitsUntil("k3s is not restarted for its certificates yet: ", lacking, "zedkube k3s certs reset")
		if snapshot := func(p types.KubeLifecyclePrecondition) bool { return p.Name == "Snapshot" }; a.prepare == noPreparation && f.evidence.saves &&
			slices.ContainsFunc(lacking, snapshot) && f.prepared.due(save, a.status.To, f.uptime) {
			a.prepare = save
		}
	}
	f.inTurn(a, &r.Reason, lacking, r.Wish == types.RestartExpired, f.restartNow)
}

// inTurn goes on with a restart of k3s: look, take the lock and look again, begin. One that asks
// nobody begins at once.
func (f facts) inTurn(a *action, reason *string, lacking []types.KubeLifecyclePrecondition, offline bool, begin func(*action)) {
	switch {
	case len(lacking) > 0:
		onlyChecks := !slices.ContainsFunc(lacking, func(p types.KubeLifecyclePrecondition) bool { return p.Name != "Volumes" && p.Name != "Lock" })
		if f.mine() {
			if !allHold(a.status.Preconditions) && !allHold(a.status.Restart.Preconditions) { // else it was taken for that
				f.gives(a)
			}
		} else if onlyChecks && a.call == noCall && f.uptime >= f.triedAt+checkEvery {
			a.call = check
		}
	case f.busy, f.holdIsOld: // what is under way may free the drain lock
		*reason, a.call = "What is under way has to end before.", noCall
	case offline:
		begin(a)
	case f.checked == nil:
		*reason = "All nodes and the volumes with a replica here are looked at once more."
		if f.uptime >= f.triedAt+checkEvery || f.triedAt == 0 {
			a.call = check
		}
	case !f.underLock(): // that of a former boot another node may be taking
		*reason, a.call = "The drain lock is taken.", take
	default:
		begin(a)
	}
}

// allHold reports whether something is to be changed, and nothing is in its way.
func allHold(list []types.KubeLifecyclePrecondition) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(p types.KubeLifecyclePrecondition) bool { return !p.Holds })
}

// restartNow writes down what is to be renewed and restarts k3s, in one step: what was asked
// a moment ago still holds.
func (f facts) restartNow(a *action) {
	s, j := &a.status, &a.journal
	*j = types.KubeLifecycleJournal{
		Step: types.K3sStepChange, From: f.from(), To: f.from(), Kind: types.K3sRestart, BootID: f.boot, Cluster: f.cluster, Began: f.uptime, Restarted: true,
		Failed: f.journal.Failed, Restarts: f.journal.Restarts, Wish: s.Restart.Wish, Leaves: map[string]time.Time{},
	}
	a.call = restart
	if f.asks() {
		j.Restarts.Answers = f.request.RequestedAt
		if j.Force = f.request.Force; j.Force {
			a.call = renew
		}
	}
	j.Restarts.At, j.Restarts.BootID = f.now.UTC().Truncate(time.Second), ""
	if j.Wish == types.RestartExpired {
		j.Restarts.BootID = f.boot
	} else {
		j.Pods, j.Volumes = f.runningPods(), replicas(f.checked.storage, f.own.Name)
	}
	for _, leaf := range f.certs.Leaves {
		if j.Force || leaf.NotAfter.Sub(f.now) <= types.RenewalWindow(j.From) {
			j.Leaves[leaf.Where] = leaf.NotAfter
		}
	}
	s.Phase, s.From, s.To, s.Kind, s.Refused, s.Commit, s.Preconditions = types.LifecycleChanges, j.From, j.To, j.Kind, "", "", nil
	s.Reason = fmt.Sprintf("k3s is restarted, to renew %s.", phrase.Counted(len(j.Leaves), "certificate"))
	s.Restart.Reason, s.Restart.Last = s.Reason, j.Restarts.At
}

// restarting looks what has become of the restart that was begun.
func (f facts) restarting(a *action) {
	s, j := &a.status, &a.journal
	s.Phase, s.From, s.To, s.Kind = types.LifecycleChanges, j.From, j.To, j.Kind
	a.again, a.renews = again, true
	if j.BootID != f.boot { // it has started with the boot
		j.BootID, j.Began = f.boot, 0
	}
	f.forgets(j.Began)
	former := f.process.PID != 0 && f.process.Start < j.Began
	unstarted := former && !j.Restored && (f.known || j.Wish == types.RestartExpired) && f.uptime >= j.Began+endsWithin
	late := f.uptime >= j.Began+patchFor && (f.known || f.agent >= seenAfter)
	lacks, unmoved := f.unverified(j.To), f.unmoved()
	pods := f.onlyPods(lacks)
	wait := f.remounts() != "" || lacks != "" && lacks != f.looking() && f.remounted(patchFor)
	if lacks == "" || len(pods) > 0 {
		lacks = cmp.Or(f.notBack(), f.remounts())
	}
	switch {
	case lacks != "":
	case former:
		lacks = "k3s has not been restarted yet"
	case f.own.K3s == nil || !f.own.K3s.Restarted.Equal(j.Restarts.At): // one is restarted a day
		lacks = "the other nodes have not been told of it"
	}
	reread := ""
	if len(unmoved) > 0 {
		reread = "certificate " + phrase.Few(unmoved, 3) + " is the one of before"
	}
	switch {
	case j.Force && f.filesUnseen:
		s.Reason = "k3s restarts for its certificates: their files are looked at."
	case j.Restored && !f.known && (f.kept || former) && !late: // the agent was killed before they were back
		s.Reason = "k3s did not come up with new certificates: those of before are put back."
		if !f.busy && (f.uptime >= f.triedAt+restartAfter || f.triedAt == 0) {
			a.call = putBack
		}
	case j.Restored && !f.kept && (lacks == "" || former && f.known && f.uptime >= j.Began+endsWithin):
		j.Restarts.Failed = "k3s did not come up with new certificates: those of before were put back."
		f.restartEnds(a, done)
	case unstarted && j.Force && f.kept && f.uptime < j.Began+endsWithin+swapFor: // the agent was killed once they were moved aside, or the restart was refused
		s.Reason = "k3s was not restarted: its certificates of before are put back."
		a.call = putBack
	case unstarted: // the agent was killed before it, or it was refused
		if j.Restarts.Tries++; j.Restarts.Tries >= mostTries {
			j.Restarts.Failed, j.Restarts.Tries = "k3s was not restarted: it goes on as before.", 0
			j.Restarts.Failures++
		} else if j.Wish == types.RestartAsked {
			j.Restarts.Answers = time.Time{}
		}
		f.restartEnds(a, "k3s was not restarted, and is to be again.")
	case lacks == "" && reread == "":
		j.Restarts.Failed, j.Restarts.Tries, j.Restarts.Failures = "", 0, 0
		f.restartEnds(a, done)
	case lacks == "" && late:
		j.Restarts.Failed, j.Restarts.Tries = "k3s was restarted and did not renew its certificates: "+reread+".", 0
		if j.Wish != types.RestartAsked {
			j.Restarts.Failures++
		}
		f.restartEnds(a, done)
	case j.Force && !j.Restored && !f.busy && !f.known && f.uptime >= j.Began+restoreAfter && !f.remounted(restoreAfter) && f.agent >= seenAfter:
		j.Restored, j.Began, a.call = true, f.uptime, putBack
		s.Reason = "k3s did not come up with new certificates: those of before are put back."
	case late && j.Wish == types.RestartExpired && !f.known:
		j.Restarts.Failed = "k3s was restarted because all its certificates had expired, and the API server does not answer."
		f.restartEnds(a, done)
	default:
		if lacks == "" {
			lacks = reread
		}
		s.Reason = "k3s restarts for its certificates: " + lacks + "."
		switch {
		case late && wait:
			s.Phase = types.LifecycleStuck
		case late && former:
			f.stuck(s, " ", nil)
		case late:
			f.stuck(s, " ", pods)
		}
		if f.known && !former && f.own.KubeletVersion == j.To && f.checked == nil && f.uptime >= f.triedAt+checkEvery {
			a.call = check
		}
	}
	s.Restart = types.K3sRestartStatus{Last: a.journal.Restarts.At, Failed: a.journal.Restarts.Failed}
	if a.journal.Step != types.K3sStepNone {
		s.Restart.Wish, s.Restart.Reason = j.Wish, s.Reason
	}
}

// restartEnds closes the journal, and frees the lock.
func (f facts) restartEnds(a *action, why string) {
	a.journal = types.KubeLifecycleJournal{Failed: a.journal.Failed, Restarts: a.journal.Restarts}
	a.status.Phase, a.status.Reason = types.LifecycleIdle, cmp.Or(a.journal.Restarts.Failed, why)
	f.gives(a)
}

// unmoved names the certificates that are still the ones of before the restart.
func (f facts) unmoved() (names []string) {
	for _, where := range slices.Sorted(maps.Keys(f.journal.Leaves)) {
		i := slices.IndexFunc(f.certs.Leaves, func(c types.K3sCertificate) bool { return c.Where == where })
		switch {
		case i >= 0 && !f.certs.Leaves[i].NotAfter.After(f.journal.Leaves[where]):
			names = append(names, f.certs.Leaves[i].Name)
		case i < 0 && slices.ContainsFunc(f.certs.Unread, func(text string) bool { return strings.Contains(text, where+": ") }):
			names = append(names, where)
		}
	}
	return names
}

// restartPreconditions are what a restart waits for. What an operator may do without is
// what the request names.
func (f facts) restartPreconditions(r *types.K3sRestartStatus) (list []types.KubeLifecyclePrecondition) {
	add := func(name, lacks string, release bool) {
		list = append(list, precondition(name, lacks, release, f.asks() && slices.Contains(f.request.Without, name)))
	}
	urgent := r.Wish == types.RestartUrgent || r.Wish == types.RestartExpired
	add("NotHeld", cmp.Or(f.hold, f.unheld), false)
	add("Clock", f.clockDoubt(), false)
	add("NotAgain", f.restartedToday(r.Wish), r.Wish != types.RestartExpired)
	add("Process", f.unrestartable(), false)
	add("SameBinary", f.otherBinary(), false)
	add("NoDrain", f.goesDown(false), false)
	if r.Wish == types.RestartExpired { // nobody can be asked
		add("Authority", f.authorityExpired(), false)
		return list
	}
	if f.asks() && f.request.Force {
		add("Layout", f.layout, false)
	}
	if r.Wish != types.RestartAsked {
		add("Turn", f.restartTurn(urgent), true)
	}
	if r.Wish == types.RestartDue {
		add("OneADay", f.otherRestartedToday(), true)
	}
	lack, alone := f.quorum()
	q := types.QuorumOf(types.Without(f.nodes, f.own.Name))
	cure := urgent && f.own.Votes() && (lack == "" && alone != "" || q.Voters == 3 && len(q.Down) == 2)
	if !cure {
		add("Quorum", lack, false)
		add("QuorumWithoutThis", alone, true)
	}
	if !urgent {
		f.healthy(add)
	}
	add("Components", f.updating, true)
	if cure {
		if found := f.evidence.snapshot; found.known {
			add("Snapshot", found.lacks, false)
		} else {
			add("Snapshot", "it is not known whether there is a snapshot of etcd, at most 30 minutes old, on this node", true)
		}
		add("Announced", f.unannounced(r, lack+alone), false)
	}
	add("Lock", f.locked(false), false)
	if !urgent {
		add("Volumes", f.degraded(), f.checked != nil)
	} else if f.checked == nil {
		add("Volumes", f.degraded(), false)
	}
	return list
}

// healthy adds what a restart asks of the nodes and of etcd.
func (f facts) healthy(add func(name, lacks string, release bool)) {
	add("NodesReady", f.notReady(), true)
	if f.own.Etcd {
		add("EtcdHealthy", f.evidence.etcd.lacks, true)
		add("EtcdMembers", f.learner(), false)
	}
}

// clockDoubt says why this node's clock is not believed: a certificate that seems to be about
// to expire may just be seen by a wrong clock.
func (f facts) clockDoubt() string {
	switch seen := f.certs.SeenAt; {
	case f.certs.ClockDoubt != "":
		return "this node's clock may be wrong: " + strings.TrimSuffix(f.certs.ClockDoubt, ".")
	case seen.IsZero():
		return "neither the controller nor most other nodes have confirmed this node's clock yet"
	case f.now.Before(seen), f.now.After(seen.Add(confirmedFor)):
		return "this node's clock has changed since it was last believed, at " + seen.Format(time.RFC3339)
	}
	return f.condition(types.StateClock).lacks
}

// restartedToday says that the last restart here is too recent, or that it is no use. An operator
// may ask again.
func (f facts) restartedToday(wish types.K3sRestartWish) string {
	last, wait, most := f.journal.Restarts, day, mostFailures
	if last.Failed == "" { // k3s is told to make them for less than 60 days
		wait = max(day, f.certs.Leaves[0].NotAfter.Sub(last.At)/2)
	}
	if wish == types.RestartUrgent {
		most *= 2
	}
	today := f.now.Sub(last.At).Abs() < wait
	switch {
	case wish == types.RestartExpired && last.BootID == f.boot:
		return "k3s has been restarted in this boot because all its certificates had expired"
	case last.Failures >= most && (wish == types.RestartDue || wish == types.RestartUrgent):
		return fmt.Sprintf("k3s was restarted %d times without effect, and zedkube does not try again by itself: %s", last.Failures, strings.TrimSuffix(last.Failed, "."))
	case !today, wish == types.RestartAsked, last.Tries > 0 && wish != types.RestartExpired: // it was not restarted after all
		return ""
	}
	return "k3s was restarted at " + last.At.Format(time.RFC3339) + ", and is not again before " + last.At.Add(wait).Format(time.RFC3339) + ": " + strings.TrimSuffix(cmp.Or(last.Failed, "a certificate expires soon all the same"), ".")
}

func (f facts) unrestartable() string {
	switch {
	case f.noRestart != "":
		return f.noRestart
	case f.process.PID != 0 && f.uptime < f.process.Start+rereadAfter:
		return "k3s has just started, and its certificates are read again"
	}
	return ""
}

// otherBinary says that a restart would change the version as well.
func (f facts) otherBinary() string {
	from := f.from()
	if f.version.Running != "" && f.version.OnDisk || f.version.Running == "" && from != "" && f.version.Binary == from {
		return ""
	}
	return "it is not known that the k3s on this disk is the one that runs: a restart would change the version"
}

// authorityExpired names an authority that has expired: with it k3s renews nothing.
func (f facts) authorityExpired() string {
	if len(f.certs.Authorities) == 0 {
		return "it is not known when the authorities of k3s expire"
	}
	for _, ca := range f.certs.Authorities {
		if !ca.NotAfter.After(f.now) {
			return "authority " + ca.Name + " expired on " + ca.NotAfter.Format(time.DateOnly) + ", and k3s does not renew it: docs/operations.md, \"Rotating the CA\""
		}
	}
	return ""
}

// restartTurn names a node that is restarted before this one: servers come before workers,
// because a worker's certificates are from a server. An urgent one waits for urgent ones only.
func (f facts) restartTurn(urgent bool) string {
	for _, n := range f.order {
		switch {
		case n.Name == f.own.Name:
			return ""
		case n.K3s == nil, n.Foreign(), n.Ready != types.ConditionTrue:
		case n.K3s.Restart == types.RestartUrgent, n.K3s.Restart != "" && !urgent:
			return "k3s on node " + n.Name + " is restarted before"
		}
	}
	return ""
}

func (f facts) otherRestartedToday() string {
	for _, n := range f.nodes {
		if n.Name != f.own.Name && n.K3s != nil && f.now.Sub(n.K3s.Restarted).Abs() < day {
			return "k3s on node " + n.Name + " was restarted at " + n.K3s.Restarted.UTC().Format(time.RFC3339) + ", and one node is restarted a day"
		}
	}
	return ""
}

// unannounced publishes what is lost meanwhile, until that has been said for long enough.
func (f facts) unannounced(r *types.K3sRestartStatus, lost string) string {
	r.Announced, r.AnnouncedAt = lost, f.uptime
	if was := f.published.Restart; was.Announced == lost && was.AnnouncedAt <= f.uptime {
		r.AnnouncedAt = was.AnnouncedAt
	}
	if f.uptime >= r.AnnouncedAt+announced {
		return ""
	}
	return fmt.Sprintf("%s; all the same k3s is restarted once that has been said for %s, because a certificate expires soon or has expired", lost, announced)
}

// waitsUntil is the sentence of a change or restart that waits.
func waitsUntil(what string, lacking []types.KubeLifecyclePrecondition, release string) string {
	why := what + strings.ToLower(lacking[0].Reason[:1]) + lacking[0].Reason[1:]
	if n := len(lacking) - 1; n > 0 {
		why += fmt.Sprintf(" It waits for %s besides.", phrase.Counted(n, "precondition"))
	}
	if slices.ContainsFunc(lacking, func(p types.KubeLifecyclePrecondition) bool { return !p.Release && p.Name != "Volumes" }) {
		return why // the volumes are looked at when all else holds
	}
	return why + " If that is as it should be, run here: " + release
}

// waitsForOthers reports whether only other nodes keep this one from being restarted: then
// its wish counts for their turn.
func waitsForOthers(r types.K3sRestartStatus) bool {
	return r.Wish != "" && !slices.ContainsFunc(r.Preconditions, func(p types.KubeLifecyclePrecondition) bool {
		return !p.Holds && slices.Contains([]string{"NotHeld", "Clock", "NotAgain", "Process", "SameBinary", "NoDrain", "Layout", "EtcdHealthy", "Components", "Snapshot"}, p.Name)
	})
}
