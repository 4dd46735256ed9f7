package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

var (
	t0    = 100 * time.Hour // since the boot
	wall0 = time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
)

// calm is a drain in a phase, of a healthy three-node cluster, asked for by
// zedagent ten minutes ago and published as such; every call may be made.
func calm(phase types.DrainPhase, change ...func(*facts)) facts {
	f := facts{
		observed: observed{
			now: t0, booted: wall0, timeout: 24 * time.Hour, skip: 5 * time.Minute, hour: time.Hour, unusedAfter: 24 * time.Hour,
			synced: true, known: true, node: types.Node{Name: "n1", Ready: types.ConditionTrue, BootID: "b"},
		},
		member:   true,
		requests: map[string]request{byDeviceOp: {active: true, NodeDrainRequest: types.NodeDrainRequest{RequestedAt: wall0, RequestedBy: deviceOp}}},
		up:       true, others: 2,
		rec: record{
			Phase: phase, Adopted: true, Asked: t0 - 10*time.Minute, Standing: t0 - time.Minute, Said: t0 - time.Minute,
			Status: types.NodeDrainStatus{Status: usual[phase], RequestedBy: deviceOp},
		},
	}
	switch phase {
	case types.PhaseIdle:
		f.rec = record{Phase: phase, Adopted: true, Status: types.NodeDrainStatus{Status: types.DrainNotRequested, RequestedBy: nobody}}
	case types.PhaseGates:
		f.rec.Locked = true
	case types.PhaseEmptying, types.PhaseComplete:
		f.rec.Cordoned, f.rec.Locked, f.list = t0-9*time.Minute, true, t0-time.Second
		f.node.Unschedulable, f.node.CordonedBy = true, &types.Cordon{By: "zedkube"}
	default:
		f.rec.Failed = []time.Time{wall0}
	}
	if ends(phase) {
		f.rec.Told, f.rec.Ended = []types.DrainRequester{deviceOp}, t0-time.Minute
	}
	f.registered = true
	f.lockKnown, f.lock = ends(phase) || phase == types.PhaseEmptying, types.DrainLock{Holder: "n1", BootID: "b"}
	for _, c := range change {
		c(&f)
	}
	f.rec.Requests = f.standing()
	return f
}

var usual = map[types.DrainPhase]types.DrainStatus{
	types.PhaseGates: types.DrainStarting, types.PhaseEmptying: types.DrainRetrying, types.PhaseComplete: types.DrainComplete,
	types.PhaseNoCordon: types.DrainFailedCordon, types.PhaseNotEmpty: types.DrainFailedDrain,
}

// Who asks. Whoever is not named does not.
func who(names ...string) func(*facts) {
	by := map[string]types.DrainRequester{byDeviceOp: deviceOp, byUpdate: osUpdate, byOperator: nobody}
	return func(f *facts) {
		f.requests = map[string]request{}
		for _, name := range names {
			f.requests[name] = request{active: true, NodeDrainRequest: types.NodeDrainRequest{RequestedAt: wall0, RequestedBy: by[name]}}
		}
	}
}

func doubted(name string) func(*facts) {
	return func(f *facts) {
		f.requests[name] = request{NodeDrainRequest: types.NodeDrainRequest{RequestedAt: wall0}}
	}
}

// asksAgain is a request of another time.
func asksAgain(name string) func(*facts) {
	return func(f *facts) {
		f.requests[name] = request{active: true, NodeDrainRequest: types.NodeDrainRequest{RequestedAt: wall0.Add(time.Hour)}}
	}
}

func says(s types.DrainStatus, by types.DrainRequester) func(*facts) {
	return func(f *facts) { f.rec.Status = types.NodeDrainStatus{Status: s, RequestedBy: by} }
}

func minus(d time.Duration) time.Duration { return t0 - d }

func saidFor(d time.Duration) func(*facts)     { return func(f *facts) { f.rec.Said = minus(d) } }
func standingFor(d time.Duration) func(*facts) { return func(f *facts) { f.rec.Standing = minus(d) } }
func asked(d time.Duration) func(*facts)       { return func(f *facts) { f.rec.Asked = minus(d) } }
func cordonedAgo(d time.Duration) func(*facts) {
	return func(f *facts) { f.rec.Cordoned = minus(d) }
}
func toldOf(by ...types.DrainRequester) func(*facts) { return func(f *facts) { f.rec.Told = by } }

func silent(d time.Duration) func(*facts) {
	return func(f *facts) {
		f.silentSince, f.deadSince, f.why = minus(d), minus(d), "the API server does not answer"
	}
}
func mute(d time.Duration) func(*facts) { return func(f *facts) { f.deadSince = minus(d) } }
func missing(d time.Duration) func(*facts) {
	return func(f *facts) {
		f.node, f.known, f.up, f.missing, f.why = types.Node{}, false, false, minus(d), "this node is not in the cluster's list of nodes"
	}
}
func never(f *facts)                     { f.registered = false }
func alone(d time.Duration) func(*facts) { return func(f *facts) { f.alone = minus(d) } }
func pause(v verb, d time.Duration) func(*facts) {
	return func(f *facts) { f.retry = map[verb]time.Duration{v: t0 + d} }
}

// passed is a last look at everything that found nothing in the way.
func passed(d time.Duration) func(*facts) { return func(f *facts) { f.check = checked{at: minus(d)} } }

func found(c checked) func(*facts) {
	c.at = t0
	return func(f *facts) { f.check = c }
}

func with(pods ...podEviction) func(*facts) { return func(f *facts) { f.pods = pods } }

func pod(name string, change ...func(*podEviction)) podEviction {
	e := podEviction{pod: types.Pod{Namespace: "a", Name: name, UID: name}, seen: true}
	for _, c := range change {
		c(&e)
	}
	return e
}

func force(s types.DrainStatus, by types.DrainRequester) func(*facts) {
	return func(f *facts) { f.forced = &types.NodeDrainStatus{Status: s, RequestedBy: by} }
}

func noMember(f *facts)   { f.member = false }
func marker(f *facts)     { f.held = true }
func anyPods(f *facts)    { f.came = []string{"shop/new"} }
func entered(f *facts)    { f.entered = true }
func uncordoned(f *facts) { f.node.Unschedulable, f.node.CordonedBy = false, nil }
func ourCordon(f *facts) {
	f.node.Unschedulable, f.node.CordonedBy = true, &types.Cordon{By: "zedkube"}
}
func foreign(f *facts)  { f.node.Unschedulable, f.node.CordonedBy = true, nil }
func deadEnd(f *facts)  { f.rec.Dead = true }
func kept(f *facts)     { f.rec.Kept = true }
func lockOurs(f *facts) { f.rec.Locked = true }
func unusedFor(d time.Duration) func(*facts) {
	return func(f *facts) { f.rec.Ended, f.rec.Said = minus(d), minus(d) }
}
func inUse(f *facts)    { f.inUse = "nodeagent says that the device reboots" }
func lockSeen(f *facts) { f.lease = true }
func neverHad(f *facts) { f.rec.Cordoned = 0 }

// did is what the tables compare of an action; why only has to be in the reason
// or in what the drain waits for.
type did struct {
	phase types.DrainPhase
	s     types.DrainStatus
	by    types.DrainRequester
	verb  verb
	evict string
	stop  bool
	again time.Duration
	eat   bool
	dead  bool
	kept  bool
	left  bool
	why   string
}

type row struct {
	rule string
	f    facts
	want did
}

func table(t *testing.T, rows []row) {
	t.Helper()
	seen := map[string]bool{}
	for _, row := range rows {
		if seen[row.rule] {
			t.Errorf("two rows are named %q", row.rule)
		}
		seen[row.rule] = true
		t.Run(row.rule, func(t *testing.T) {
			t.Helper()
			a := decide(row.f)
			got := did{
				phase: a.rec.Phase, s: a.published.Status, by: a.published.RequestedBy, verb: a.verb, stop: a.stop, again: a.again,
				eat: a.consume, dead: a.rec.Dead, kept: a.rec.Kept, left: a.rec.Left, why: row.want.why,
			}
			for _, p := range a.evict {
				got.evict += p.Name + " "
			}
			if d := cmp.Diff(row.want, got, cmp.AllowUnexported(did{})); d != "" {
				t.Error(d)
			}
			if !strings.Contains(a.rec.Reason+"\n"+a.waits, row.want.why) {
				t.Errorf("reason %q, waits for %q, want %q", a.rec.Reason, a.waits, row.want.why)
			}
		})
	}
}

// locked is the lock as last read.
func locked(holder string) func(*facts) {
	return func(f *facts) { f.lock = types.DrainLock{Holder: holder, BootID: "b"} }
}
