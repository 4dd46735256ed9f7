package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

var (
	t0    = boot.Add(100 * time.Hour)
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
			phase: phase, adopted: true, asked: t0.Add(-10 * time.Minute), standing: t0.Add(-time.Minute), said: t0.Add(-time.Minute),
			status: types.NodeDrainStatus{Status: usual[phase], RequestedBy: deviceOp},
		},
	}
	switch phase {
	case types.PhaseIdle:
		f.rec = record{phase: phase, adopted: true, status: types.NodeDrainStatus{Status: types.DrainNotRequested, RequestedBy: nobody}}
	case types.PhaseGates:
		f.rec.locked = true
	case types.PhaseEmptying, types.PhaseComplete:
		f.rec.cordoned, f.rec.locked, f.list = t0.Add(-9*time.Minute), true, t0.Add(-time.Second)
		f.node.Unschedulable, f.node.CordonedBy = true, &types.Cordon{By: "zedkube"}
	default:
		f.rec.failed = []time.Time{wall0}
	}
	if ends(phase) {
		f.rec.told, f.rec.ended = []types.DrainRequester{deviceOp}, t0.Add(-time.Minute)
	}
	f.registered = true
	for _, c := range change {
		c(&f)
	}
	f.rec.requests = f.standing()
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
	return func(f *facts) { f.rec.status = types.NodeDrainStatus{Status: s, RequestedBy: by} }
}

func minus(d time.Duration) time.Time { return t0.Add(-d) }

func saidFor(d time.Duration) func(*facts)     { return func(f *facts) { f.rec.said = minus(d) } }
func standingFor(d time.Duration) func(*facts) { return func(f *facts) { f.rec.standing = minus(d) } }
func asked(d time.Duration) func(*facts)       { return func(f *facts) { f.rec.asked = minus(d) } }
func cordonedAgo(d time.Duration) func(*facts) {
	return func(f *facts) { f.rec.cordoned = minus(d) }
}
func toldOf(by ...types.DrainRequester) func(*facts) { return func(f *facts) { f.rec.told = by } }

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
	return func(f *facts) { f.retry = map[verb]time.Time{v: t0.Add(d)} }
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
func deadEnd(f *facts)  { f.rec.dead = true }
func kept(f *facts)     { f.rec.kept = true }
func lockOurs(f *facts) { f.rec.locked = true }
func unusedFor(d time.Duration) func(*facts) {
	return func(f *facts) { f.rec.ended, f.rec.said = minus(d), minus(d) }
}
func inUse(f *facts)    { f.inUse = "nodeagent says that the device reboots" }
func lockSeen(f *facts) { f.lease = true }
func neverHad(f *facts) { f.rec.cordoned = time.Time{} }

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
				phase: a.rec.phase, s: a.published.Status, by: a.published.RequestedBy, verb: a.verb, stop: a.stop, again: a.again,
				eat: a.consume, dead: a.rec.dead, kept: a.rec.kept, left: a.rec.left, why: row.want.why,
			}
			for _, p := range a.evict {
				got.evict += p.Name + " "
			}
			if d := cmp.Diff(row.want, got, cmp.AllowUnexported(did{})); d != "" {
				t.Error(d)
			}
			if !strings.Contains(a.rec.reason+"\n"+a.waits, row.want.why) {
				t.Errorf("reason %q, waits for %q, want %q", a.rec.reason, a.waits, row.want.why)
			}
		})
	}
}
