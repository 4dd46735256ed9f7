package drain

import (
	"errors"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

// takeList replaces the set of pods to evict by a fresh one and keeps what is
// known of those that stay in it; but that one was gone does not count against a
// list that holds it. known are the UIDs of the pods there were
// before the list was asked for: one that came later may not be in it.
func (c *Component) takeList(now time.Time, pods []types.Pod, known map[string]bool) {
	m := &c.mem
	before := map[string]evictee{}
	for _, e := range m.pods {
		before[e.pod.UID] = e
	}
	m.list, m.known, m.pods = now, known, nil
	if len(m.chosen) == 0 && c.rec.total > 0 { // by an earlier process, who knows which
		c.rec.total = max(c.rec.total, len(pods))
		for _, p := range pods {
			m.chosen[p.UID] = true
		}
	}
	for _, p := range pods {
		m.known[p.UID] = true
		e, ok := before[p.UID]
		if !ok {
			e.since = now
			e.next = c.takeChosen(now, p)
			if !m.chosen[p.UID] {
				m.chosen[p.UID] = true
				c.rec.total++
			}
		}
		e.pod, e.seen, e.gone = p, false, false
		m.pods = append(m.pods, e)
	}
}

// takeEvictions notes for each pod whether it goes, or when to try again. A
// budget's refusal is news once per pod and never an error.
func (c *Component) takeEvictions(now time.Time, pods []types.Pod, results []error) {
	index := map[string]int{}
	for i := range c.mem.pods {
		index[c.mem.pods[i].pod.UID] = i
	}
	// Hundreds of pods that wait for a budget are no reason for a storm.
	longest := max(maxRefused, time.Duration(len(c.mem.pods))*100*time.Millisecond)
	var bad error
	for i, p := range pods {
		at, ok := index[p.UID]
		if !ok || errors.Is(results[i], errNoTime) {
			continue
		}
		e := &c.mem.pods[at]
		err := results[i]
		if err == nil {
			e.accepted, e.backoff, e.refusal = now, 0, ""
			c.takeEvicted(p)
			continue
		}
		if errors.Is(err, types.ErrDisruptionBudget) {
			if e.refusal == "" {
				c.Log.WithField("pod", p.Key()).WithError(err).Info("cordonAndDrainNode: eviction waits for a PodDisruptionBudget")
			}
		} else if bad == nil {
			bad = fmt.Errorf("evict pod %s: %w", p.Key(), err)
		}
		e.refusal = err.Error()
		e.backoff = min(max(2*e.backoff, minBackoff), longest)
		e.next = now.Add(e.backoff)
	}
	if bad != nil {
		c.mem.lastErr, c.mem.errVerb = bad, evict
	}
}
