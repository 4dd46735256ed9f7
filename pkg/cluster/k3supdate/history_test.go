package k3supdate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// device is a node with its agent, its kube container and its k3s.
type device struct {
	row       types.Node // as the API server has it
	disk      string     // version of the binary
	published string     // KubeConfig
	up        bool       // k3s runs
	since     time.Duration
	bad       bool          // its k3s does not start with another version
	away      bool          // down for reasons of its own
	boot      int           //
	swapped   time.Duration // when the kube container stopped k3s for another version
	hold      bool
	journal   types.KubeLifecycleJournal
	status    types.KubeLifecycle
	checked   *checked
	tried     time.Duration
	looked    string
	drain     types.NodeDrainProgress
	release   types.K3sReleaseRequest
	staged    string // version that is staged
	former    string // version of the binary that was kept
	acted     acted
	restarted time.Duration
	expires   time.Duration // when its certificates do
	doubt     bool          // its clock is not believed
	reset     types.CertsResetRequest
	lacked    time.Duration
	blocked   time.Duration
	ill       time.Duration
	setting   string // k3s.config.override
	file      string // that k3s runs with, or is to
	downFor   string // file for which k3s was stopped
	offline   bool   // the last override was released while k3s did not answer, as a cure
}

// changes reports whether k3s changes under the lock, and not offline.
func (d *device) changes() bool {
	return d.journal.Step != types.K3sStepNone && d.journal.Wish != types.RestartExpired && !(d.journal.Kind == types.K3sOverride && d.offline)
}

// world is a cluster in which anything happens at any time.
type world struct {
	t         *testing.T
	seed      uint64
	r         *rand.Rand
	now       time.Duration
	devices   []*device
	wanted    string
	lock      types.DrainLock
	written   int
	disturbed time.Duration // when a node was last lost for reasons of its own
	committed string        // version that the last server has begun to run
	changes   int
	unseen    bool // nobody but the kube containers can reach the binaries
	swaps     int
	restores  int
	restarts  int
	wishes    map[types.K3sRestartWish]int
	drained   int
	override  string // the setting of all, in the end
	overrides int
	returned  int
	bad       map[string]taken // who has tried an override with which k3s does not come up
	renewed   time.Duration    // when k3s was last restarted because its certificates were due
	renewedOf *device
	history   []string
}

// taken is who has tried an override, and whether offline: then the others hear of its end only
// when its API server answers.
type taken struct {
	by      *device
	offline bool
}

var started = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 18)), now: 100 * time.Hour, wanted: patch, wishes: map[types.K3sRestartWish]int{}, override: "o-0", bad: map[string]taken{}}
	w.unseen = w.r.IntN(4) == 0
	servers := 1 + w.r.IntN(5)
	for i := range servers + w.r.IntN(3) {
		row := server(fmt.Sprintf("n%d", i), old)
		if i >= servers {
			row = worker(row.Name, old)
		}
		row.TieBreaker, row.K3s = i == 1 && servers > 2, nil
		w.devices = append(w.devices, &device{row: row, disk: old, published: old, up: true, setting: "o-0", file: "o-0", expires: time.Duration(w.r.IntN(70)) * day})
	}
	return w
}

func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%s ", w.now)+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, d := range w.devices {
		w.note("at the end %s runs %s, drain %q, %+v: %s: %s", d.row.Name, d.row.KubeletVersion, d.drain.Phase, d.journal, d.status.Phase, d.status.Reason)
	}
	w.note("the lock is %+v", w.lock)
	w.t.Fatalf("seed %d: %s\n%s", w.seed, fmt.Sprintf(format, args...), strings.Join(w.history[max(0, len(w.history)-60):], "\n"))
}

func (w *world) nodes() (nodes []types.Node) {
	for _, d := range w.devices {
		nodes = append(nodes, d.row)
	}
	return nodes
}

// failed reports whether a node failed, for which the others wait.
func (w *world) failed() bool {
	return slices.ContainsFunc(w.devices, func(d *device) bool { return d.journal.Failed.To != "" })
}

// late reports whether the last override has failed on a device: its kube container took too
// long by chance. No other node takes it then.
func (w *world) late() bool {
	return slices.ContainsFunc(w.devices, func(d *device) bool { return d.journal.Override.To == w.override })
}

func (w *world) setLock(lock types.DrainLock) {
	w.written++
	w.lock, w.lock.Version = lock, fmt.Sprint(w.written)
}

func (w *world) facts(d *device) facts {
	nodes := w.nodes()
	answers := d.up && !d.away && types.QuorumOf(nodes).Has()
	f := facts{
		now: started.Add(w.now), uptime: w.now, boot: fmt.Sprint(d.boot), heard: true, known: answers, own: d.row, nodes: nodes, order: order(nodes),
		version: types.K3sVersionStatus{Version: d.published, Wanted: w.wanted}, requestsKnown: true, agent: time.Hour, hour: time.Hour, conditions: conditions(types.ConditionTrue, ""), drain: d.drain, lacked: d.lacked, blocked: d.blocked, ill: d.ill,
		evidence: evidence{binary: good, snapshot: good, etcd: good, components: good, removed: good}, release: d.release,
		lock: types.Lease{Holder: w.lock.Holder, Version: w.lock.Version}, off: map[string]bool{}, pods: map[string]bool{},
		checked: d.checked, triedAt: d.tried, looked: d.looked, journal: d.journal, published: d.status,
		restartFacts: restartFacts{request: d.reset, certs: types.K3sCertificates{
			SeenAt: started.Add(w.now), Leaves: []types.K3sCertificate{{Name: "a", Where: "/a.crt", NotAfter: started.Add(d.expires)}, {Name: "b", Where: "/agent/b.crt", NotAfter: started.Add(d.expires)}},
			Authorities: []types.K3sCertificate{{NotAfter: started.Add(9999 * day)}},
		}},
		acted: d.acted, restarted: d.restarted,
		override: types.K3sOverrideStatus{Accepted: true, Sum: d.setting, InForce: d.file}, runs: d.up, unanswered: time.Duration(w.r.IntN(2)) * seenAfter,
	}
	f.evidence.at, f.evidence.disk = w.now, d.disk
	to := w.wanted
	if d.journal.Step != types.K3sStepNone {
		to = d.journal.To
	}
	switch {
	case d.disk == to || w.unseen:
	case d.staged == to:
		f.evidence.staged = "sum of " + to
	default:
		f.evidence.binary.lacks, f.evidence.fetches = "it is not staged", true
	}
	if w.unseen {
		f.evidence.disk = ""
	}
	if d.up {
		f.process = k3sprocess.Process{PID: 7, Start: d.since}
	} else {
		f.noRestart = "k3s cannot be restarted: it does not run"
	}
	if d.doubt {
		f.now, f.certs.ClockDoubt = f.now.Add(300*day), "It says so."
	}
	if answers {
		f.version.Running, f.version.OnDisk = d.row.KubeletVersion, d.row.KubeletVersion == d.disk
	}
	if d.hold {
		f.hold = "hold"
	}
	if d.disk == f.from() || d.disk == d.journal.From {
		f.version.Binary = d.disk
	}
	if w.r.IntN(30) == 0 { // the agent has just been started
		f.known, f.own, f.nodes, f.order, f.lock, f.agent, f.version.Running, f.version.OnDisk = false, types.Node{}, nil, nil, types.Lease{}, 0, "", false
	}
	return f
}

// agent is one step of the agent of a device, as in Step, and k3sconfig after it.
func (w *world) agent(d *device) {
	f := w.facts(d)
	a := decide(f)
	if was := d.journal; was.Kind == types.K3sOverride && was.Step != types.K3sStepNone && a.journal.Step == types.K3sStepChange && a.journal.Sum != was.Sum {
		d.offline = true
		w.note("%s is to be cured by %s", d.row.Name, a.journal.Sum)
	}
	switch begins := a.journal.Step != types.K3sStepNone && d.journal.Step == types.K3sStepNone; {
	case begins && a.journal.Kind == types.K3sRestart:
		w.restarted(d, a)
	case begins && a.journal.Kind == types.K3sOverride:
		w.overrides++
		d.offline = !d.up
		for _, other := range w.devices {
			if other != d && other.changes() && d.up {
				w.fail("%s takes %s while %s changes", d.row.Name, a.journal.Sum, other.row.Name)
			}
		}
		w.note("%s begins %s", d.row.Name, a.journal.Sum)
		if d.up && (w.lock.Holder != d.row.Name || w.lock.Task != types.TaskK3sChange) {
			w.fail("%s takes %s while the lock is %+v", d.row.Name, a.journal.Sum, w.lock)
		}
		if d.hold {
			w.fail("%s takes %s although the hold file is there", d.row.Name, a.journal.Sum)
		}
		first := w.bad[a.journal.Sum]
		known := first.by != nil && first.by != d && (!first.offline || first.by.row.K3s.Override.Failed == a.journal.Sum)
		if known && d.up && d.release.Version != a.journal.Sum {
			w.fail("%s takes %s, with which k3s of %s does not come up", d.row.Name, a.journal.Sum, first.by.row.Name)
		}
		if lack := types.LacksQuorum(w.nodes(), d.row.Name); d.up && lack != "" && d.row.Etcd && d.checked.at > w.disturbed {
			w.fail("%s takes %s: %s", d.row.Name, a.journal.Sum, lack)
		}
	case begins:
		w.began(d, a)
	}
	if a.status.Phase != d.status.Phase {
		w.note("%s: %s: %s", d.row.Name, a.status.Phase, a.status.Reason)
	}
	d.journal = a.journal
	if w.r.IntN(50) == 0 {
		d.checked, d.tried, d.looked, d.acted, d.restarted, d.lacked, d.blocked, d.ill = nil, 0, "", acted{}, 0, 0, 0, 0 // killed with the journal written, and nothing else
		return
	}
	d.status, d.lacked, d.blocked, d.ill = a.status, a.lacked, a.blocked, a.ill
	switch {
	case a.status.Released != "":
		d.published = a.status.Released
	case f.version.Running != "" && f.version.OnDisk:
		d.published = f.version.Running
	}
	if a.stamp != nil && f.known {
		d.row.K3s = a.stamp
	}
	if a.prepare == fetch && w.r.IntN(2) == 0 {
		d.staged = a.status.To
	}
	if a.call != noCall && (f.known || a.call >= restart) {
		w.call(d, a.call, f)
		if d.acted.at == w.now && w.r.IntN(10) > 0 {
			w.agent(d) // its end rings; else the kube container is faster
		}
	}
}

func (w *world) call(d *device, what call, f facts) {
	d.tried, d.checked = w.now, nil
	if what == install || what == restore {
		d.acted = acted{call: what, at: w.now}
	}
	switch {
	case w.r.IntN(10) == 0:
		d.acted.err = errors.New("it failed")
		return
	case what == install:
		if d.staged != f.journal.To {
			w.fail("%s installs %s, and %q is staged", d.row.Name, f.journal.To, d.staged)
		}
		w.note("%s: %s is in its place", d.row.Name, d.staged)
		d.former, d.disk, d.staged = d.disk, d.staged, ""
		w.swaps++
		return
	case what == restore:
		if d.former != f.journal.From {
			d.acted.err = errors.New("another one")
			return
		}
		goesOn := d.up && d.row.KubeletVersion == d.former // no other one has run here
		if w.committed != "" && d.former < w.committed && d.row.IsServer() && !goesOn {
			w.fail("%s goes back from %s to %s after the last server began %s", d.row.Name, d.disk, d.former, w.committed)
		}
		w.note("%s: %s is in its place again", d.row.Name, d.former)
		d.disk, d.former = d.former, ""
		w.restores++
		return
	case what == free:
		if w.lock.Holder == d.row.Name && w.lock.Task == types.TaskK3sChange {
			w.setLock(types.DrainLock{})
		}
		return
	case what == restart || what == renew || what == putBack:
		version := d.journal.Kind != types.K3sRestart
		if lack := types.LacksQuorum(w.nodes(), d.row.Name); version && lack != "" && d.row.Etcd && d.journal.Step == types.K3sStepChange && f.checked.at > w.disturbed {
			w.fail("%s is restarted: %s", d.row.Name, lack)
		}
		w.note("%s: k3s is restarted", d.row.Name)
		d.up, d.row.Ready, d.restarted = false, types.ConditionUnknown, w.now
		return
	case what == take:
		if w.lock.Version != f.checked.lock.Version || w.r.IntN(10) == 0 {
			return
		}
		w.setLock(types.DrainLock{Holder: d.row.Name, BootID: d.row.BootID, Task: types.TaskK3sChange})
	}
	d.checked = &checked{at: w.now, lock: w.lock, nodes: w.nodes()}
	if w.lock.Task != types.TaskK3sChange {
		d.looked = w.lock.Version
	}
}

// began checks what must hold whenever k3s is changed.
func (w *world) began(d *device, a action) {
	w.changes++
	w.note("%s begins %s", d.row.Name, a.status.To)
	for _, other := range w.devices {
		if other != d && other.changes() {
			w.fail("%s changes while %s does", d.row.Name, other.row.Name)
		}
		if !d.row.IsServer() && other.row.IsServer() && other.row.KubeletVersion != a.status.To {
			w.fail("the kubelet of %s becomes newer than the API server of %s", d.row.Name, other.row.Name)
		}
	}
	if a.journal.Kind == types.K3sMinor && len(w.devices) > 1 && d.drain.Phase != types.PhaseComplete {
		w.fail("%s changes to another minor version, and is not drained", d.row.Name)
	}
	if w.lock.Holder != d.row.Name {
		w.fail("%s changes while the lock is %+v", d.row.Name, w.lock)
	}
	if lack := types.LacksQuorum(w.nodes(), d.row.Name); lack != "" && d.row.Etcd && d.checked.at > w.disturbed {
		w.fail("%s changes: %s", d.row.Name, lack)
	}
	if d.row.IsServer() && commits(d.row, w.nodes(), a.status.To) != "" {
		w.committed = max(w.committed, a.status.To)
	}
	if v := judge(d.row.KubeletVersion, a.status.To, nil); v.why != "" {
		w.fail("%s changes: %s", d.row.Name, v.why)
	}
}

// restarted checks what must hold whenever k3s is restarted for its certificates.
func (w *world) restarted(d *device, a action) {
	w.restarts++
	wish, offline := a.journal.Wish, a.journal.Wish == types.RestartExpired
	w.wishes[wish]++
	w.note("%s restarts: %s", d.row.Name, wish)
	for _, other := range w.devices {
		if other != d && other.changes() && !offline {
			w.fail("%s restarts while %s changes", d.row.Name, other.row.Name)
		}
	}
	voters := types.QuorumOf(types.Without(w.nodes(), d.row.Name))
	lack := types.LacksQuorum(w.nodes(), d.row.Name)
	switch {
	case d.doubt:
		w.fail("%s restarts by a clock that is doubted", d.row.Name)
	case d.hold:
		w.fail("%s restarts although the hold file is there", d.row.Name)
	case offline && d.expires > w.now:
		w.fail("%s restarts offline with a certificate that has not expired", d.row.Name)
	case !offline && w.lock.Holder != d.row.Name:
		w.fail("%s restarts while the lock is %+v", d.row.Name, w.lock)
	case !offline && d.row.Etcd && lack != "" && d.checked.at > w.disturbed && (wish != types.RestartUrgent || voters.Voters != 3):
		w.fail("%s restarts (%s): %s", d.row.Name, wish, lack)
	case wish == types.RestartDue && w.renewed != 0 && w.renewedOf != d && w.now < w.renewed+day:
		w.fail("%s restarts, and another one was restarted at %s", d.row.Name, w.renewed)
	}
	if !offline { // of which the others hear once its API server answers
		w.renewed, w.renewedOf = w.now, d
	}
}

// takesFile is k3sconfig and the kube container: k3s is stopped for the file that is released.
func (w *world) takesFile(d *device) {
	turn := d.status.Override
	if turn.Released == "" || turn.Released == d.file || w.r.IntN(3) > 0 {
		return
	}
	for _, other := range w.devices {
		if d.up && !d.offline && other != d && !other.up && other.downFor != "" && !other.away && !slices.Contains(d.release.Without, "NodesReady") {
			w.fail("%s is stopped for %s, and %s is still down for %s", d.row.Name, turn.Released, other.row.Name, other.downFor)
		}
	}
	if strings.HasSuffix(turn.Released, "bad") && turn.Released != turn.Former {
		w.bad[turn.Released] = taken{d, d.offline}
	}
	if d.journal.Step == types.K3sStepReturn {
		w.returned++
	}
	w.note("%s: k3s stops for %s", d.row.Name, turn.Released)
	if d.up {
		d.downFor = turn.Released
	}
	if d.up && d.offline { // it has come up since the file was written, and the kube container looks at that only now
		w.disturbed = w.now
	}
	d.file, d.up, d.row.Ready = turn.Released, false, types.ConditionUnknown
}

// container is EVE's: it looks at KubeConfig and the binary, and k3s comes up some time later.
func (w *world) container(d *device) {
	switch {
	case d.away:
	case d.up && d.published != d.disk:
		if w.committed != "" && d.published < w.committed && d.row.IsServer() && d.row.KubeletVersion != d.published {
			w.fail("%s goes from %s to %s after the last server began %s", d.row.Name, d.disk, d.published, w.committed)
		}
		w.note("%s: k3s stops for %s", d.row.Name, d.published)
		d.up, d.swapped, d.disk, d.row.Ready = false, w.now, d.published, types.ConditionUnknown
	case !d.up && d.published != d.disk:
		d.disk = d.published
	case !d.up && !(d.bad && d.disk != d.row.KubeletVersion) && !strings.HasSuffix(d.file, "bad") && w.r.IntN(3) == 0:
		d.downFor = ""
		d.up, d.since, d.row.Ready, d.row.KubeletVersion = true, w.now, types.ConditionTrue, d.disk
		if d.expires-w.now <= types.CertRenewableWithin {
			d.expires = w.now + 365*day
		}
		w.note("%s: k3s runs %s", d.row.Name, d.disk)
	}
	oldest := ""
	for _, d := range w.devices {
		if d.row.IsServer() && (oldest == "" || d.row.KubeletVersion < oldest) {
			oldest = d.row.KubeletVersion
		}
	}
	w.committed = max(w.committed, oldest)
	for _, d := range w.devices {
		if d.row.KubeletVersion > oldest && !d.row.IsServer() {
			w.fail("the kubelet of %s is %s, an API server is %s", d.row.Name, d.row.KubeletVersion, oldest)
		}
	}
}

// drains is the drain of a node, which it has requested, for as long as it does.
func (w *world) drains(d *device) {
	asks := !d.status.Drain.RequestedAt.IsZero()
	if !asks && d.journal.Step != types.K3sStepNone && d.journal.Kind == types.K3sMinor && len(w.devices) > 1 && d.drain.Phase == types.PhaseComplete {
		w.fail("the drain of %s ends while k3s changes", d.row.Name)
	}
	switch {
	case w.r.IntN(4) == 0: // it takes its time
	case d.drain.Phase == "" && asks:
		d.drain = types.NodeDrainProgress{Phase: types.PhaseGates, Requesters: []string{types.RequestedByK3s}}
	case d.drain.Phase == types.PhaseGates && asks && (w.lock.Holder == "" || w.lock.Holder == d.row.Name && w.lock.Task == "") && d.up:
		w.setLock(types.DrainLock{Holder: d.row.Name, BootID: d.row.BootID})
		d.drain.Phase, d.drain.Lock.Mine = types.PhaseComplete, true
		w.drained++
	case d.drain.Phase != "" && !asks:
		d.drain = types.NodeDrainProgress{}
		if w.lock.Holder == d.row.Name && w.lock.Task == "" {
			w.setLock(types.DrainLock{})
		}
	}
}

// chance is something that nobody has decided.
func (w *world) chance(d *device) {
	switch w.r.IntN(1000) {
	case 0: // the cable, or the power
		d.away, d.row.Ready, w.disturbed = true, types.ConditionUnknown, w.now
		w.note("%s is away", d.row.Name)
	case 1: // a reboot; what was begun goes on
		d.boot++
		d.up, d.since, d.row.Ready, d.row.BootID, d.checked, d.tried, d.looked = false, w.now, types.ConditionUnknown, fmt.Sprint(d.boot), nil, 0, ""
		d.drain, w.disturbed = types.NodeDrainProgress{}, w.now
		if w.lock.Holder == d.row.Name && w.lock.Task == "" {
			w.setLock(types.DrainLock{}) // as drains free theirs
		}
		w.note("%s reboots", d.row.Name)
	case 2:
		d.bad = !d.bad
	case 3:
		d.hold = !d.hold
	case 4:
		w.wanted = []string{patch, patch, minor, minor, minor, "v1.35.2+k3s1", "v1.36.0+k3s1", "v1.20.0+k3s1", "v1.39.0+k3s1", "latest", ""}[w.r.IntN(11)]
		w.note("the setting is %q", w.wanted)
	case 6:
		d.staged = w.wanted // by an operator
	case 5:
		d.release = types.K3sReleaseRequest{Version: w.wanted, RequestedAt: started.Add(w.now), Without: all}
	case 10:
		d.doubt = !d.doubt
	case 11: // it reaches one device after the other
		w.override = fmt.Sprintf("o-%d%s", w.now, []string{"", "", "-bad"}[w.r.IntN(3)])
		w.note("the override is %q", w.override)
	case 12:
		d.release = types.K3sReleaseRequest{Version: d.setting, RequestedAt: started.Add(w.now), Without: slices.Concat(all, []string{"NotFailed"})}
	case 7:
		d.reset = types.CertsResetRequest{RequestedAt: started.Add(w.now)}
	case 8: // it has been off for long, or its clock was
		d.expires = min(d.expires, w.now+time.Duration(w.r.IntN(60))*day-10*day)
	case 9: // the API server rejects an expired certificate
		d.expires, d.away, d.row.Ready, w.disturbed = w.now-day, true, types.ConditionUnknown, w.now
	}
	if d.away && w.r.IntN(5) == 0 && d.expires > w.now {
		d.away = false
		if d.up {
			d.row.Ready = types.ConditionTrue
		}
	}
}

func (w *world) step(calm bool) {
	w.now += time.Duration(1+w.r.IntN(20)) * time.Second
	if w.r.IntN(60) == 0 && !slices.ContainsFunc(w.devices, func(d *device) bool { return d.journal.Step != types.K3sStepNone }) {
		w.now += time.Duration(w.r.IntN(48)) * time.Hour
	}
	d := w.devices[w.r.IntN(len(w.devices))]
	d.row.BootID = fmt.Sprint(d.boot)
	if w.r.IntN(20) == 0 {
		d.setting = w.override
	}
	w.agent(d)
	w.takesFile(d)
	w.container(d)
	w.drains(d)
	if !calm {
		w.chance(d)
	}
}

// settles is how many calm steps let a cluster of seven nodes arrive.
const settles = 2000

// histories plays n histories, each of busy steps and then calm ones.
func histories(t *testing.T, n uint64, busy, calm int) {
	changes, arrived, played, swaps, restores, restarts, drained, wishes := 0, 0, 0, 0, 0, 0, 0, map[types.K3sRestartWish]int{}
	overridden, returned := 0, 0
	for seed := range seeds.Each(t, n) {
		w := newWorld(t, seed)
		for range busy {
			w.step(false)
		}
		w.note("calm")
		settled := true
		for _, d := range w.devices {
			d.away, d.bad, d.hold, d.doubt = false, false, false, false
			if d.up {
				d.row.Ready = types.ConditionTrue
			}
			settled = settled && d.journal.Failed.To == "" && d.journal.Step == types.K3sStepNone
		}
		highest := old
		for _, d := range w.devices {
			highest = max(highest, d.row.KubeletVersion, d.disk)
		}
		if strings.HasSuffix(w.override, "bad") {
			w.override = "o-last"
		}
		w.wanted = highest // what every node may reach, whatever happened before
		for range calm {
			w.step(true)
		}
		for _, d := range w.devices {
			if calm >= settles && d.expires < w.now+10*day && d.status.Phase != types.LifecycleStuck && settled && w.lock.Holder == "" {
				w.fail("the certificates of %s expire at %s: %s", d.row.Name, d.expires, d.status.Restart.Reason)
			}
			stays := func() bool {
				return d.status.Drain.RequestedAt.IsZero() && d.drain.Phase != "" || !d.status.Drain.RequestedAt.IsZero() && d.status.Phase == types.LifecycleIdle
			}
			for range 200 { // the request may have been withdrawn a moment ago
				if !stays() {
					break
				}
				w.step(true)
			}
			if stays() {
				w.fail("%s stays drained: %+v, %+v", d.row.Name, d.status, d.drain)
			}
			if calm >= settles && d.file != w.override && !w.late() && d.row.KubeletVersion == w.wanted && settled && w.lock.Holder == "" && d.status.Phase == types.LifecycleIdle && len(w.devices) != 2 && types.QuorumOf(w.nodes()).Voters != 2 {
				w.fail("%s has %s, not %s: %s", d.row.Name, d.file, w.override, d.status.Override.Reason)
			}
			switch {
			case d.row.KubeletVersion == w.wanted:
				arrived++
			case d.status.Phase == types.LifecycleRefused || d.status.Phase == types.LifecycleFailed || d.status.Phase == types.LifecycleStuck || w.failed() || !settled:
			case !d.status.Drain.RequestedAt.IsZero() && w.lock.Holder != "" && w.lock.Holder != d.row.Name: // a drain of another one has not ended
			case calm < settles, len(w.devices) == 2 || types.QuorumOf(w.nodes()).Voters == 2: // an operator has to say so
			default:
				w.fail("%s is at %s, not %s: %s: %s", d.row.Name, d.row.KubeletVersion, w.wanted, d.status.Phase, d.status.Reason)
			}
		}
		overridden, returned = overridden+w.overrides, returned+w.returned
		changes, restarts, played, swaps, restores, drained = changes+w.changes, restarts+w.restarts, played+1, swaps+w.swaps, restores+w.restores, drained+w.drained
		for wish, n := range w.wishes {
			wishes[wish] += n
		}
	}
	t.Logf("%d drains", drained)
	t.Logf("%d overrides, %d of them put back", overridden, returned)
	if 4*overridden < played || returned == 0 { // short histories have fewer
		t.Error("next to no override is changed in these histories")
	}
	t.Logf("%d restarts for certificates: %v", restarts, wishes)
	if restarts < played {
		t.Error("next to no certificate is renewed in these histories")
	}
	t.Logf("%d histories, %d changes, %d binaries installed, %d restored, %d nodes at the version that was wanted last", played, changes, swaps, restores, arrived)
	if changes < played || arrived < played || swaps < played || restores == 0 || drained == 0 {
		t.Error("next to nothing happens in these histories")
	}
}

func TestInRandomHistoriesOneNodeChangesAtATime(t *testing.T) { histories(t, 60, 3000, 2000) }
