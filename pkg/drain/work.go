package drain

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// work is the next call of a drain under way, or what it waits for.
func work(f facts, a *action) {
	starting := f.status.Status == types.DrainStarting
	switch {
	case !f.living() || !f.known:
		a.waits = f.why
	case (starting || !f.cordoned()) && f.due(cordon):
		a.verb = cordon
	case starting || !f.cordoned():
		a.again = f.retry[cordon].Sub(f.now)
	default:
		empties(f, a)
	}
}

// empties lists and evicts the pods of a cordoned node.
func empties(f facts, a *action) {
	if f.status.Status == types.DrainCordoned {
		a.again = cordonedFor - f.now.Sub(f.since)
	}
	if f.due(list) && listDue(f) {
		a.verb = list
		return
	}
	switch {
	case !f.alone.IsZero():
		// An evicted pod would only be down sooner.
		a.waits = "no other node is Ready and takes pods"
		return
	case f.held && empty(f):
		a.waits = "the fault marker holds COMPLETE back"
		return
	}
	pods, next := evictable(f)
	if len(pods) > 0 {
		a.verb, a.evict = evict, pods
	} else if a.again == 0 || next > 0 && next < a.again {
		a.again = next
	}
}

// listDue says when the last fresh list is not worth its name any more. The
// node is empty when a fresh list says so, not when the table does.
func listDue(f facts) bool {
	age := f.now.Sub(f.list)
	switch {
	case f.list.IsZero():
		return true
	case left(f.pods) == 0:
		return !empty(f) && age >= time.Second
	case f.unknown || !f.synced:
		return age >= relistEvery
	}
	return age >= refreshEvery
}

// empty reports that a list not yet old had no pod to evict, and that no pod
// has come since.
func empty(f facts) bool {
	return !f.list.IsZero() && !f.unknown && len(f.pods) == 0 && f.now.Sub(f.list) < relistEvery
}

// evictable returns the pods whose eviction may be tried now, and how long it
// is until the next one's may. What is on its way out is left alone.
func evictable(f facts) ([]types.Pod, time.Duration) {
	var pods []types.Pod
	var next time.Duration
	for _, e := range f.pods {
		if e.gone || e.terminating {
			continue
		}
		at := e.next
		if !e.accepted.IsZero() {
			at = later(at, e.accepted.Add(evictAgain))
		}
		if wait := at.Sub(f.now); wait <= 0 {
			pods = append(pods, e.pod)
		} else if next == 0 || wait < next {
			next = wait
		}
	}
	return pods, next
}

// left counts the pods that are still there.
func left(pods []evictee) int {
	n := 0
	for _, e := range pods {
		if !e.gone {
			n++
		}
	}
	return n
}
