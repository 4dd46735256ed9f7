package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestWithdrawals(t *testing.T) {
	over := did{phase: idling, s: notRequested, by: nobody, stop: true, why: "withdrawn"}
	table(t, []row{
		{"a withdrawn request ends the way to the gates", calm(inGates, who()), over},
		{"and the emptying", calm(emptying, who(), with(pod("x"))), over},
		{"in every state of it", calm(inGates, who(), says(requested, deviceOp), saidFor(0), standingFor(0)), over},
		{"also just after the cordon", calm(emptying, who(), says(inCordoned, deviceOp), saidFor(0)), over},
		{"also with a dead API", calm(emptying, who(), silent(time.Hour)), over},
		{"also without an own node", calm(inGates, who(), missing(time.Hour)), over},
		{"also at the deadline", calm(emptying, who(), cordonedAgo(24*time.Hour)), over},
		{"also at the moment of COMPLETE", calm(emptying, who(), passed(0)), over},
		{"also after an unused COMPLETE", calm(completed, who()), over},
		{"also after one that a dead API gave", calm(completed, who(), deadEnd, silent(time.Hour)), over},
		{"also after a forced one", calm(completed, who(), kept), over},
		{"a failure stays when its request is withdrawn", calm(notEmpty, who(), uncordoned), did{phase: notEmpty, s: failedDrain, by: deviceOp}},
		{"a failed cordon as well", calm(noCordon, who()), did{phase: noCordon, s: failedCordon, by: deviceOp}},
		{"an operator's failure, which EVE never saw, ends with its request", calm(notEmpty, who(), says(notRequested, nobody)), over},
		{"a withdrawal before the cordon takes the drain's lock back", calm(idling, who(), lockOurs), did{phase: idling, s: notRequested, by: nobody, verb: release}},

		{"a request that has not been heard of again is not withdrawn", calm(emptying, who(), doubted(byDeviceOp), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: evict, evict: "x "}},
		{"also not on the way to the gates", calm(inGates, who(), doubted(byDeviceOp)), did{phase: inGates, s: starting, by: deviceOp, verb: enter}},
		{"also not after COMPLETE", calm(completed, who(), doubted(byDeviceOp)), did{phase: completed, s: complete9, by: deviceOp}},
		{"its requester is not forgotten beside one that stands", calm(emptying, who(byUpdate), doubted(byDeviceOp), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: evict, evict: "x "}},
		{"nor does one in doubt put itself before the one that was told", calm(emptying, who(byUpdate), doubted(byDeviceOp), says(retrying, osUpdate), with(pod("x"))), did{phase: emptying, s: retrying, by: osUpdate, verb: evict, evict: "x "}},

		{"of two in doubt the one that was told stays", calm(emptying, who(), doubted(byDeviceOp), doubted(byUpdate), says(retrying, osUpdate), with(pod("x"))), did{phase: emptying, s: retrying, by: osUpdate, verb: evict, evict: "x "}},

		{"of two requests the device's may be withdrawn", calm(emptying, who(byUpdate), with(pod("x"))), did{phase: emptying, s: retrying, by: osUpdate, verb: evict, evict: "x "}},
		{"or the update's", calm(emptying, who(byDeviceOp), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: evict, evict: "x "}},
		{"the operator's drain goes on when the device's request is withdrawn", calm(emptying, who(byOperator), with(pod("x"))), did{phase: emptying, s: notRequested, by: nobody, verb: evict, evict: "x "}},
		{"also after COMPLETE", calm(completed, who(byOperator)), did{phase: completed, s: notRequested, by: nobody}},
		{"a second requester joins the drain there is", calm(emptying, who(byDeviceOp, byUpdate), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: evict, evict: "x "}},
		{"a modified request as well", calm(emptying, asksAgain(byDeviceOp), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: evict, evict: "x "}},
		{"a modified request does not take COMPLETE back", calm(completed, asksAgain(byDeviceOp)), did{phase: completed, s: complete9, by: deviceOp}},
	})
}

func TestCompleteStands(t *testing.T) {
	losses := func(n int) func(*facts) { return func(f *facts) { f.rec.Losses = n } }
	unseen := says(notRequested, nobody)
	table(t, []row{
		{"COMPLETE stays while the request stands", calm(completed), did{phase: completed, s: complete9, by: deviceOp}},
		{"with a silent API", calm(completed, silent(time.Hour)), did{phase: completed, s: complete9, by: deviceOp}},
		{"past the deadline", calm(completed, asked(48*time.Hour), cordonedAgo(48*time.Hour)), did{phase: completed, s: complete9, by: deviceOp}},
		{"with pods that are left", calm(completed, with(pod("x"))), did{phase: completed, s: complete9, by: deviceOp}},
		{"a cordon that is lost is made again", calm(completed, uncordoned, losses(1)), did{phase: completed, s: complete9, by: deviceOp, verb: cordon}},
		{"but not for ever", calm(completed, uncordoned, losses(4)), did{phase: completed, s: complete9, by: deviceOp}},
		{"nor while the API is silent", calm(completed, uncordoned, silent(0)), did{phase: completed, s: complete9, by: deviceOp}},
		{"one that came without the lock tries for it", calm(completed, locked("n2")), did{phase: completed, s: complete9, by: deviceOp, verb: takeLock}},
		{"where it is free", calm(completed, locked("")), did{phase: completed, s: complete9, by: deviceOp, verb: takeLock}},
		{"after a pause", calm(completed, locked(""), pause(takeLock, time.Second)), did{phase: completed, s: complete9, by: deviceOp, again: time.Second}},
		{"by the table where it has not been read since the start", calm(completed, locked("n2"), func(f *facts) { f.lockKnown, f.lease = false, true }), did{phase: completed, s: complete9, by: deviceOp}},
		{"after the cordon", calm(completed, locked(""), uncordoned, losses(1)), did{phase: completed, s: complete9, by: deviceOp, verb: cordon}},
		{"an API that is back before the reboot gets lock and cordon", calm(completed, deadEnd, uncordoned, neverHad), did{phase: completed, s: complete9, by: deviceOp, verb: cordonAfterDeadAPI, dead: true}},
		{"also for a node that was cordoned before it fell silent", calm(completed, deadEnd), did{phase: completed, s: complete9, by: deviceOp, verb: cordonAfterDeadAPI, dead: true}},
		{"not before it is back", calm(completed, deadEnd, silent(time.Hour)), did{phase: completed, s: complete9, by: deviceOp, dead: true}},
		{"after a pause where it was refused", calm(completed, deadEnd, pause(cordonAfterDeadAPI, 3*time.Second)), did{phase: completed, s: complete9, by: deviceOp, dead: true, again: 3 * time.Second}},
		{"a node that came after its drain ended without one gets lock and cordon", calm(completed, neverHad, uncordoned), did{phase: completed, s: complete9, by: deviceOp, verb: cordonAfterDeadAPI}},

		{"a device that joins an operator's finished drain has it looked at again", calm(completed, unseen), did{phase: emptying, s: requested, by: deviceOp, why: "EVE requests"}},
		{"from the gates where there was no cordon", calm(completed, unseen, neverHad), did{phase: inGates, s: requested, by: deviceOp, why: "EVE requests"}},
		{"also while the API is silent", calm(completed, unseen, silent(time.Second)), did{phase: emptying, s: requested, by: deviceOp}},
		{"not where a dead API ended it", calm(completed, unseen, deadEnd, silent(time.Hour)), did{phase: completed, s: requested, by: deviceOp, dead: true}},
		{"nor where the force file did", calm(completed, unseen, kept), did{phase: completed, s: requested, by: deviceOp, kept: true}},
	})
}

func TestADeviceThatJoinsAFinishedDrainHasAllTheTime(t *testing.T) {
	f := calm(completed, says(notRequested, nobody), asked(48*time.Hour), cordonedAgo(48*time.Hour))
	f.rec = decide(f).rec
	says(retrying, deviceOp)(&f)
	f.rec.Said, f.rec.Standing = minus(time.Minute), minus(time.Minute)
	if a := decide(f); a.rec.Phase != emptying {
		t.Errorf("the drain is %s: %s", a.rec.Phase, a.rec.Reason)
	}
}

func TestFailuresGiveBack(t *testing.T) {
	table(t, []row{
		{"a failed drain's cordon is undone at once", calm(notEmpty, ourCordon), did{phase: notEmpty, s: failedDrain, by: deviceOp, verb: uncordon}},
		{"then its lock", calm(notEmpty, lockOurs), did{phase: notEmpty, s: failedDrain, by: deviceOp, verb: release}},
		{"also after a failed cordon", calm(noCordon, lockOurs), did{phase: noCordon, s: failedCordon, by: deviceOp, verb: release}},
		{"a request of the same time stays failed", calm(notEmpty), did{phase: notEmpty, s: failedDrain, by: deviceOp}},
		{"one of another time starts a new drain", calm(notEmpty, asksAgain(byDeviceOp)), did{phase: inGates, s: requested, by: deviceOp, why: "the drain starts"}},
		{"also after a failed cordon that was not this one's", calm(noCordon, asksAgain(byDeviceOp)), did{phase: inGates, s: requested, by: deviceOp}},
		{"also an older one", calm(notEmpty, func(f *facts) { f.rec.Failed = []time.Time{wall0.Add(time.Hour)} }), did{phase: inGates, s: requested, by: deviceOp}},
		{"so does another requester's", calm(notEmpty, who(byDeviceOp), asksAgain(byUpdate)), did{phase: inGates, s: requested, by: deviceOp}},
		{"an operator's new drain takes the failure off", calm(notEmpty, who(), asksAgain(byOperator)), did{phase: inGates, s: notRequested, by: nobody}},
		{"one that may not stand any more starts nothing", calm(notEmpty, who(), doubted(byDeviceOp), func(f *facts) { f.rec.Failed = nil }), did{phase: notEmpty, s: failedDrain, by: deviceOp}},
	})
}

func TestWhatIsGivenBack(t *testing.T) {
	no := func(v verb) did { return did{phase: idling, s: notRequested, by: nobody, verb: v} }
	rebooted := func(up bool) func(*facts) { return func(f *facts) { f.rec.Rebooted, f.up = true, up } }
	first := func(f *facts) { f.rec.Adopted = false }
	tie := func(f *facts) { f.tieBreaker = true }
	keep := func(f *facts) { f.node.CordonKept = true }
	stamped := func(f *facts) { f.node.Agent = &types.AgentStamp{} }
	stale := func(f *facts) { f.node.StampStale = true }
	written := func(by string) func(*facts) {
		return func(f *facts) {
			f.node.Writers = append(f.node.Writers, types.FieldWriter{Field: types.FieldCordon, Manager: by})
		}
	}
	byEVE, byPerson := written("zedbox"), written("kubectl-cordon")
	tainted := func(d time.Duration) func(*facts) { return func(f *facts) { f.node.TaintedAt = wall0.Add(d) } }
	idle := func(change ...func(*facts)) facts { return calm(idling, append([]func(*facts){who()}, change...)...) }
	left := func(f *facts) { f.member = false; f.rec.Node = "n1" }
	table(t, []row{
		{"a cordon of ours without a drain is undone", idle(ourCordon, lockOurs), no(uncordon)},
		{"whoever kept the record", idle(ourCordon, first), no(uncordon)},
		{"on a node that is not Ready where this boot saw the drain", idle(ourCordon, func(f *facts) { f.up = false }), no(uncordon)},
		{"after a boot once the node is Ready in it", idle(ourCordon, rebooted(true)), no(uncordon)},
		{"not before", idle(ourCordon, lockOurs, first, rebooted(false)), no(none)},
		{"not while the API is silent", idle(ourCordon, lockOurs, silent(0)), no(none)},
		{"not while the node is unknown", idle(missing(0), lockOurs), no(none)},
		{"after a pause where it was refused", idle(ourCordon, pause(uncordon, 3*time.Second)), did{phase: idling, s: notRequested, by: nobody, again: 3 * time.Second}},
		{"also where the node belongs to no cluster any more", idle(ourCordon, left, says(notSupported, nobody)), did{phase: idling, s: notSupported, by: nobody, verb: uncordon}},
		{"a foreign cordon is left alone", idle(foreign), no(none)},
		{"a tie-breaker's is left alone and its lock given back", idle(ourCordon, tie, lockOurs), no(release)},
		{"so is one that an operator keeps", idle(ourCordon, keep, lockOurs), no(release)},
		{"the mark of a kept one goes when it is undone", idle(keep, uncordoned, lockOurs), no(unkeep)},

		{"the first start ever undoes a cordon from before the boot", idle(foreign, first, tainted(-time.Second)), no(uncordonLegacy)},
		{"once", idle(foreign, tainted(-time.Second)), no(none)},
		{"after a pause where it was refused, too", idle(foreign, first, tainted(-time.Second), pause(uncordonLegacy, time.Second)), did{phase: idling, s: notRequested, by: nobody, again: time.Second}},
		{"not one of this boot", idle(foreign, first, tainted(time.Second)), no(none)},
		{"not one of which nobody knows how old it is", idle(foreign, first), no(none)},
		{"not where zedkube has been before", idle(foreign, first, stamped, tainted(-time.Second)), no(none)},
		{"but where its stamp has outlived it", idle(foreign, first, stamped, stale, tainted(-time.Second)), no(uncordonLegacy)},
		{"and where EVE's own has written it, at every start", idle(foreign, stamped, byEVE, tainted(-time.Second)), no(uncordonLegacy)},
		{"which it may do in this boot too", idle(foreign, stamped, byEVE, tainted(time.Second)), no(none)},
		{"somebody else may want it as well", idle(foreign, stamped, byEVE, byPerson, tainted(-time.Second)), no(none)},
		{"not a tie-breaker's", idle(foreign, first, tie, tainted(-time.Second)), no(none)},
		{"not before the node is Ready in this boot", idle(foreign, first, tainted(-time.Second), rebooted(false)), no(none)},

		{"the lock comes last", idle(lockOurs), no(release)},
		{"and not again within its pause", idle(lockOurs, pause(release, time.Second), func(f *facts) { f.holds = "volumes are worse" }), did{phase: idling, s: notRequested, by: nobody, again: time.Second, why: "volumes are worse"}},
		{"a node outside any cluster that never had it does not ask for it", idle(noMember, lockOurs, says(notSupported, nobody)), did{phase: idling, s: notSupported, by: nobody}},
		{"a lock in this node's name that the journal does not know is given back as well", idle(lockSeen), no(release)},
		{"also by a node outside any cluster", idle(noMember, lockSeen, says(notSupported, nobody)), did{phase: idling, s: notSupported, by: nobody, verb: release}},
		{"not before the node is Ready after a boot", idle(lockSeen, rebooted(false)), no(none)},
		{"one that has left and had it does", idle(left, lockOurs, says(notSupported, nobody)), did{phase: idling, s: notSupported, by: nobody, verb: release}},
		{"nothing to give back is nothing to do", idle(), no(none)},
	})
	if a := decide(idle(first)); !a.rec.Adopted {
		t.Error("there was nothing to adopt, and that is not written down")
	}
	if a := decide(calm(inGates, first, foreign, tainted(time.Second))); !a.rec.Adopted {
		t.Error("no stamp is written while a drain waits, and what it waits for may wait for that stamp")
	}
	if a := decide(calm(inGates, first, foreign, tainted(-time.Second))); a.rec.Adopted {
		t.Error("a cordon from before the boot is no longer told from others once there is a stamp")
	}
	if a := decide(idle(first, rebooted(false), foreign, tainted(-time.Second))); a.rec.Adopted {
		t.Error("adopted before the node was Ready")
	}
	if a := decide(idle(rebooted(true), ourCordon)); a.rec.Rebooted {
		t.Error("a node that is Ready in this boot waits for that again")
	}
}
