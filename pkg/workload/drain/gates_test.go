package drain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestTheWayToTheCordon(t *testing.T) {
	waits := func(f *facts) { f.gates = "node n2 drains" }
	queued := func(f *facts) { f.queued = true }
	freed := func(ago time.Duration) func(*facts) { return func(f *facts) { f.freed = minus(ago) } }
	in := func(v verb) did { return did{phase: inGates, s: starting, by: deviceOp, verb: v} }
	table(t, []row{
		{"the lock and the quorum come before the cordon", calm(inGates), in(enter)},
		{"whoever has cordoned the node", calm(inGates, foreign), in(enter)},
		{"also without a peer", calm(inGates, func(f *facts) { f.others = 0 }), in(enter)},
		{"also where no peer takes pods", calm(inGates, alone(time.Hour)), in(enter)},
		{"had a moment ago they are relied on", calm(inGates, entered), in(cordon)},
		{"a foreign cordon is no reason not to", calm(inGates, entered, foreign), in(cordon)},
		{"who has just held the lock leaves it to those who wait", calm(inGates, freed(time.Second), queued), did{phase: inGates, s: starting, by: deviceOp, again: 5 * time.Second, why: "has just held"}},
		{"but not for long", calm(inGates, freed(yieldFor), queued), in(enter)},
		{"nor where nobody waits", calm(inGates, freed(time.Second)), in(enter)},
		{"waiting is visible", calm(inGates, waits, pause(enter, 2*time.Second)), did{phase: inGates, s: starting, by: deviceOp, again: 2 * time.Second, why: "node n2 drains"}},
		{"also while it is looked at again", calm(inGates, waits), did{phase: inGates, s: starting, by: deviceOp, verb: enter, why: "node n2 drains"}},
		{"a refused cordon waits for its next try", calm(inGates, entered, pause(cordon, 5*time.Second)), did{phase: inGates, s: starting, by: deviceOp, again: 5 * time.Second}},
		{"nothing is tried while the API is silent", calm(inGates, entered, silent(time.Second)), did{phase: inGates, s: starting, by: deviceOp, why: "does not answer"}},
		{"nor while the own node is not there", calm(inGates, entered, missing(0)), did{phase: inGates, s: starting, by: deviceOp, why: "not in the cluster's list of nodes"}},
		{"slow is not dead", calm(inGates, asked(23*time.Hour)), in(enter)},
		{"the cordon that stands begins the emptying", calm(inGates, func(f *facts) { f.rec.Cordoned = t0 }), did{phase: emptying, s: inCordoned, by: deviceOp}},
	})
	if a := decide(calm(inGates, func(f *facts) { f.rec.Locked = false })); !a.rec.Locked || a.rec.Node != "n1" || a.rec.NodeBoot != "b" {
		t.Error("the lock is about to be ours, and that is not written down first")
	}
}

func TestTheEmptying(t *testing.T) {
	accepted := func(d time.Duration) func(*podEviction) { return func(e *podEviction) { e.accepted = minus(d) } }
	next := func(d time.Duration) func(*podEviction) { return func(e *podEviction) { e.next = t0 + d } }
	going := func(e *podEviction) { e.pod.Deleted = wall0 }
	unseen := func(d time.Duration) func(*podEviction) { // d: how long before the last list it was on one first
		return func(e *podEviction) { e.seen, e.since = false, minus(d) }
	}
	gone := func(e *podEviction) { e.gone = true }
	listed := func(d time.Duration) func(*facts) { return func(f *facts) { f.list = minus(d) } }
	window := func(f *facts) { f.window = 10 * time.Minute }
	in := func(v verb, evict string) did {
		return did{phase: emptying, s: retrying, by: deviceOp, verb: v, evict: evict}
	}
	later := func(d time.Duration) did {
		return did{phase: emptying, s: retrying, by: deviceOp, again: d}
	}
	table(t, []row{
		{"a cordoned node's pods are listed", calm(emptying, func(f *facts) { f.list = 0 }), in(list, "")},
		{"all that the list chose are evicted", calm(emptying, with(pod("x"), pod("y"))), in(evict, "x y ")},
		{"what is evicted is left alone", calm(emptying, with(pod("a", accepted(time.Second)), pod("t", going), pod("g", gone), pod("x"))), in(evict, "x ")},
		{"an eviction without effect is made again", calm(emptying, with(pod("a", accepted(10*time.Second)))), in(evict, "a ")},
		{"a refused pod waits for its own time", calm(emptying, with(pod("w", next(300*time.Millisecond)), pod("g", gone))), later(300 * time.Millisecond)},
		{"a pod that the watch has not shown is evicted as well", calm(emptying, listed(0), with(pod("x", unseen(0)))), in(evict, "x ")},
		{"and listed again after a second", calm(emptying, listed(time.Second), with(pod("x", unseen(0), accepted(time.Second)))), in(list, "")},
		{"later and later", calm(emptying, listed(3*time.Second), with(pod("x", unseen(10*time.Second), accepted(time.Second)))), later(9 * time.Second)},
		{"with others left at most every ten seconds", calm(emptying, listed(9*time.Second), with(pod("x", unseen(0), accepted(0)), pod("y", accepted(0)))), later(10 * time.Second)},
		{"but then", calm(emptying, listed(10*time.Second), with(pod("x", unseen(0), accepted(0)), pod("y", accepted(0)))), in(list, "")},
		{"the soonest counts", calm(emptying, with(pod("w", next(3*time.Second)), pod("v", next(time.Second)))), later(time.Second)},
		{"and keeps no other from going", calm(emptying, with(pod("w", next(time.Second)), pod("x"))), in(evict, "x ")},
		{"a pod the list did not know is listed after ten seconds", calm(emptying, anyPods, listed(10*time.Second), with(pod("t", going))), in(list, "")},
		{"but not sooner", calm(emptying, anyPods, listed(9*time.Second), with(pod("t", going))), in(none, "")},
		{"within a second where nothing else is left", calm(emptying, anyPods, listed(time.Second)), in(list, "")},
		{"an old list is made again", calm(emptying, listed(time.Minute), with(pod("t", going))), in(list, "")},
		{"beside agents that know no lock the window is waited for", calm(emptying, window, with(pod("x"))), later(time.Minute).because("its agent is not known to use the drain lock")},
		{"and then it goes on", calm(emptying, window, cordonedAgo(10*time.Minute), with(pod("x"))), in(evict, "x ")},
		{"nothing is evicted while the API is silent", calm(emptying, silent(time.Second), with(pod("x"))), in(none, "").because("does not answer")},
		{"nor while the node takes pods", calm(emptying, uncordoned, with(pod("x"))), in(cordon, "")},
		{"nor while its cordon waits for the next try", calm(emptying, uncordoned, pause(cordon, time.Second), with(pod("x"))), later(time.Second)},
		{"an empty node is looked at as a whole", calm(emptying, with(pod("g", gone))), in(check, "")},
		{"and again after a pause", calm(emptying, pause(check, time.Second), found(checked{quorum: "no quorum"})), later(time.Second).because("no quorum")},
	})
}

func TestQuorum(t *testing.T) {
	const (
		up, down, learner, unsure, worker = 'R', 'x', 'L', 'u', 'w' // of the others
	)
	for _, row := range []struct {
		rule   string
		own    rune // v: voter, d: voter that is down, l: learner, w: worker
		others string
		ok     bool
	}{
		{"no member at all is no etcd", 'w', "", true},
		{"workers are no members", 'v', "ww", true},
		{"a lone member may go", 'v', "", true},
		{"the only member has to be Ready for a worker to go", 'w', "x", false},
		{"and is", 'w', "R", true},
		{"of two the other has to be Ready", 'v', "R", true},
		{"and is not", 'v', "x", false},
		{"of two others both, for a worker", 'w', "RR", true},
		{"and one is not", 'w', "Rx", false},
		{"of three the other two", 'v', "RR", true},
		{"one of them is too few", 'v', "Rx", false},
		{"none is too few", 'v', "xx", false},
		{"for a worker two of three are enough", 'w', "RRx", true},
		{"one of three is not", 'w', "Rxx", false},
		{"of four the other three", 'v', "RRR", true},
		{"two of four are no majority", 'v', "RRx", false},
		{"of five two others are no majority", 'v', "RRxx", false},
		{"three others are", 'v', "RRRx", true},
		{"we are down ourselves and do not count", 'd', "RR", true},
		{"nor does that help", 'd', "Rx", false},
		{"a learner makes no majority", 'w', "RxL", false},
		{"a learner that is down is no loss", 'v', "RRl", true},
		{"a member of which nobody knows whether it votes counts", 'v', "Ru", false},
		{"a learner that asks takes nothing away", 'l', "RRx", true},
	} {
		own := types.Node{Name: "own", Ready: types.ConditionTrue, Etcd: row.own != 'w'}
		if row.own == 'd' {
			own.Ready = types.ConditionFalse
		}
		if row.own == 'l' {
			own.EtcdVoter = types.ConditionFalse
		}
		nodes := []types.Node{own}
		for i, c := range row.others {
			n := types.Node{Name: fmt.Sprint("n", i), Ready: types.ConditionTrue, Etcd: c != worker}
			switch c {
			case up:
				n.EtcdVoter = types.ConditionTrue
			case down:
				n.Ready = types.ConditionUnknown
			case learner:
				n.EtcdVoter = types.ConditionFalse
			case 'l':
				n.EtcdVoter, n.Ready = types.ConditionFalse, types.ConditionFalse
			case unsure:
				n.EtcdVoter, n.Ready = types.ConditionUnknown, types.ConditionFalse
			}
			nodes = append(nodes, n)
		}
		if lacks := quorum(nodes, "own"); (lacks == "") != row.ok {
			t.Errorf("%s: %q", row.rule, lacks)
		}
	}
	lacks := quorum([]types.Node{{Name: "own", Etcd: true}, {Name: "b", Etcd: true}, {Name: "c", Etcd: true, Ready: types.ConditionTrue}}, "own")
	if want := "1 of 3 etcd members"; !strings.Contains(lacks, want) || !strings.Contains(lacks, "b is not") {
		t.Errorf("%q does not say %q, nor that b is not", lacks, want)
	}
}

func TestWhoMayTakeTheLock(t *testing.T) {
	type world struct {
		lock  types.DrainLock
		nodes []types.Node
		s     types.Storage
		heard heard
	}
	changing := func(w *world) { // the version of k3s
		w.lock.Task = types.TaskK3sChange
		w.nodes[1].Agent, w.nodes[1].K3s = &types.AgentStamp{}, &types.K3sStamp{Step: types.K3sStepChange}
	}
	off := func(w *world) { w.nodes[1].Ready, w.heard = types.ConditionUnknown, heard{holder: "n2", off: true} }
	silent := func(w *world) { w.heard = heard{holder: "n2", silent: true} }
	volume := func(change ...func(*types.Volume)) types.Storage {
		v := types.Volume{Name: "v", State: "attached", Running: true, Wanted: 2, Replicas: []types.Replica{{Node: "n3", Mode: "RW"}, {Node: "n2", Mode: "ERR"}}}
		for _, c := range change {
			c(&v)
		}
		return types.Storage{Longhorn: true, Volumes: []types.Volume{v}}
	}
	ended := func(w *world) { w.lock.Ended = true }
	back := func(w *world) { w.nodes[1].BootID = "new" }
	restarting := func(w *world) { w.lock.Task, w.lock.Holder, w.nodes[0].BootID = types.TaskK3s, "n1", "old" }
	changingHere := func(w *world) {
		restarting(w)
		w.lock.Task, w.lock.Since = types.TaskK3sChange, wall0.Add(-59*time.Minute)
	}
	cordoned := func(w *world) { w.nodes[1].Unschedulable, w.nodes[1].CordonedBy = true, &types.Cordon{} }
	with := func(s types.Storage) func(*world) { return func(w *world) { w.s = s } }
	for _, row := range []struct {
		rule   string
		change []func(*world)
		why    string // "" for: it may be taken
	}{
		{"a lock that nobody holds", []func(*world){func(w *world) { w.lock = types.DrainLock{} }}, ""},
		{"one that is ours already", []func(*world){func(w *world) { w.lock.Holder = "n1" }}, ""},
		{"not while the holder drains", nil, "has not rebooted yet"},
		{"not while the holder is off", []func(*world){func(w *world) { w.nodes[1].Ready = types.ConditionUnknown }}, "has not rebooted yet"},
		{"not by age", []func(*world){func(w *world) { w.lock.Since = wall0.Add(-10000 * time.Hour) }}, "has not rebooted yet"},
		{"once the holder's Node is gone", []func(*world){func(w *world) { w.nodes = w.nodes[:1] }}, ""},
		{"once the holder is back from its reboot", []func(*world){back}, ""},
		{"not before it is Ready in it", []func(*world){back, func(w *world) { w.nodes[1].Ready = types.ConditionFalse }}, "is not Ready again"},
		{"without a reboot where the drain ended otherwise", []func(*world){ended}, ""},
		{"where that holder is Ready", []func(*world){ended, func(w *world) { w.nodes[1].Ready = types.ConditionUnknown }}, "is not Ready again"},
		{"a lock that says no boot is not taken for a reboot's", []func(*world){func(w *world) { w.lock.BootID = "" }}, "has not rebooted yet"},
		{"not while the drain's cordon stands", []func(*world){back, cordoned}, "still cordoned"},
		{"nor after an end of another kind", []func(*world){ended, cordoned}, "still cordoned"},
		{"a tie-breaker's cordon does not count", []func(*world){back, cordoned, func(w *world) { w.nodes[1].TieBreaker = true }}, ""},
		{"a kept one does not", []func(*world){back, cordoned, func(w *world) { w.nodes[1].CordonKept = true }}, ""},
		{"a foreign one does not", []func(*world){back, cordoned, func(w *world) { w.nodes[1].CordonedBy = nil }}, ""},
		{"not while a volume has fewer healthy replicas than before", []func(*world){back, with(volume())}, "fewer healthy replicas than before its drain: v"},
		{"nor after an end of another kind, for a volume", []func(*world){ended, with(volume())}, "fewer healthy replicas"},
		{"once it has as many again", []func(*world){back, with(volume(func(v *types.Volume) { v.Replicas[1].Mode = "RW" }))}, ""},
		{"nor for what another node lacks", []func(*world){back, with(volume(func(v *types.Volume) { v.Replicas[0].Mode, v.Replicas[1].Mode = "ERR", "RW" }))}, ""},
		{"a volume that is detached is not worse", []func(*world){back, with(volume(func(v *types.Volume) { v.State, v.Running = "detached", false }))}, ""},
		{"one that was made since does not count", []func(*world){back, with(volume(func(v *types.Volume) { v.Name = "new" }))}, ""},
		{"one that was deleted since does not", []func(*world){back, with(types.Storage{Longhorn: true})}, ""},
		{"one that was degraded when the lock was taken is no worse", []func(*world){back, with(volume()), func(w *world) { w.lock.Volumes = map[string]int{"v": 1} }}, ""},
		{"not while the holder removes a stale member", []func(*world){func(w *world) { w.lock.Task = types.TaskMembers }}, "removes a stale member"},
		{"not even where we are at it ourselves", []func(*world){func(w *world) { w.lock.Task, w.lock.Holder, w.nodes[0].BootID = types.TaskMembers, "n1", "old" }}, "removes a stale member"},
		{"not while the holder changes the version of k3s", []func(*world){func(w *world) { w.lock.Task = types.TaskK3sChange }}, "node n2 changes the version of k3s"},
		{"nor where it has rebooted and goes on with that", []func(*world){back, func(w *world) {
			w.lock.Task, w.lock.Volumes = types.TaskK3sChange, nil
			w.nodes[1].Agent, w.nodes[1].K3s = &types.AgentStamp{}, &types.K3sStamp{Step: types.K3sStepChange}
		}}, "node n2 changes the version of k3s"},
		{"where it has rebooted and does not", []func(*world){back, func(w *world) {
			w.lock.Task, w.lock.Volumes = types.TaskK3sChange, nil
			w.nodes[1].Agent, w.nodes[1].K3s = &types.AgentStamp{}, &types.K3sStamp{}
		}}, ""},
		{"where witnesses prove its device off", []func(*world){changing, off}, ""},
		{"not where its kubelet reports again", []func(*world){changing, off, func(w *world) { w.nodes[1].Ready = types.ConditionTrue }}, "node n2 changes the version of k3s"},
		{"nor where another one is off", []func(*world){changing, off, func(w *world) { w.heard.holder = "n3" }}, "node n2 changes the version of k3s"},
		{"nor of an unknown boot", []func(*world){changing, off, func(w *world) { w.lock.BootID = "" }}, "node n2 changes the version of k3s"},
		{"nor where it may be rebooting, because it is drained as well", []func(*world){changing, off, cordoned, func(w *world) { w.nodes[1].DrainReason = string(types.PhaseComplete) }}, "node n2 changes the version of k3s"},
		{"a drain's is not free then", []func(*world){off}, "node n2 drains and has not rebooted yet"},
		{"a holder that is silent is named", []func(*world){changing, silent}, "node n2 changes the version of k3s; its agent has written nothing for 40s or longer"},
		{"but not for a drain", []func(*world){silent}, "node n2 drains and has not rebooted yet"},
		{"nor while we change its version", []func(*world){changingHere, func(w *world) { w.lock.Since = wall0.Add(-58 * time.Minute) }}, "node n1 changes the version of k3s"},
		{"where that does not end, our drain goes under its lock", []func(*world){changingHere}, ""},
		{"also where we have rebooted and go on with it", []func(*world){changingHere, func(w *world) {
			w.nodes[0].BootID, w.nodes[0].Agent, w.nodes[0].K3s = "new", &types.AgentStamp{}, &types.K3sStamp{Step: types.K3sStepChange}
		}}, ""},
		{"not that of another node", []func(*world){changing, func(w *world) { w.lock.Since = wall0.Add(-24 * time.Hour) }}, "node n2 changes the version of k3s"},
		{"nor while it does what this agent does not know", []func(*world){func(w *world) { w.lock.Task = "of a later agent" }}, "node n2 removes a stale member"},
		{"not while the holder restarts k3s", []func(*world){func(w *world) { w.lock.Task = types.TaskK3s }}, "node n2 restarts k3s"},
		{"nor while we do ourselves", []func(*world){restarting}, "node n1 restarts k3s"},
		{"where that does not end, our drain has its turn", []func(*world){restarting, func(w *world) { w.lock.Since = wall0.Add(-20 * time.Minute) }}, ""},
		{"not for ever, if that holder rebooted", []func(*world){back, func(w *world) { w.lock.Task, w.lock.Volumes = types.TaskMembers, nil }}, ""},
		{"without Longhorn there are none", []func(*world){back, with(types.Storage{Volumes: volume().Volumes})}, ""},
	} {
		w := world{
			lock:  types.DrainLock{Holder: "n2", BootID: "old", Since: wall0, Volumes: map[string]int{"v": 2}},
			nodes: []types.Node{{Name: "n1", Ready: types.ConditionTrue}, {Name: "n2", Ready: types.ConditionTrue, BootID: "old"}},
		}
		for _, c := range row.change {
			c(&w)
		}
		why := lockable(w.lock, "n1", wall0.Add(time.Minute).Sub(w.lock.Since), w.heard, w.nodes, w.s)
		if !strings.Contains(why, row.why) || (why == "") != (row.why == "") {
			t.Errorf("%s: %q, want %q", row.rule, why, row.why)
		}
		if w.lock.Holder == "n2" && needed(w.lock, w.heard, w.nodes, w.s) != why {
			t.Errorf("%s: the holder and the others see it differently", row.rule)
		}
	}
}
