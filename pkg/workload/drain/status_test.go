package drain

import (
	"fmt"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestWhatIsSaidNext(t *testing.T) {
	unborn := func(f *facts) { f.rec.Status = types.NodeDrainStatus{} }
	end := did{phase: completed, s: complete9, by: deviceOp, stop: true}
	hold := func(s types.DrainStatus, d time.Duration) did {
		return did{phase: emptying, s: s, by: deviceOp, stop: true, again: d}
	}
	table(t, []row{
		{"a member's first value is NOTREQUESTED", calm(idling, who(), unborn), did{phase: idling, s: notRequested, by: nobody}},
		{"also where a request stands already", calm(idling, unborn), did{phase: inGates, s: notRequested, by: deviceOp}},
		{"never a member's is NOTSUPPORTED", calm(idling, who(), unborn, noMember), did{phase: idling, s: notSupported, by: nobody}},
		{"a node that joins a cluster is NOTREQUESTED", calm(idling, who(), says(notSupported, nobody)), did{phase: idling, s: notRequested, by: nobody}},
		{"one that has left is NOTSUPPORTED in mid-drain", calm(emptying, noMember), did{phase: idling, s: notSupported, by: deviceOp, stop: true}},

		{"REQUESTED is followed by STARTING at once", calm(inGates, says(requested, deviceOp), saidFor(0), standingFor(0)), did{phase: inGates, s: starting, by: deviceOp, verb: enter}},
		{"STARTING stands until the cordon", calm(inGates), did{phase: inGates, s: starting, by: deviceOp, verb: enter}},
		{"then CORDONED", calm(emptying, says(starting, deviceOp), with(pod("x"))), did{phase: emptying, s: inCordoned, by: deviceOp, verb: evict, evict: "x "}},
		{"for one second", calm(emptying, says(inCordoned, deviceOp), saidFor(999*time.Millisecond), with(pod("x"))), did{phase: emptying, s: inCordoned, by: deviceOp, verb: evict, evict: "x ", again: time.Millisecond}},
		{"then DRAINRETRYING while the drain goes on", calm(emptying, says(inCordoned, deviceOp), saidFor(time.Second), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: evict, evict: "x "}},
		{"whose turn does not wait for the API", calm(emptying, says(inCordoned, deviceOp), saidFor(time.Second), silent(time.Second)), did{phase: emptying, s: retrying, by: deviceOp}},

		{"COMPLETE waits until a drain was seen for two seconds", calm(emptying, passed(0), standingFor(1500*time.Millisecond)), hold(retrying, 500*time.Millisecond)},
		{"that is enough", calm(emptying, passed(0), standingFor(edge)), end},
		{"FAILEDDRAIN waits as well", calm(emptying, cordonedAgo(24*time.Hour), standingFor(time.Second)), hold(retrying, time.Second)},
		{"FAILEDCORDON waits as well", calm(inGates, standingFor(time.Second), func(f *facts) { f.rec.Refusals = 10 }), did{phase: inGates, s: starting, by: deviceOp, stop: true, again: time.Second}},
		{"a dead API's COMPLETE waits as well", calm(inGates, silent(time.Hour), standingFor(time.Second)), did{phase: inGates, s: starting, by: deviceOp, stop: true, again: time.Second}},
		{"no end comes out of CORDONED", calm(emptying, passed(0), says(inCordoned, deviceOp), saidFor(400*time.Millisecond)), hold(inCordoned, 600*time.Millisecond)},
		{"nor out of REQUESTED", calm(inGates, says(requested, deviceOp), silent(time.Hour)), did{phase: inGates, s: starting, by: deviceOp, stop: true, again: time.Millisecond}},
		{"nor is CORDONED left out", calm(emptying, passed(0), says(starting, deviceOp)), hold(inCordoned, time.Millisecond)},
		{"nobody waits for it with an operator's drain", calm(emptying, passed(0), who(byOperator), says(notRequested, nobody)), did{phase: completed, s: notRequested, by: nobody, stop: true}},

		{"a requester that is new sees the drain as it is", calm(emptying, who(byUpdate), with(pod("x"))), did{phase: emptying, s: retrying, by: osUpdate, verb: evict, evict: "x "}},
		{"and is told no end before that", calm(emptying, who(byUpdate), passed(0)), did{phase: emptying, s: retrying, by: osUpdate, stop: true, again: time.Millisecond}},
		{"a device that joins an operator's drain sees it from REQUESTED on", calm(emptying, says(notRequested, nobody), with(pod("x"))), did{phase: emptying, s: requested, by: deviceOp, verb: evict, evict: "x "}},
		{"also at its end", calm(emptying, says(notRequested, nobody), passed(0)), did{phase: emptying, s: requested, by: deviceOp, stop: true, again: time.Millisecond}},

		{"the end is told to the device first", calm(emptying, who(byDeviceOp, byUpdate), passed(0)), end},
		{"and to the update two seconds later", calm(completed, who(byDeviceOp, byUpdate), saidFor(edge)), did{phase: completed, s: complete9, by: osUpdate}},
		{"not sooner", calm(completed, who(byDeviceOp, byUpdate), saidFor(time.Second)), did{phase: completed, s: complete9, by: deviceOp, again: time.Second}},
		{"once", calm(completed, who(byDeviceOp, byUpdate), says(complete9, osUpdate), toldOf(deviceOp, osUpdate)), did{phase: completed, s: complete9, by: osUpdate}},
		{"a failed drain is told to both", calm(notEmpty, who(byDeviceOp, byUpdate), saidFor(edge)), did{phase: notEmpty, s: failedDrain, by: osUpdate}},
		{"so is a failed cordon", calm(noCordon, who(byDeviceOp, byUpdate), saidFor(edge)), did{phase: noCordon, s: failedCordon, by: osUpdate}},
		{"the update need not wait for a device that has withdrawn", calm(completed, who(byUpdate), saidFor(0)), did{phase: completed, s: complete9, by: osUpdate}},
		{"a lone update is told by its own number", calm(emptying, who(byUpdate), says(retrying, osUpdate), passed(0)), did{phase: completed, s: complete9, by: osUpdate, stop: true}},
		{"COMPLETE overtakes a failure only by force", calm(completed, says(failedDrain, deviceOp), kept), did{phase: completed, s: complete9, by: deviceOp, kept: true}},
	})
}

// history takes the steps of a drain in time, from the request on, and returns
// what is published with when. Something may happen at each moment.
func history(f facts, until time.Duration, happen func(at time.Duration, f *facts)) []stamped {
	var seen []stamped
	for start := f.now; f.now-start < until; {
		happen(f.now-start, &f)
		a := decide(f)
		if len(seen) == 0 || seen[len(seen)-1].v != a.published {
			seen = append(seen, stamped{wall0.Add(f.now), a.published})
		}
		f.rec = a.rec
		f.now += 10 * time.Millisecond
	}
	return seen
}

func spell(seen []stamped) string {
	text := ""
	for _, s := range seen {
		text += fmt.Sprintf("%d/%d ", s.v.Status, s.v.RequestedBy)
	}
	return text
}

func TestTheWholePath(t *testing.T) {
	cordonAt := func(when time.Duration) func(time.Duration, *facts) {
		return func(at time.Duration, f *facts) {
			if f.rec.Phase == inGates && at >= when && f.rec.Cordoned == 0 {
				f.rec.Cordoned = f.now
				foreign(f)
			}
		}
	}
	passAt := func(when time.Duration) func(time.Duration, *facts) {
		return func(at time.Duration, f *facts) {
			if at >= when {
				f.list, f.check = f.now, checked{at: f.now}
			}
		}
	}
	failAt := func(when time.Duration) func(time.Duration, *facts) {
		return func(_ time.Duration, f *facts) { f.timeout = when }
	}
	askAt := func(when time.Duration, names ...string) func(time.Duration, *facts) {
		return func(at time.Duration, f *facts) {
			if at >= when {
				who(names...)(f)
			}
		}
	}
	for _, row := range []struct {
		rule string
		f    facts
		do   []func(time.Duration, *facts)
		want string
	}{
		{"a fast drain", calm(idling), []func(time.Duration, *facts){cordonAt(0), passAt(0)}, "3/2 4/2 5/2 7/2 9/2 "},
		{"a slow drain", calm(idling), []func(time.Duration, *facts){cordonAt(5 * time.Second), passAt(10 * time.Second)}, "3/2 4/2 5/2 7/2 9/2 "},
		{"the first drain of a boot", calm(idling, says(0, 0)), []func(time.Duration, *facts){cordonAt(0), passAt(0)}, "2/2 3/2 4/2 5/2 7/2 9/2 "},
		{"of both", calm(idling, who(byDeviceOp, byUpdate)), []func(time.Duration, *facts){cordonAt(0), passAt(0)}, "3/2 4/2 5/2 7/2 9/2 9/3 "},
		{"that fails for both", calm(idling, who(byDeviceOp, byUpdate)), []func(time.Duration, *facts){cordonAt(0), failAt(10 * time.Second)}, "3/2 4/2 5/2 7/2 8/2 8/3 "},
		{"that both ask for again", calm(idling, who(byDeviceOp, byUpdate)), []func(time.Duration, *facts){failAt(10 * time.Second), func(at time.Duration, f *facts) {
			if at >= 15*time.Second {
				asksAgain(byDeviceOp)(f)
			}
		}}, "3/2 4/2 8/2 8/3 3/2 4/2 8/2 8/3 "},
		{"whose gates never open", calm(idling), []func(time.Duration, *facts){failAt(10 * time.Second)}, "3/2 4/2 8/2 "},
		{"that is not let cordon", calm(idling), []func(time.Duration, *facts){func(_ time.Duration, f *facts) { f.rec.Refusals = 10 }}, "3/2 4/2 6/2 "},
		{"of a dead API", calm(idling), []func(time.Duration, *facts){func(_ time.Duration, f *facts) { silent(time.Hour)(f); f.skip = 0 }}, "3/2 4/2 9/2 "},
		{"that an update asked for first", calm(idling, who(byUpdate)), []func(time.Duration, *facts){cordonAt(0), askAt(5*time.Second, byDeviceOp, byUpdate), passAt(10 * time.Second)}, "3/3 4/3 5/3 7/3 7/2 9/2 9/3 "},
		{"that a device joins at the last moment", calm(idling, who(byUpdate)), []func(time.Duration, *facts){cordonAt(0), askAt(5*time.Second, byDeviceOp, byUpdate), passAt(5 * time.Second)}, "3/3 4/3 5/3 7/3 7/2 9/2 9/3 "},
		{"an operator's", calm(idling, who(byOperator)), []func(time.Duration, *facts){cordonAt(0), passAt(0)}, "2/1 "},
		{"an operator's that a device joins", calm(idling, who(byOperator)), []func(time.Duration, *facts){cordonAt(0), askAt(5*time.Second, byOperator, byDeviceOp), passAt(5 * time.Second)}, "2/1 3/2 4/2 5/2 7/2 9/2 "},
		{"an operator's that a device joins at the end", calm(idling, who(byOperator)), []func(time.Duration, *facts){cordonAt(0), passAt(0), askAt(5*time.Second, byOperator, byDeviceOp)}, "2/1 3/2 4/2 5/2 7/2 9/2 "},
		{"a node that left its cluster meanwhile", calm(idling, noMember, says(0, 0)), nil, "1/2 "},
	} {
		seen := history(row.f, 30*time.Second, func(at time.Duration, f *facts) {
			for _, do := range row.do {
				do(at, f)
			}
		})
		if got := spell(seen); got != row.want {
			t.Errorf("%s: %s, want %s", row.rule, got, row.want)
		}
		if err := inOrder(seen); err != nil {
			t.Errorf("%s: %v", row.rule, err)
		}
		for i, s := range seen[:len(seen)-1] {
			stood := seen[i+1].at.Sub(s.at)
			if s.v.Status == inCordoned && stood != cordonedFor {
				t.Errorf("%s: CORDONED stood for %s", row.rule, stood)
			}
			if s.v.Status == complete9 && stood != edge {
				t.Errorf("%s: the second requester is told %s after the first", row.rule, stood)
			}
			if s.v.Status == requested && stood > 10*time.Millisecond {
				t.Errorf("%s: REQUESTED stood for %s", row.rule, stood)
			}
		}
	}
}
