package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestTheForceFileInEveryPhase(t *testing.T) {
	stopped := func(forced types.DrainStatus) did {
		return did{phase: idling, s: forced, by: deviceOp, stop: true, why: "stopped by the force file"}
	}
	for _, forced := range []types.DrainStatus{types.DrainUnknown, notSupported, notRequested} {
		file := force(forced, types.DrainRequesterUnset)
		t.Run(forced.String()+" stops", func(t *testing.T) {
			table(t, []row{
				{"no drain begins under it", calm(idling, file), did{phase: idling, s: forced, by: deviceOp}},
				{"and what is left of one is given back", calm(idling, file, ourCordon), did{phase: idling, s: forced, by: deviceOp, verb: uncordon}},
				{"a drain before its cordon ends", calm(inGates, file), stopped(forced)},
				{"a drain that empties ends", calm(emptying, file, with(pod("x"))), stopped(forced)},
				{"COMPLETE ends", calm(completed, file), stopped(forced)},
				{"a failed cordon ends", calm(noCordon, file), stopped(forced)},
				{"a failed drain ends", calm(notEmpty, file), stopped(forced)},
				{"an operator's drain ends", calm(emptying, file, who(byOperator), says(notRequested, nobody)), did{phase: idling, s: forced, by: nobody, stop: true}},
			})
		})
	}
	for _, forced := range []types.DrainStatus{requested, starting, inCordoned, failedCordon, retrying, failedDrain} {
		file := force(forced, osUpdate)
		t.Run(forced.String()+" only masks", func(t *testing.T) {
			table(t, []row{
				{"a node without a drain", calm(idling, who(), file), did{phase: idling, s: forced, by: osUpdate}},
				{"a drain that begins", calm(idling, file), did{phase: inGates, s: forced, by: osUpdate}},
				{"a drain before its cordon", calm(inGates, file, entered), did{phase: inGates, s: forced, by: osUpdate, verb: cordon}},
				{"a drain that empties", calm(emptying, file, with(pod("x"))), did{phase: emptying, s: forced, by: osUpdate, verb: evict, evict: "x "}},
				{"a drain that ends", calm(emptying, file, passed(0)), did{phase: completed, s: forced, by: osUpdate, stop: true}},
				{"a drain that is withdrawn", calm(emptying, file, who()), did{phase: idling, s: forced, by: osUpdate, stop: true}},
				{"COMPLETE", calm(completed, file), did{phase: completed, s: forced, by: osUpdate}},
				{"a failure", calm(notEmpty, file, ourCordon), did{phase: notEmpty, s: forced, by: osUpdate, verb: uncordon}},
			})
		})
	}
	table(t, []row{
		{"no requester becomes the real one", calm(emptying, force(starting, types.DrainRequesterUnset), with(pod("x"))), did{phase: emptying, s: starting, by: deviceOp, verb: evict, evict: "x "}},
		{"so does NONE", calm(emptying, force(starting, nobody), who(byUpdate), says(retrying, osUpdate), with(pod("x"))), did{phase: emptying, s: starting, by: osUpdate, verb: evict, evict: "x "}},
		{"NONE where nobody asks", calm(idling, who(), force(failedDrain, types.DrainRequesterUnset)), did{phase: idling, s: failedDrain, by: nobody}},
		{"DEVICEOP is published as it is", calm(emptying, force(starting, deviceOp), who(byUpdate), with(pod("x"))), did{phase: emptying, s: starting, by: deviceOp, verb: evict, evict: "x "}},
	})
}

func TestAForced9(t *testing.T) {
	nine := force(complete9, types.DrainRequesterUnset)
	seen := did{phase: completed, s: complete9, by: deviceOp, stop: true, eat: true, kept: true, why: "forced"}
	once := did{phase: idling, s: notRequested, by: nobody, eat: true}
	table(t, []row{
		{"it ends a drain that empties and keeps its cordon", calm(emptying, nine, with(pod("x"))), seen},
		{"it ends one before its cordon", calm(inGates, nine), seen},
		{"also with a dead API", calm(emptying, nine, silent(time.Minute)), seen},
		{"also under the fault marker", calm(emptying, nine, marker), seen},
		{"it is obeyed at once, and said when the drain has been seen", calm(emptying, nine, standingFor(time.Second)), did{phase: completed, s: retrying, by: deviceOp, stop: true, eat: true, kept: true, again: time.Second}},
		{"it overrules a failed drain", calm(notEmpty, nine), did{phase: completed, s: complete9, by: deviceOp, eat: true, kept: true}.stopping(true)},
		{"and a failed cordon", calm(noCordon, nine), did{phase: completed, s: complete9, by: deviceOp, eat: true, kept: true}.stopping(true)},
		{"but not a failure whose request is gone", calm(notEmpty, nine, who(), ourCordon), did{phase: notEmpty, s: failedDrain, by: deviceOp, verb: uncordon, eat: true}},
		{"at COMPLETE it keeps the cordon", calm(completed, nine), did{phase: completed, s: complete9, by: deviceOp, eat: true, kept: true}},
		{"an operator's drain ends unseen by EVE", calm(emptying, nine, who(byOperator), says(notRequested, nobody)), did{phase: completed, s: notRequested, by: nobody, stop: true, eat: true, kept: true}},
		{"without a drain it is removed and does nothing", calm(idling, nine, who()), once},
		{"not even to a cordon that is being given back", calm(idling, nine, who(), ourCordon), did{phase: idling, s: notRequested, by: nobody, eat: true, verb: uncordon}},
		{"outside any cluster it is removed", calm(idling, nine, noMember, says(notSupported, nobody)), did{phase: idling, s: notSupported, by: deviceOp, eat: true}},
		{"it waits for a drain that is about to begin", calm(idling, nine), did{phase: inGates, s: requested, by: deviceOp}},
		{"and for a request that may yet be heard of", calm(idling, nine, who(), func(f *facts) { f.notReceived = true }), did{phase: idling, s: notRequested, by: nobody}},
		{"a drain whose request is not heard of again yet is one", calm(emptying, nine, who(), doubted(byDeviceOp)), seen},
	})
}

func (d did) stopping(stop bool) did {
	d.stop = stop
	return d
}

func TestAForcedEndWithoutTheGatesIsMadeUpFor(t *testing.T) {
	for _, phase := range []types.DrainPhase{inGates, noCordon, notEmpty} {
		f := calm(phase, force(complete9, nobody), func(f *facts) {
			if phase == notEmpty {
				f.rec.Cordoned = minus(time.Hour)
			}
		})
		f.rec, f.forced = decide(f).rec, nil
		if a := decide(f); a.verb != cordonAfterDeadAPI || !a.rec.Kept {
			t.Errorf("from %s: verb %s, kept %v", phase, verbNames[a.verb], a.rec.Kept)
		}
	}
}

// lookedAt is a look, in this boot, that found these volumes here alone.
func lookedAt(names ...string) func(*facts) {
	return func(f *facts) {
		f.bootID, f.rec.Look = "b", &types.StorageLook{BootID: "b", Volumes: volumesNamed(names)}
		f.looked = f.now
	}
}

func looked(ago time.Duration) func(*facts) { return func(f *facts) { f.looked = minus(ago) } }

// keptByEtcd is a Node that is deleted and that its finalizer keeps.
func keptByEtcd(f *facts) { f.node.Deleted, f.node.Finalizers = wall0, []string{"etcd"} }

// given is a consent to the loss of these volumes.
func given(names ...string) func(*facts) {
	return func(f *facts) { f.consent = &types.LeaveConsent{Volumes: volumesNamed(names)} }
}

func volumesNamed(names []string) (volumes []types.LeaveVolume) {
	for _, name := range names {
		volumes = append(volumes, types.LeaveVolume{UID: "uid-" + name, Name: name})
	}
	return volumes
}

func endsHereNow(f *facts) { f.ends = true }

func TestLeaving(t *testing.T) {
	leaves := func(phase types.DrainPhase, change ...func(*facts)) facts {
		return calm(phase, append([]func(*facts){who(byLeave), says(notRequested, nobody)}, change...)...)
	}
	quiet := func(phase types.DrainPhase, v verb) did {
		return did{phase: phase, s: notRequested, by: nobody, verb: v}
	}
	gone := did{phase: idling, s: notRequested, by: nobody, stop: true, left: true, why: "the node has left the cluster"}
	both := func(change ...func(*facts)) facts {
		return calm(completed, append([]func(*facts){who(byLeave, byDeviceOp), saidFor(edge)}, change...)...)
	}
	table(t, []row{
		{"the lock and the quorum come first", leaves(inGates), quiet(inGates, enter)},
		{"then the cordon", leaves(inGates, entered), quiet(inGates, cordon)},
		{"then the pods go", leaves(emptying, with(pod("x"))), did{phase: emptying, s: notRequested, by: nobody, verb: evict, evict: "x "}},
		{"then the volumes are looked at", leaves(emptying), quiet(emptying, check)},
		{"while one needs this node nothing is deleted", leaves(emptying, found(checked{volumes: []types.DrainVolume{{Name: "pvc-1"}}})), did{phase: emptying, s: notRequested, by: nobody, verb: check, why: "pvc-1"}},
		{"what passed completes it", leaves(emptying, passed(0)), did{phase: completed, s: notRequested, by: nobody, stop: true}},
		{"the own Node is deleted last", leaves(completed), quiet(completed, deleteNode)},
		{"after a pause where that was not to be", leaves(completed, pause(deleteNode, time.Second), func(f *facts) { f.holds = "pvc-1 needs it" }), did{phase: completed, s: notRequested, by: nobody, again: time.Second, why: "pvc-1 needs it"}},
		{"not while the API is silent", leaves(completed, silent(time.Second)), did{phase: completed, s: notRequested, by: nobody, why: "does not answer"}},
		{"an API that is dead before the end is left without deleting the Node", leaves(completed, deadEnd, silent(time.Hour), lookedAt()), gone},
		{"but not where data is here alone", leaves(completed, deadEnd, silent(time.Hour), lookedAt("v1")), did{phase: completed, s: notRequested, by: nobody, dead: true, why: "1 volume has no healthy replica except on this node: v1"}},
		{"unless that may be lost", leaves(completed, deadEnd, silent(time.Hour), lookedAt("v1"), given("v1", "v2")), gone},
		{"nor where less may be lost", leaves(completed, deadEnd, silent(time.Hour), lookedAt("v1", "v2"), given("v1")), did{phase: completed, s: notRequested, by: nobody, dead: true, why: "v2"}},
		{"nor where there are more volumes than a consent can name", leaves(completed, deadEnd, silent(time.Hour), lookedAt("v1"), given("v1"), func(f *facts) { f.rec.Look.Omitted = 1 }), did{phase: completed, s: notRequested, by: nobody, dead: true, why: "more than can be consented to"}},
		{"nor where nothing was looked at", leaves(completed, deadEnd, silent(time.Hour)), did{phase: completed, s: notRequested, by: nobody, dead: true, why: "were not checked"}},
		{"nor where that was in another boot", leaves(completed, deadEnd, silent(time.Hour), lookedAt(), func(f *facts) { f.bootID = "b2" }), did{phase: completed, s: notRequested, by: nobody, dead: true, why: "were not checked"}},
		{"nor where this boot has no name", leaves(completed, deadEnd, silent(time.Hour), lookedAt(), func(f *facts) { f.bootID, f.rec.Look.BootID = "", "" }), did{phase: completed, s: notRequested, by: nobody, dead: true, why: "were not checked"}},
		{"an API that is back ends that the node is left without a drain", leaves(completed, deadEnd, lookedAt()), did{phase: emptying, s: notRequested, by: nobody, why: "again"}},
		{"one that dies at the end is given up after the skip time", leaves(completed, silent(5*time.Minute), func(f *facts) { f.rec.Ended = minus(time.Hour) }), did{phase: completed, s: notRequested, by: nobody, dead: true}},
		{"counted from the end of the drain where that is later", leaves(completed, silent(5*time.Minute)), did{phase: completed, s: notRequested, by: nobody}},
		{"a Node that others have deleted is left at once", leaves(completed, missing(time.Minute), lookedAt()), gone},
		{"but its volumes are looked at first", leaves(completed, missing(time.Minute)), did{phase: completed, s: notRequested, by: nobody, verb: checkLeave, why: "were not checked"}},
		{"a look from before it was gone does not count", leaves(completed, missing(time.Minute), lookedAt(), looked(61*time.Second)), did{phase: completed, s: notRequested, by: nobody, verb: checkLeave, why: "were not checked"}},
		{"so it is with one that this leave has deleted", leaves(completed, missing(time.Second), lookedAt(), looked(2*time.Second), func(f *facts) { f.deleted = true }), did{phase: completed, s: notRequested, by: nobody, verb: checkLeave, why: "were not checked"}},
		{"which is left without a pause", leaves(completed, missing(time.Second), lookedAt(), func(f *facts) { f.deleted = true }), gone},
		{"where the API is dead a look from shortly before counts", leaves(completed, deadEnd, silent(time.Hour), lookedAt(), looked(time.Hour+lookedFor)), gone},
		{"an older one does not", leaves(completed, deadEnd, silent(time.Hour), lookedAt(), looked(time.Hour+lookedFor+1)), did{phase: completed, s: notRequested, by: nobody, dead: true, why: "were not checked"}},
		{"a Node that finalizers keep is not deleted again, and the volumes are looked at", leaves(completed, keptByEtcd), did{phase: completed, s: notRequested, by: nobody, verb: checkLeave, why: "blocked by finalizers etcd"}},
		{"again and again", leaves(completed, keptByEtcd, lookedAt("v1"), pause(checkLeave, time.Second)), did{phase: completed, s: notRequested, by: nobody, again: time.Second, why: "blocked by finalizers etcd; 1 volume has no healthy replica except"}},
		{"a cluster that ends here ends without a deletion", leaves(completed, func(f *facts) { f.ended = true }), gone},
		{"by consent nothing is evicted where it ends", leaves(emptying, with(pod("p")), endsHereNow, given(), func(f *facts) { f.consent.Ends = true }), did{phase: completed, s: notRequested, by: nobody, stop: true, why: "the cluster ceases to exist with this node"}},
		{"not before that is sure", leaves(completed, missing(59*time.Second)), did{phase: completed, s: notRequested, by: nobody, why: "not in the cluster's list of nodes"}},
		{"a device that asks as well is told first", both(saidFor(time.Second)), did{phase: completed, s: complete9, by: deviceOp, again: edge}},
		{"and has two seconds to hear it", both(), did{phase: completed, s: complete9, by: deviceOp, verb: deleteNode}},
		{"the update is told before, too", calm(completed, who(byLeave, byDeviceOp, byUpdate), saidFor(edge)), did{phase: completed, s: complete9, by: osUpdate, again: edge}},
		{"a leave that is decided after COMPLETE needs no second drain", calm(completed, who(byLeave, byDeviceOp)), did{phase: completed, s: complete9, by: deviceOp, verb: deleteNode}},
		{"a device that joins an empty node that leaves has it looked at", leaves(completed, who(byLeave, byDeviceOp)), did{phase: emptying, s: requested, by: deviceOp}},
		{"a valid configuration that returns gives all back", leaves(completed, who()), did{phase: idling, s: notRequested, by: nobody, stop: true}},
		{"also in the middle", leaves(emptying, who(), with(pod("x"))), did{phase: idling, s: notRequested, by: nobody, stop: true}},
		{"a drain that a device wants as well goes on then", calm(emptying, who(byDeviceOp), with(pod("x"))), did{phase: emptying, s: retrying, by: deviceOp, verb: evict, evict: "x "}},
		{"one who has left keeps that in mind until it is heard", leaves(idling, func(f *facts) { f.rec.Left = true }), did{phase: idling, s: notRequested, by: nobody, left: true}},
		{"and drops it then", leaves(idling, who(), noMember, says(notSupported, nobody), func(f *facts) { f.rec.Left = true }), did{phase: idling, s: notSupported, by: nobody}},
	})
}
