package drain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// FuzzDecide checks that whatever the facts are and whatever they become, no
// decision panics or breaks what the drain promises.
func FuzzDecide(f *testing.F) {
	for seed := range seeds.Each(f, 400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := world{Rand: rand.New(rand.NewPCG(seed, 2))}
		w.begin()
		for step := range 150 {
			w.change()
			a := decide(w.facts)
			if err := w.promises(a); err != nil {
				t.Fatalf("step %d: %v\nfacts %+v\naction %+v", step, err, w.facts, a)
			}
			w.obey(a)
		}
		if err := inOrder(w.history); err != nil {
			t.Fatalf("%v; history %s", err, spell(w.history))
		}
	})
}

// world is facts that change at random, but not against nature.
type world struct {
	*rand.Rand
	facts   facts
	history []stamped
}

func (w *world) odds(n int) bool { return w.IntN(n) == 0 }

func (w *world) begin() {
	phase := phases[w.IntN(len(phases))]
	w.facts = calm(phase)
	if w.odds(2) {
		who()(&w.facts)
		w.facts.rec = record{Phase: idling, Rebooted: w.odds(2), Locked: w.odds(2), Left: w.odds(8)}
	}
	w.history = []stamped{{wall0.Add(w.facts.rec.Standing), w.facts.rec.Status}}
}

func (w *world) moment() time.Duration {
	if w.odds(3) {
		return 0
	}
	return w.facts.now - time.Duration(w.Int64N(int64(30*time.Minute)))
}

// change is what may happen between two steps.
func (w *world) change() {
	f := &w.facts
	pauses := []time.Duration{0, time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second, time.Minute, 5 * time.Hour}
	f.now += pauses[w.IntN(len(pauses))]
	if w.odds(4) {
		w.ask()
	}
	if w.odds(10) {
		f.forced = nil
		if w.odds(2) {
			force(types.DrainStatus(w.IntN(10)), types.DrainRequester(w.IntN(4)))(f)
		}
	}
	f.held, f.tieBreaker, f.notReceived = w.odds(6), w.odds(20), w.odds(10)
	f.synced, f.known, f.up = !w.odds(10), !w.odds(10), !w.odds(6)
	f.silentSince, f.deadSince, f.missing, f.alone = 0, 0, 0, 0
	if w.odds(6) {
		f.silentSince, f.deadSince = w.moment(), w.moment()
	}
	if !f.known && w.odds(2) {
		f.missing = w.moment()
	}
	if w.odds(6) {
		f.alone, f.others = w.moment(), w.IntN(3)
	}
	w.cluster()
	f.timeout = []time.Duration{24 * time.Hour, math.MaxInt64, time.Hour, 0, 3}[w.IntN(5)]
	f.hour, f.unusedAfter, f.inUse = []time.Duration{time.Hour, 0}[w.IntN(2)], []time.Duration{24 * time.Hour, time.Hour, 0}[w.IntN(3)], ""
	if w.odds(4) {
		f.inUse = "the device reboots"
	}
	f.skip = []time.Duration{5 * time.Minute, 0}[w.IntN(2)]
	f.window = []time.Duration{0, 0, 2 * time.Minute}[w.IntN(3)]
}

// ask is what the requesters may do.
func (w *world) ask() {
	f := &w.facts
	name := requesters[w.IntN(len(requesters))]
	f.requests = map[string]request{}
	for _, other := range requesters {
		if r, ok := f.rec.Requests[other]; ok && other != name {
			f.requests[other] = request{NodeDrainRequest: r, active: w.odds(2)}
		}
	}
	switch w.IntN(3) {
	case 0:
		f.requests[name] = request{active: true, NodeDrainRequest: types.NodeDrainRequest{RequestedAt: wall0.Add(time.Duration(w.IntN(5)))}}
	case 1:
		if r, ok := f.rec.Requests[name]; ok && name != byLeave {
			f.requests[name] = request{NodeDrainRequest: r}
		}
	}
}

// cluster is what the cluster may show.
func (w *world) cluster() {
	f := &w.facts
	f.node.Unschedulable, f.node.CordonedBy = w.odds(2), nil
	if w.odds(2) {
		f.node.CordonedBy = &types.Cordon{By: "zedkube"}
	}
	f.node.CordonKept, f.node.TaintedAt = w.odds(8), wall0.Add(time.Duration(w.IntN(3)-1)*time.Hour)
	f.looked = w.moment()
	f.cordonAgain, f.list, f.entered, f.came = w.moment(), w.moment(), w.odds(2), nil
	if w.odds(4) {
		f.came = []string{"shop/new"}
	}
	f.lockLease.Holder, f.waiting = []string{"", "n1", "n2"}[w.IntN(3)], w.moment()
	f.gates, f.holds, f.check = "", "", checked{at: w.moment(), pods: []string{"shop/till"}[:w.IntN(2)]}
	if w.odds(4) {
		f.gates, f.holds, f.check.quorum = "gates", "holds", "no quorum"
	}
	f.retry = map[verb]time.Duration{}
	for v := range event {
		if w.odds(4) {
			f.retry[v] = f.now + time.Duration(w.Int64N(int64(time.Minute)))
		}
	}
	f.pods = nil
	for i := range w.IntN(4) {
		f.pods = append(f.pods, pod(fmt.Sprint(i), func(e *podEviction) {
			e.seen, e.gone, e.accepted, e.next = w.odds(2), w.odds(2), w.moment(), w.moment()
			if w.odds(3) {
				e.pod.Deleted = wall0
			}
		}))
	}
}

// obey carries the action out, perhaps, and perhaps the process dies after.
func (w *world) obey(a action) {
	f := &w.facts
	w.history = append(w.history, stamped{wall0.Add(f.now), a.rec.Status})
	f.rec = a.rec
	if a.consume {
		f.forced = nil
	}
	switch {
	case w.odds(2):
	case a.verb == cordon, a.verb == cordonAfterDeadAPI:
		f.rec.Cordoned, f.rec.Dead = max(f.rec.Cordoned, f.now), false
		f.rec.Losses += w.IntN(2)
	case a.verb == release:
		f.rec.Locked = false
	case a.verb == deleteNode:
		f.rec.Phase, f.rec.Left, f.rec.Locked = idling, true, false
	}
	if a.verb == cordon && w.odds(3) {
		f.rec.Refusals += w.IntN(11)
	}
	if w.odds(10) {
		f.rec = recall(types.NodeDrainJournal(f.rec), f.now)
	}
}

// promises checks what has to be true of every single decision.
func (w *world) promises(a action) error {
	f, draining := w.facts, drains(w.facts.rec.Phase)
	gives := slices.Contains([]verb{uncordon, unkeep, uncordonLegacy, release}, a.verb)
	idly := a.verb == uncordon && a.rec.Phase == inGates && f.gates != "" && !f.entered && f.lockLease.Holder != "n1"
	switch {
	case !slices.Contains(phases, a.rec.Phase):
		return fmt.Errorf("phase %q", a.rec.Phase)
	case a.verb == checkLeave && f.living() && (!f.known || !f.node.Deleted.IsZero()) && f.requests[byLeave].active:
	case a.verb != none && (!f.living() || !f.known):
		return fmt.Errorf("%s without an API or a node", verbNames[a.verb])
	case a.verb != none && a.verb != evict && !f.due(a.verb): // each pod has a pause of its own
		return fmt.Errorf("%s within its pause", verbNames[a.verb])
	case a.verb == uncordon && (!f.ourCordon() || f.tieBreaker || f.node.CordonKept):
		return fmt.Errorf("a cordon is undone that is not ours")
	case gives && (drains(a.rec.Phase) && !idly || a.rec.Phase == completed):
		return fmt.Errorf("%s in %s", verbNames[a.verb], a.rec.Phase)
	case len(a.evict) > 0 && (f.rec.Phase != emptying || !f.cordoned() || a.verb != evict):
		return fmt.Errorf("evictions from a node that takes pods")
	case a.verb == cordon && f.rec.Phase == inGates && !f.entered:
		return fmt.Errorf("a cordon before the gates")
	case a.verb == deleteNode && (f.rec.Phase != completed || !f.requests[byLeave].active):
		return fmt.Errorf("the Node is deleted in %s", f.rec.Phase)
	case a.consume && (f.forced == nil || f.forced.Status != complete9):
		return fmt.Errorf("a force file is removed that does not say 9")
	case draining && !drains(a.rec.Phase) && !a.stop:
		return fmt.Errorf("the drain is over and its calls go on")
	case draining && f.stopped() && drains(a.rec.Phase):
		return fmt.Errorf("a drain goes on that nobody wants")
	case f.stopped() && !a.consume && underWay(a.rec.Status.Status):
		return fmt.Errorf("%v after the withdrawal", a.rec.Status.Status)
	case !f.device() && a.rec.Status.Status == complete9:
		return fmt.Errorf("COMPLETE for nobody")
	case f.forced != nil && f.forced.Status != complete9 && a.published.Status != f.forced.Status:
		return fmt.Errorf("%v is published, not what the force file says", a.published.Status)
	case strings.HasSuffix(strings.TrimSpace(a.rec.Reason), ":"), ends(a.rec.Phase) && a.rec.Reason == "" && draining:
		return fmt.Errorf("the drain ends without a reason: %q", a.rec.Reason)
	case f.timeout == math.MaxInt64 && draining && strings.HasPrefix(a.rec.Reason, "after "):
		return fmt.Errorf("a deadline in 292 years has passed: %q", a.rec.Reason)
	case a.again < 0:
		return fmt.Errorf("a step %s ago", -a.again)
	}
	return nil
}
