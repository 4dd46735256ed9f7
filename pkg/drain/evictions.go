package drain

import (
	"errors"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

// takeList replaces the set of pods to evict by a fresh one and keeps what is
// known of those that stay in it.
func (c *Component) takeList(now time.Time, pods []types.Pod) {
	m := &c.mem
	before := map[string]evictee{}
	for _, e := range m.pods {
		before[e.pod.UID] = e
	}
	m.list, m.known, m.pods = now, map[string]bool{}, nil
	for _, p := range c.NodePods.All() {
		m.known[p.UID] = true
	}
	for _, p := range pods {
		m.known[p.UID] = true
		e := before[p.UID]
		e.pod = p
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
	var bad error
	for i, p := range pods {
		at, ok := index[p.UID]
		if !ok {
			continue
		}
		e := &c.mem.pods[at]
		switch err := results[i]; {
		case err == nil:
			e.accepted, e.backoff = now, 0
			continue
		case errors.Is(err, types.ErrDisruptionBudget):
			if !e.refused {
				e.refused = true
				c.Log.WithField("pod", p.Key()).WithError(err).Info("cordonAndDrainNode: eviction waits for a PodDisruptionBudget")
			}
		case bad == nil:
			bad = fmt.Errorf("evict pod %s: %w", p.Key(), err)
		}
		e.backoff = min(max(2*e.backoff, minBackoff), maxBackoff)
		e.next = now.Add(e.backoff)
	}
	c.lastErr = bad
}
