package drain

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// work is the next call of a drain under way, and when to look again.
func work(f facts) (verb, []types.Pod, time.Duration) {
	if !f.living() || !f.known {
		return none, nil, 0
	}
	if f.status.Status == types.DrainStarting {
		if f.due(cordon) {
			return cordon, nil, 0
		}
		return none, nil, f.retry[cordon].Sub(f.now)
	}
	again := time.Duration(0)
	if f.status.Status == types.DrainCordoned {
		again = cordonedFor - f.now.Sub(f.since)
	}
	if f.due(list) && listDue(f) {
		return list, nil, again
	}
	pods, next := evictable(f)
	if len(pods) > 0 {
		return evict, pods, again
	}
	if again == 0 || next > 0 && next < again {
		again = next
	}
	return none, nil, again
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

// empty reports that a list not yet old had no pod to evict.
func empty(f facts) bool {
	return !f.list.IsZero() && len(f.pods) == 0 && f.now.Sub(f.list) < relistEvery
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
