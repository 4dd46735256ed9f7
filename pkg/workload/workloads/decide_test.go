package workloads

import (
	"slices"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func ready(name string) types.Node {
	return types.Node{Name: name, UID: name, Ready: types.ConditionTrue, Agent: &types.AgentStamp{}}
}

// at is a cluster of nodes a and b with one application, seen from a node.
func at(self string, disabled bool) facts {
	f := facts{
		now: time.Unix(1e9, 0), uptime: time.Hour, nodes: map[string]types.Node{"a": ready("a"), "b": ready("b")},
		sets: map[string]types.AppSet{"web": {Kind: types.KindReplicaSet, Name: "web", UID: "u1", Version: "1", Wanted: 1}}, copies: map[string][]running{},
	}
	f.self = f.nodes[self]
	if disabled {
		f.disabled.UID = "d"
	}
	return f
}

func TestNothingIsStoppedWhileANodeIsSchedulable(t *testing.T) {
	a := decide(at("a", true))
	if len(a.changes) != 2 || a.changes[0].cordon != "a" || a.changes[1].cordon != "b" {
		t.Errorf("%+v", a.changes)
	}
}

func TestEachNodeLeavesTheChangesToThoseBeforeIt(t *testing.T) {
	f := at("b", true)
	a := decide(f)
	if len(a.changes) > 0 || a.again != turn {
		t.Errorf("at once: %d changes, again in %s", len(a.changes), a.again)
	}
	f.memory, f.uptime = a.memory, f.uptime+turn
	if a := decide(f); len(a.changes) != 2 {
		t.Errorf("in its turn: %d changes", len(a.changes))
	}
	first := ready("a")
	first.StampStale = true // its agent does not run
	f.nodes["a"], f.memory = first, memory{}
	if a := decide(f); len(a.changes) != 2 {
		t.Errorf("where the first one has no agent: %d changes", len(a.changes))
	}
}

func TestWhatStillStopsIsNotStartedBesideItself(t *testing.T) {
	for name, row := range map[string]struct {
		left    running
		changes int
	}{
		"it stops on a Ready node":                {running{node: "a", ends: true}, 0},
		"it stops on a node that does not report": {running{node: "lost", ends: true}, 1},
		"it runs: somebody has raised the set":    {running{node: "a"}, 1},
	} {
		f := at("a", false)
		s := f.sets["web"]
		s.Wanted, s.Former = 0, &types.FormerScale{UID: "u1", Replicas: 2}
		f.sets["web"], f.copies["u1"] = s, []running{row.left}
		a := decide(f)
		if len(a.changes) != row.changes || len(a.changes) > 0 && a.changes[0].scale != (types.SetScale{Replicas: 2}) {
			t.Errorf("%s: %+v", name, a.changes)
		}
	}
}

func TestARequestIsAsOldAsTheUptimeSays(t *testing.T) {
	for name, r := range map[string]struct {
		at, clock, since time.Duration // uptime that the request has; since it was made, by the clock and truly
		asks             bool
	}{
		"just made": {time.Hour, 0, 0, true},
		"five minutes ago, and the clock was set": {time.Hour, time.Hour, askedFor, true},
		"longer ago":                             {time.Hour, askedFor + 1, askedFor + 1, false},
		"longer ago, and the clock was set back": {time.Hour, time.Minute, askedFor + 1, false},
		"by an earlier release, a minute ago":    {0, time.Minute, time.Minute, true},
	} {
		for _, disable := range []bool{true, false} {
			f := at("a", !disable)
			f.request = types.WorkloadsRequest{RequestedAt: f.now, Uptime: r.at, Disable: disable}
			f.now, f.uptime = f.now.Add(r.clock), f.uptime+r.since
			if a := decide(f); a.ask != r.asks {
				t.Errorf("%s: it is carried out: %v, waits %q", name, a.ask, a.status.Waits)
			}
		}
	}
}

func TestTheErrorOfTheLastTaskIsToldWhileThatIsToBeDone(t *testing.T) {
	done := func(f *facts) { f.sets = nil }
	for name, r := range map[string]struct {
		change func(*facts)
		told   bool
	}{
		"something is to be changed":  {func(*facts) {}, true},
		"another node has changed it": {done, false},
		"so it has, and what stops is waited": {func(f *facts) {
			done(f)
			f.copies["u1"] = []running{{what: "pod p", set: "web", node: "a", ends: true}}
		}, false},
		"the cluster is not known": {func(f *facts) { done(f); f.unseen = "the API server does not answer" }, true},
		"a request is to be carried out": {func(f *facts) {
			done(f)
			f.request = types.WorkloadsRequest{RequestedAt: f.now, Uptime: f.uptime}
		}, true},
		"it is void by now": {func(f *facts) {
			done(f)
			f.request = types.WorkloadsRequest{RequestedAt: f.now, Uptime: f.uptime - askedFor - 1}
		}, false},
		"one to disable may have been carried out": {func(f *facts) {
			done(f)
			f.disabled.UID = ""
			f.request = types.WorkloadsRequest{RequestedAt: f.now, Uptime: f.uptime, Disable: true}
			f.last.Tried = f.now
		}, true},
		"it was": {func(f *facts) {
			f.request = types.WorkloadsRequest{RequestedAt: f.now, Uptime: f.uptime, Disable: true}
			f.last.Tried = f.now
		}, false},
	} {
		f := at("a", true)
		for name, n := range f.nodes {
			n.Unschedulable = true
			f.nodes[name] = n
		}
		f.failed = "refused"
		r.change(&f)
		a := decide(f)
		if told := slices.Contains(a.status.Waits, "The last try failed: refused."); told != r.told || a.over == r.told {
			t.Errorf("%s: %q, over %v", name, a.status.Waits, a.over)
		}
	}
}

// The table may lack an object that there is. That a read shows it means that nothing was deleted; once the
// request was made without an answer, the object may be of a later disable.
func TestAnEnableIsRepeatedForAnObjectThatTheFirstReadShows(t *testing.T) {
	for name, row := range map[string]struct {
		lost, read bool
		after      time.Duration // of the read
		asks       bool
	}{
		"the first read shows it":         {false, true, watchLag - 1, true},
		"that of a retry does":            {true, true, 0, false},
		"the first read does, after long": {false, true, watchLag, false},
		"the table does":                  {true, false, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				f := at("n1", false)
				f.request = types.WorkloadsRequest{RequestedAt: f.now, Uptime: f.uptime}
				if row.lost {
					f.last = decide(f).status
				}
				_ = w.DisableWorkloads(t.Context(), types.DisabledWorkloads{})
				if row.read {
					a := decide(f)
					out := (&Component{Kube: w, Uptime: func() time.Duration { return f.uptime + row.after }}).ask(t.Context(), f, a.retry)
					f.last, f.unmade = a.status, out.unmade
				}
				f.disabled, _ = w.DisabledWorkloads(t.Context())
				if a := decide(f); a.ask != row.asks || row.asks && a.status.TriedUID != f.disabled.UID {
					t.Errorf("asks %v for %q: %+v", a.ask, a.status.TriedUID, a.status)
				}
			})
		})
	}
}
