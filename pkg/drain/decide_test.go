package drain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

var t0 = time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)

// calm is a drain of a healthy three-node cluster in state s, asked for by
// zedagent a minute ago, long enough in s for everything.
func calm(s types.DrainStatus, change ...func(*facts)) facts {
	f := facts{
		now: t0, member: true, timeout: 24 * time.Hour, skip: 5 * time.Minute,
		status: types.NodeDrainStatus{Status: s, RequestedBy: types.DrainRequesterDeviceOp},
		since:  t0.Add(-time.Minute), standing: t0.Add(-time.Minute), asked: t0.Add(-time.Minute),
		deviceOp: request{stands: true}, synced: true, known: true, others: 2,
		node: types.Node{Name: "n1", Ready: types.ConditionTrue},
	}
	if s == types.DrainCordoned || s == types.DrainRetrying {
		f.cordonedAt, f.node.Unschedulable = t0.Add(-time.Minute), true
	}
	if final(s) {
		f.told = map[types.DrainRequester]bool{types.DrainRequesterDeviceOp: true}
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func withdrawn(f *facts)  { f.deviceOp = request{} }
func updateToo(f *facts)  { f.update = request{stands: true} }
func onlyUpdate(f *facts) { f.deviceOp, f.update = request{}, request{stands: true} }
func doubtful(f *facts)   { f.deviceOp = request{doubt: true} }
func noMember(f *facts)   { f.member = false }
func ourCordon(f *facts) {
	f.node.Unschedulable, f.node.CordonedBy = true, &types.Cordon{By: "zedkube"}
}
func foreign(f *facts)     { f.node.Unschedulable = true }
func idleBy(f *facts)      { f.status.RequestedBy = types.DrainRequesterNone }
func notReady(f *facts)    { f.node.Ready = types.ConditionFalse }
func newBoot(f *facts)     { f.newBoot = true }
func cordoned(f *facts)    { f.cordonedAt = t0 }
func listedEmpty(f *facts) { f.list = t0.Add(-time.Second) }

func silent(d time.Duration) func(*facts)  { return func(f *facts) { f.silentSince = t0.Add(-d) } }
func inState(d time.Duration) func(*facts) { return func(f *facts) { f.since = t0.Add(-d) } }
func edgeAt(d time.Duration) func(*facts)  { return func(f *facts) { f.standing = t0.Add(-d) } }
func asked(d time.Duration) func(*facts)   { return func(f *facts) { f.asked = t0.Add(-d) } }
func undone(n int) func(*facts) {
	return func(f *facts) { f.losses, f.cordonedAt, f.node.Unschedulable = n, time.Time{}, false }
}
func alone(d time.Duration) func(*facts) { return func(f *facts) { f.alone = t0.Add(-d) } }
func force(s types.DrainStatus, by types.DrainRequester) func(*facts) {
	return func(f *facts) { f.forced = &types.NodeDrainStatus{Status: s, RequestedBy: by} }
}

func listed(ago time.Duration, pods ...evictee) func(*facts) {
	return func(f *facts) { f.list, f.pods = t0.Add(-ago), pods }
}

func pod(name string) evictee { return evictee{pod: types.Pod{Namespace: "a", Name: name, UID: name}} }

// did is what the table compares of an action.
type did struct {
	s     types.DrainStatus
	by    types.DrainRequester
	verb  verb
	stop  bool
	again time.Duration
	evict string
	eat   bool
}

func TestDecide(t *testing.T) {
	const (
		nobody, device, update = types.DrainRequesterNone, types.DrainRequesterDeviceOp, types.DrainRequesterUpdate
		notSupported, idle     = types.DrainNotSupported, types.DrainNotRequested
		requested, starting    = types.DrainRequested, types.DrainStarting
		inCordoned, retrying   = types.DrainCordoned, types.DrainRetrying
		failedCordon, failure  = types.DrainFailedCordon, types.DrainFailedDrain
		complete               = types.DrainComplete
	)
	fresh := func(f *facts) { f.status, f.deviceOp = types.NodeDrainStatus{}, request{} }
	refused := func(f *facts) { f.refusals = 10 }
	oldRequests := func(f *facts) { f.deviceOp.failed, f.update.failed = true, true }
	accepted := pod("accepted")
	accepted.accepted = t0.Add(-time.Second)
	ineffective := pod("ineffective")
	ineffective.accepted = t0.Add(-11 * time.Second)
	waiting := pod("waiting")
	waiting.next = t0.Add(300 * time.Millisecond)
	going := pod("going")
	going.terminating = true
	gone := pod("gone")
	gone.gone = true

	for _, row := range []struct {
		rule string
		f    facts
		want did
	}{
		{"the first value of a node in no cluster is NOTSUPPORTED", calm(0, fresh, noMember), did{s: notSupported, by: nobody, stop: true}},
		{"the first value of a member is NOTREQUESTED", calm(0, fresh), did{s: idle, by: nobody, stop: true}},
		{"a status that cannot be is a first value", calm(77, withdrawn), did{s: idle, by: nobody, stop: true}},
		{"a valid configuration makes drains possible", calm(notSupported, withdrawn), did{s: idle, by: nobody, stop: true}},
		{"without a cluster a request does nothing", calm(notSupported, noMember, idleBy), did{s: notSupported, by: device, stop: true}},
		{"a configuration that vanishes changes nothing", calm(idle, noMember, withdrawn), did{s: idle, by: nobody, stop: true}},
		{"a configuration that vanishes in mid-drain changes nothing", calm(requested, noMember), did{s: starting, by: device}},

		{"a request is accepted at once", calm(idle, idleBy), did{s: requested, by: device}},
		{"so is baseosmgr's", calm(idle, idleBy, onlyUpdate), did{s: requested, by: update}},
		{"of two requests the device operation is named", calm(idle, idleBy, updateToo), did{s: requested, by: device}},
		{"an accepted request starts", calm(requested), did{s: starting, by: device}},
		{"a started drain cordons", calm(starting), did{s: starting, by: device, verb: cordon}},
		{"also a node somebody else has cordoned, to be sure", calm(starting, foreign), did{s: starting, by: device, verb: cordon}},
		{"a refused cordon waits for its next try", calm(starting, func(f *facts) { f.retry = map[verb]time.Time{cordon: t0.Add(5 * time.Second)} }), did{s: starting, by: device, again: 5 * time.Second}},
		{"ten refused cordons fail the drain", calm(starting, refused), did{s: failedCordon, by: device, stop: true}},
		{"a silent API refuses nothing", calm(starting, silent(time.Second)), did{s: starting, by: device}},
		{"an unknown node cannot be cordoned", calm(starting, func(f *facts) { f.known = false }), did{s: starting, by: device}},
		{"a cordoned node says so", calm(starting, cordoned), did{s: inCordoned, by: device}},
		{"eviction begins without waiting", calm(inCordoned, inState(0)), did{s: inCordoned, by: device, verb: list, again: time.Second}},
		{"CORDONED stands for one second only", calm(inCordoned, inState(time.Second)), did{s: retrying, by: device}},
		{"also while the API is silent", calm(inCordoned, inState(time.Second), silent(time.Hour)), did{s: retrying, by: device}},

		{"the pods of the list are evicted", calm(retrying, listed(0, pod("x"), pod("y"))), did{s: retrying, by: device, verb: evict, evict: "x y "}},
		{"an evicted pod is left alone", calm(retrying, listed(0, accepted, going, pod("x"))), did{s: retrying, by: device, verb: evict, evict: "x "}},
		{"an eviction without effect is made again", calm(retrying, listed(0, ineffective)), did{s: retrying, by: device, verb: evict, evict: "ineffective "}},
		{"a refused pod waits for its own time", calm(retrying, listed(0, waiting, gone)), did{s: retrying, by: device, again: 300 * time.Millisecond}},
		{"a gone set is listed again", calm(retrying, listed(time.Second, gone)), did{s: retrying, by: device, verb: list}},
		{"a pod the list did not know is listed after ten seconds", calm(retrying, listed(10*time.Second, going), func(f *facts) { f.unknown = true }), did{s: retrying, by: device, verb: list}},
		{"but not sooner", calm(retrying, listed(9*time.Second, going), func(f *facts) { f.unknown = true }), did{s: retrying, by: device}},
		{"an old list is made again", calm(retrying, listed(time.Minute, going)), did{s: retrying, by: device, verb: list}},
		{"an empty fresh list completes the drain", calm(retrying, listedEmpty), did{s: complete, by: device, stop: true}},
		{"an empty list that is old is made again", calm(retrying, listed(10*time.Second)), did{s: retrying, by: device, verb: list}},
		{"a pod that came after the empty list is listed first", calm(retrying, listedEmpty, func(f *facts) { f.unknown = true }), did{s: retrying, by: device, verb: list}},
		{"the fault marker holds COMPLETE back", calm(retrying, listedEmpty, func(f *facts) { f.held = true }), did{s: retrying, by: device}},
		{"a drain has to be seen for two seconds before it ends", calm(retrying, listedEmpty, edgeAt(1500*time.Millisecond)), did{s: retrying, by: device, stop: true, again: 500 * time.Millisecond}},
		{"a requester that is new to it has to see it first", calm(retrying, listedEmpty, onlyUpdate), did{s: retrying, by: update}},
		{"without another node nothing is evicted", calm(retrying, listed(0, pod("x")), func(f *facts) { f.others = 0 }), did{s: complete, by: device, stop: true}},
		{"peers that take none may soon do", calm(retrying, listed(0, pod("x")), alone(59*time.Second)), did{s: retrying, by: device}},
		{"after a minute nothing is evicted for them", calm(retrying, listed(0, pod("x")), alone(time.Minute)), did{s: complete, by: device, stop: true}},
		{"peers that are not known yet are no reason", calm(retrying, listed(0, pod("x")), func(f *facts) { f.others, f.synced = 0, false }), did{s: retrying, by: device, verb: evict, evict: "x "}},

		{"a cordon that somebody has undone is made again", calm(retrying, listedEmpty, undone(1)), did{s: retrying, by: device, verb: cordon}},
		{"three times", calm(retrying, undone(3)), did{s: retrying, by: device, verb: cordon}},
		{"and not a fourth time", calm(retrying, undone(4)), did{s: failure, by: device, stop: true}},
		{"one that was just made need not show yet", calm(retrying, listedEmpty, undone(1), cordoned), did{s: complete, by: device, stop: true}},
		{"ten refusals of it fail the drain", calm(retrying, undone(1), refused), did{s: failure, by: device, stop: true}},

		{"a dead API completes the drain after the skip time", calm(starting, silent(5*time.Minute), asked(time.Hour)), did{s: complete, by: device, stop: true}},
		{"counted from the request where that is later", calm(starting, silent(time.Hour), asked(4*time.Minute)), did{s: starting, by: device}},
		{"an unknown node completes the drain after a minute", calm(starting, asked(time.Hour), func(f *facts) { f.known, f.missing = false, t0.Add(-time.Minute) }), did{s: complete, by: device, stop: true}},
		{"the deadline fails the drain", calm(retrying, asked(24*time.Hour), listed(0, pod("x"))), did{s: failure, by: device, stop: true}},

		{"a withdrawn request ends the drain", calm(retrying, withdrawn, listed(0, pod("x"))), did{s: idle, by: nobody, stop: true}},
		{"also with a dead API", calm(starting, withdrawn, silent(time.Hour)), did{s: idle, by: nobody, stop: true}},
		{"also after COMPLETE", calm(complete, withdrawn), did{s: idle, by: nobody, stop: true}},
		{"a requester not heard of yet has withdrawn nothing", calm(retrying, doubtful, listed(0, pod("x"))), did{s: retrying, by: device}},
		{"nor is it forgotten as the requester", calm(retrying, doubtful, updateToo, listed(0, going)), did{s: retrying, by: device}},
		{"of two requests one may be withdrawn", calm(retrying, onlyUpdate, listed(0, going)), did{s: retrying, by: update}},
		{"a second requester joins", calm(retrying, updateToo, listed(0, going)), did{s: retrying, by: device}},

		{"COMPLETE stays while the request stands", calm(complete), did{s: complete, by: device, stop: true}},
		{"the second requester is told two seconds later", calm(complete, updateToo, inState(2*time.Second)), did{s: complete, by: update, stop: true}},
		{"not sooner", calm(complete, updateToo, inState(time.Second)), did{s: complete, by: device, stop: true, again: time.Second}},
		{"a failure is told to both as well", calm(failure, updateToo, oldRequests, inState(2*time.Second)), did{s: failure, by: update, stop: true}},
		{"a failure stays when its request is withdrawn", calm(failure, withdrawn), did{s: failure, by: device, stop: true}},
		{"a failure gives the node back", calm(failure, oldRequests, ourCordon), did{s: failure, by: device, stop: true, verb: uncordon}},
		{"a failed request does not start again", calm(failedCordon, oldRequests), did{s: failedCordon, by: device, stop: true}},
		{"a new request does", calm(failedCordon), did{s: requested, by: device}},

		{"our cordon without a drain is undone", calm(idle, withdrawn, ourCordon), did{s: idle, by: nobody, stop: true, verb: uncordon}},
		{"a refused uncordon waits for its next try", calm(idle, withdrawn, ourCordon, func(f *facts) { f.retry = map[verb]time.Time{uncordon: t0.Add(3 * time.Second)} }), did{s: idle, by: nobody, stop: true, again: 3 * time.Second}},
		{"also on a node that is not Ready, where this boot saw the drain", calm(idle, withdrawn, ourCordon, notReady), did{s: idle, by: nobody, stop: true, verb: uncordon}},
		{"after a boot the node has to be Ready first", calm(idle, withdrawn, ourCordon, notReady, newBoot), did{s: idle, by: nobody, stop: true}},
		{"and then it is undone", calm(idle, withdrawn, ourCordon, newBoot), did{s: idle, by: nobody, stop: true, verb: uncordon}},
		{"a foreign cordon is never undone", calm(idle, withdrawn, foreign, newBoot), did{s: idle, by: nobody, stop: true}},
		{"a tie-breaker stays cordoned", calm(idle, withdrawn, ourCordon, func(f *facts) { f.tieBreaker = true }), did{s: idle, by: nobody, stop: true}},
		{"nothing is undone while a request may still turn up", calm(idle, doubtful, idleBy, ourCordon), did{s: idle, by: nobody, stop: true}},
		{"nothing is undone while the API is silent", calm(idle, withdrawn, ourCordon, silent(time.Second)), did{s: idle, by: nobody, stop: true}},
		{"a cordon stays after COMPLETE", calm(complete, ourCordon), did{s: complete, by: device, stop: true}},

		{"a forced status is published as it is", calm(idle, withdrawn, force(failedCordon, update)), did{s: failedCordon, by: update, stop: true}},
		{"for the real requester where it names none", calm(retrying, force(starting, nobody)), did{s: starting, by: device, stop: true}},
		{"a forced 1 gives the node back", calm(retrying, ourCordon, force(notSupported, nobody)), did{s: notSupported, by: device, stop: true, verb: uncordon}},
		{"a forced 9 completes a drain and is used up", calm(retrying, listed(0, pod("x")), force(complete, nobody)), did{s: complete, by: device, stop: true, eat: true}},
		{"a forced 9 waits until the drain has been seen", calm(retrying, force(complete, nobody), edgeAt(time.Second)), did{s: retrying, by: device, stop: true, again: time.Second}},
		{"a forced 9 overrules a failure", calm(failure, force(complete, nobody)), did{s: complete, by: device, stop: true, eat: true}},
		{"a forced 9 waits for a drain about to begin", calm(idle, idleBy, force(complete, nobody)), did{s: requested, by: device}},
		{"a forced 9 waits for a request not heard of yet", calm(retrying, doubtful, force(complete, nobody)), did{s: retrying, by: device}},
		{"a forced 9 outside a cluster is only used up", calm(notSupported, noMember, idleBy, force(complete, nobody)), did{s: notSupported, by: nobody, stop: true, eat: true}},
		{"a forced 9 without a drain is only used up", calm(idle, withdrawn, idleBy, force(complete, nobody)), did{s: idle, by: nobody, stop: true, eat: true}},
	} {
		t.Run(row.rule, func(t *testing.T) {
			a := decide(row.f)
			got := did{s: a.status.Status, by: a.status.RequestedBy, verb: a.verb, stop: a.stop, again: a.again, eat: a.consume}
			for _, p := range a.evict {
				got.evict += p.Name + " "
			}
			if d := cmp.Diff(row.want, got, cmp.AllowUnexported(did{})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAResumedDrainWasAskedForWhenItsRequestSaysSo(t *testing.T) {
	started := t0
	for _, row := range []struct {
		rule      string
		requested time.Time
		cordon    *types.Cordon
		want      time.Time
	}{
		{"by its request", t0.Add(-time.Hour), nil, t0.Add(-time.Hour)},
		{"by an own cordon that is younger", t0.Add(-time.Hour), &types.Cordon{Since: t0.Add(-time.Minute)}, t0.Add(-time.Minute)},
		{"not by one of an older drain", t0.Add(-time.Hour), &types.Cordon{Since: t0.Add(-2 * time.Hour)}, t0.Add(-time.Hour)},
		{"not in the future", t0.Add(time.Hour), nil, started},
		{"not at the beginning of time", time.Time{}, nil, started},
	} {
		if got := resumedSince(row.requested, row.cordon, started); !got.Equal(row.want) {
			t.Errorf("%s: %v, want %v", row.rule, got, row.want)
		}
		now := time.Now()
		if got := resumedSince(now.Round(0).Add(-time.Hour), nil, now); got == got.Round(0) {
			t.Errorf("%s: without monotonic clock: a jump of the wall clock would count", row.rule)
		}
	}
}
