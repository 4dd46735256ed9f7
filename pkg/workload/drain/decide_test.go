package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	idling, inGates, emptying = types.PhaseIdle, types.PhaseGates, types.PhaseEmptying
	completed                 = types.PhaseComplete
	noCordon, notEmpty        = types.PhaseNoCordon, types.PhaseNotEmpty

	notSupported, notRequested = types.DrainNotSupported, types.DrainNotRequested
	requested, starting        = types.DrainRequested, types.DrainStarting
	inCordoned, retrying       = types.DrainCordoned, types.DrainRetrying
	failedCordon, failedDrain  = types.DrainFailedCordon, types.DrainFailedDrain
	complete9                  = types.DrainComplete
)

func TestDrainsBegin(t *testing.T) {
	table(t, []row{
		{"a request starts a drain at once", calm(idling), did{phase: inGates, s: requested, by: deviceOp, why: "the drain starts"}},
		{"so does baseosmgr's", calm(idling, who(byUpdate)), did{phase: inGates, s: requested, by: osUpdate}},
		{"of two requests the device operation is named", calm(idling, who(byUpdate, byDeviceOp)), did{phase: inGates, s: requested, by: deviceOp}},
		{"an operator's drain is none of EVE's", calm(idling, who(byOperator)), did{phase: inGates, s: notRequested, by: nobody}},
		{"nor is that for k3s", calm(idling, who(byK3s)), did{phase: inGates, s: notRequested, by: nobody}},
		{"nor is the leave's", calm(idling, who(byLeave)), did{phase: inGates, s: notRequested, by: nobody}},
		{"a node in no cluster does nothing about a request", calm(idling, noMember, says(notSupported, nobody)), did{phase: idling, s: notSupported, by: deviceOp}},
		{"a request that may not stand any more starts nothing", calm(idling, who(), doubted(byDeviceOp)), did{phase: idling, s: notRequested, by: deviceOp}},
		{"a drain begins while the API is silent", calm(idling, silent(time.Hour)), did{phase: inGates, s: requested, by: deviceOp}},
		{"also on a node that is not back from its boot", calm(idling, func(f *facts) { f.rec.Rebooted, f.up = true, false }), did{phase: inGates, s: requested, by: deviceOp}},
		{"a node that has left drains no more", calm(idling, who(byLeave), func(f *facts) { f.rec.Left = true }), did{phase: idling, s: notRequested, by: nobody, left: true}},
		{"not for a device either, which is answered when the membership has heard of it", calm(idling, who(byLeave, byDeviceOp), says(complete9, deviceOp), func(f *facts) { f.rec.Left = true }), did{phase: idling, s: complete9, by: deviceOp, left: true}},
		{"a configuration that comes back after the leave makes drains possible", calm(idling, func(f *facts) { f.rec.Left = true }), did{phase: inGates, s: requested, by: deviceOp}},
	})
}

func TestDrainsEnd(t *testing.T) {
	gone := pod("gone", func(e *podEviction) { e.gone = true })
	refusals := func(n int) func(*facts) { return func(f *facts) { f.rec.Refusals = n } }
	losses := func(n int) func(*facts) { return func(f *facts) { f.rec.Losses = n } }
	noPeer := func(f *facts) { f.others = 0 }
	window := func(f *facts) { f.window = 2 * time.Minute }
	fast := func(f *facts) { f.timeout = 3 }
	dead := did{phase: completed, s: complete9, by: deviceOp, stop: true, dead: true, why: "the API server has not answered for 5m0s"}
	done := did{phase: completed, s: complete9, by: deviceOp, stop: true, why: "no pod is left"}
	failure := did{phase: notEmpty, s: failedDrain, by: deviceOp, stop: true}
	table(t, []row{
		{"an API that is silent for the skip time ends the way to the gates", calm(inGates, silent(5*time.Minute)), dead},
		{"and the emptying", calm(emptying, silent(5*time.Minute), with(pod("x"))), dead},
		{"not a second sooner", calm(inGates, silent(5*time.Minute-time.Second)), did{phase: inGates, s: starting, by: deviceOp, why: "does not answer"}},
		{"where the request is later the time runs from it", calm(inGates, silent(time.Hour), asked(5*time.Minute-time.Second)), did{phase: inGates, s: starting, by: deviceOp}},
		{"writes without an answer are a dead API too", calm(inGates, mute(5*time.Minute)), dead},
		{"the skip time is the operator's", calm(inGates, silent(time.Minute), func(f *facts) { f.skip = time.Minute }), did{phase: completed, s: complete9, by: deviceOp, stop: true, dead: true, why: "1m0s"}},
		{"the fault marker does not hold a dead API's end back", calm(inGates, silent(5*time.Minute), marker), dead},

		{"an own node that is missing for a minute from a living API ends the drain", calm(inGates, missing(time.Minute)), did{phase: completed, s: complete9, by: deviceOp, stop: true, why: "not in the cluster's list of nodes"}},
		{"also after the cordon", calm(emptying, missing(time.Minute), with(pod("x"))), did{phase: completed, s: complete9, by: deviceOp, stop: true, why: "not in the cluster's list of nodes"}},
		{"one that was never seen may be joining", calm(inGates, missing(5*time.Minute-time.Second), never), did{phase: inGates, s: starting, by: deviceOp, why: "not in the cluster's list of nodes"}},
		{"but not for ever", calm(inGates, missing(5*time.Minute), never), did{phase: completed, s: complete9, by: deviceOp, stop: true, why: "not in the cluster's list of nodes"}},
		{"it may be registering for a minute", calm(inGates, missing(59*time.Second)), did{phase: inGates, s: starting, by: deviceOp, why: "not in the cluster's list of nodes"}},

		{"the gates end with the timeout after the request", calm(inGates, asked(24*time.Hour), func(f *facts) { f.gates = "node n2 drains" }), failure.because("after 24h0m0s: node n2 drains")},
		{"what cannot be looked at is named", calm(inGates, asked(24*time.Hour)), failure.because("the drain lock and the quorum could not be checked")},
		{"and what cannot be cordoned", calm(inGates, asked(24*time.Hour), entered), failure.because("could not be cordoned")},
		{"and a silent API", calm(inGates, asked(24*time.Hour), silent(time.Second)), failure.because("does not answer")},
		{"the emptying ends with the timeout after the cordon", calm(emptying, cordonedAgo(24*time.Hour), with(pod("x"), gone)), failure.because("1 pod left: a/x")},
		{"however long the gates took", calm(emptying, asked(40*time.Hour), cordonedAgo(23*time.Hour), with(gone), passed(0)), done},
		{"volumes in the way are named at the deadline", calm(emptying, cordonedAgo(24*time.Hour), found(checked{volumes: []types.DrainVolume{{Name: "pvc-1"}}})), failure.because("1 volume in the way: pvc-1")},
		{"so is a pod that the last list held", calm(emptying, cordonedAgo(24*time.Hour), with(gone), found(checked{pods: []string{"shop/till"}})), failure.because("the last list still had 1 pod: shop/till")},
		{"so are pods that came after it", calm(emptying, cordonedAgo(24*time.Hour), anyPods, found(checked{})), failure.because("new ones have appeared: shop/new")},
		{"the reason is never empty", calm(emptying, cordonedAgo(24*time.Hour)), failure.because("not everything could be checked")},
		{"so is the quorum", calm(emptying, cordonedAgo(24*time.Hour), found(checked{quorum: "no quorum"})), failure.because("no quorum")},
		{"so is the lock", calm(emptying, cordonedAgo(24*time.Hour), found(checked{lock: "node n2 drains"})), failure.because("node n2 drains")},
		{"the timeout is the operator's, at run time", calm(emptying, with(pod("x")), func(f *facts) { f.timeout = 9 * time.Minute }), failure.because("after 9m0s")},
		{"a timeout of nothing at all ends as any other", calm(emptying, with(pod("x")), fast), failure},

		{"ten refused cordons fail the cordon", calm(inGates, entered, refusals(10)), did{phase: noCordon, s: failedCordon, by: deviceOp, stop: true, why: "refused 10 times"}},
		{"nine do not", calm(inGates, entered, refusals(9)), did{phase: inGates, s: starting, by: deviceOp, verb: cordon}},
		{"in mid-drain ten refused cordons fail the drain", calm(emptying, uncordoned, refusals(10)), failure.because("refused 10 times")},
		{"a cordon that is lost is made again", calm(emptying, uncordoned, losses(1)), did{phase: emptying, s: retrying, by: deviceOp, verb: cordon}},
		{"a third time", calm(emptying, uncordoned, losses(3)), did{phase: emptying, s: retrying, by: deviceOp, verb: cordon}},
		{"the fourth loss fails the drain", calm(emptying, uncordoned, losses(4)), failure.because("undone by another client 4 times")},

		{"a check that passed completes the drain", calm(emptying, with(gone), passed(0)), done},
		{"one of fourteen seconds ago is good enough", calm(emptying, with(gone), passed(14*time.Second)), done},
		{"one of fifteen seconds ago is made again", calm(emptying, with(gone), passed(checkedFor)), did{phase: emptying, s: retrying, by: deviceOp, verb: check}},
		{"none at all is made", calm(emptying, with(gone)), did{phase: emptying, s: retrying, by: deviceOp, verb: check}},
		{"a pod that the check found keeps it from passing", calm(emptying, with(gone), found(checked{pods: []string{"shop/till"}})), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "shop/till"}},
		{"so does a volume", calm(emptying, found(checked{volumes: []types.DrainVolume{{Name: "pvc-1"}}})), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "pvc-1"}},
		{"so does a missing quorum", calm(emptying, found(checked{quorum: "no quorum"})), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "no quorum"}},
		{"so does a lock that another node holds", calm(emptying, found(checked{lock: "node n2 drains"})), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "node n2 drains"}},
		{"an evicted pod that still terminates is not gone", calm(emptying, passed(0), with(pod("x", func(e *podEviction) { e.pod.Deleted = wall0 }))), did{phase: emptying, s: retrying, by: deviceOp}},
		{"a pod that came since is looked at first", calm(emptying, passed(0), anyPods), did{phase: emptying, s: retrying, by: deviceOp, verb: list}},
		{"what passed does not while the API is silent", calm(emptying, passed(0), silent(time.Second)), did{phase: emptying, s: retrying, by: deviceOp, why: "does not answer"}},
		{"nor while the own node is not there", calm(emptying, passed(0), missing(0)), did{phase: emptying, s: retrying, by: deviceOp, why: "not in the cluster's list of nodes"}},
		{"nor while the node takes pods", calm(emptying, passed(0), uncordoned), did{phase: emptying, s: retrying, by: deviceOp, verb: cordon}},
		{"a cordon of a moment ago has to show first", calm(emptying, passed(0), uncordoned, func(f *facts) { f.cordonAgain = minus(9 * time.Second) }), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "does not show the cordon"}},
		{"a foreign cordon does as well", calm(emptying, passed(0), foreign), done},
		{"the fault marker delays COMPLETE", calm(emptying, passed(0), marker), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "the fault marker"}},

		{"without any other node nothing is evicted", calm(emptying, noPeer, with(pod("x"))), did{phase: completed, s: complete9, by: deviceOp, stop: true, why: "there is no other node"}},
		{"but the gates are passed first", calm(inGates, noPeer, entered), did{phase: inGates, s: starting, by: deviceOp, verb: cordon}},
		{"peers that are not known yet are not none", calm(emptying, noPeer, with(pod("x")), func(f *facts) { f.synced = false }), did{phase: emptying, s: retrying, by: deviceOp, verb: evict, evict: "x "}},
		{"without a Ready and schedulable peer for a minute nothing is evicted", calm(emptying, alone(time.Minute), passed(0), with(pod("x"))), did{phase: completed, s: complete9, by: deviceOp, stop: true, why: "no other node is Ready and schedulable"}},
		{"peers may be back within the minute", calm(emptying, alone(59*time.Second), passed(0), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "no other node is Ready"}},
		{"nor does a lone node go without quorum", calm(emptying, alone(time.Hour), found(checked{quorum: "no quorum"}), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "no quorum"}},
		{"nor on the word of a look that stopped at pods", calm(emptying, alone(time.Hour), found(checked{pods: []string{"shop/till"}}), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: check}},
		{"nor does a look at the gates alone do once there is a peer", calm(emptying, found(checked{lone: true})), did{phase: emptying, s: retrying, by: deviceOp, verb: check}},
		{"nor while the last healthy replica here is rebuilt elsewhere", calm(emptying, alone(time.Hour), found(checked{lone: true, volumes: []types.DrainVolume{{Name: "pvc-1", Why: "30 %"}}}), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "pvc-1: 30 %"}},
		{"nor without the lock", calm(emptying, alone(time.Hour), found(checked{lock: "node n2 drains"}), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "node n2 drains"}},
		{"beside agents that know no lock the window is waited for", calm(emptying, alone(time.Minute), window, passed(0), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: check, why: "no other node is Ready"}},
		{"the marker holds a lone node's COMPLETE back", calm(emptying, noPeer, marker, with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: evict, evict: "x "}},
		{"who is asked by a device as well, perhaps, does not", calm(emptying, who(byLeave), doubted(byDeviceOp), alone(time.Hour), passed(0), with(pod("x"))), did{phase: completed, s: complete9, by: deviceOp, stop: true, why: "no other node"}},
		{"who leaves evicts even if nobody takes the pods", calm(emptying, who(byLeave), says(notRequested, nobody), alone(time.Hour), with(pod("x"))), did{phase: emptying, s: notRequested, by: nobody, verb: evict, evict: "x "}},
	})
}

func (d did) because(why string) did {
	d.why = why
	return d
}

func TestTheNumberOfAnAttempt(t *testing.T) {
	for _, row := range []struct {
		rule     string
		cordoned time.Duration
		was      int
		want     int
	}{
		{"the first begins with the cordon", 0, 0, 1},
		{"it lasts a fifth of the timeout", 4*time.Hour + 47*time.Minute, 1, 1},
		{"then comes the second", 4*time.Hour + 48*time.Minute, 1, 2},
		{"the fifth is the last", 23 * time.Hour, 4, 5},
		{"a longer timeout takes none back", time.Minute, 3, 3},
	} {
		a := decide(calm(emptying, cordonedAgo(row.cordoned), with(pod("x")), func(f *facts) { f.rec.Attempt = row.was }))
		if a.rec.Attempt != row.want {
			t.Errorf("%s: attempt %d, want %d", row.rule, a.rec.Attempt, row.want)
		}
	}
}

func TestAFailureRemembersWhichRequestsFailed(t *testing.T) {
	a := decide(calm(emptying, who(byDeviceOp), asksAgain(byUpdate), cordonedAgo(24*time.Hour)))
	if len(a.rec.Failed) != 2 || !a.rec.Failed[0].Equal(wall0) || !a.rec.Failed[1].Equal(wall0.Add(time.Hour)) {
		t.Errorf("failed are %v", a.rec.Failed)
	}
}
