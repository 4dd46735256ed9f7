package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/types"
)

// verb is a kind of call to Kubernetes.
type verb int

const (
	none verb = iota
	cordon
	uncordon
	list
	evict
)

const (
	// callTimeout bounds a whole call, which for evict is many requests.
	callTimeout = 30 * time.Second
	parallel    = 8 // evictions at a time
	// cordonEvery is the pause between refused cordons.
	cordonEvery = 5 * time.Second
	minBackoff  = time.Second
	maxBackoff  = 10 * time.Second
	maxRefused  = 5 * time.Second // the back-off of one pod's eviction
)

// call is the one call under way.
type call struct {
	n      int
	verb   verb
	evict  []types.Pod
	known  map[string]bool // UIDs of the pods there were before it began
	cancel context.CancelFunc
	cut    bool // cancelled: whatever it brings belongs to a drain that is over
}

// outcome is what came of a call.
type outcome struct {
	n       int
	err     error
	pods    []types.Pod // of list
	results []error     // of evict, one per pod
}

func (c *Component) runningVerb() verb {
	if c.running == nil {
		return none
	}
	return c.running.verb
}

// cancel cuts the call under way short; its outcome still arrives.
func (c *Component) cancel() {
	if c.running != nil {
		c.running.cut = true
		c.running.cancel()
	}
}

// begin starts the call beside the steps, under a context that outlives this one.
func (c *Component) begin(ctx context.Context, f facts, a action) {
	last, _ := c.mail.Get(types.Global)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	c.running = &call{n: last.n + 1, verb: a.verb, evict: a.evict, known: map[string]bool{}, cancel: cancel}
	for _, p := range c.NodePods.All() {
		c.running.known[p.UID] = true
	}
	if a.verb == cordon && f.status.Status != types.DrainStarting {
		c.Log.WithField("node", f.node.Name).Warn("cordonNode: the node takes pods in the middle of its drain, it is cordoned again")
	}
	n, node := c.running.n, f.node.Name
	by := types.Cordon{By: "zedkube", Reason: "node drain for " + a.status.RequestedBy.String(), Since: f.now}
	c.calls.Go(func() {
		defer cancel()
		out := outcome{n: n}
		switch a.verb {
		case cordon:
			out.err = wrap("cordon", node, c.Kube.Cordon(ctx, node, by))
		case uncordon:
			out.err = wrap("uncordon", node, c.Kube.Uncordon(ctx, node))
		case list:
			out.pods, out.err = c.Kube.PodsToEvict(ctx, node)
			out.err = wrap("list the pods to evict of", node, out.err)
		case evict:
			out.results = c.evictAll(ctx, a.evict)
		}
		_ = c.mail.Publish(types.Global, out)
	})
}

func wrap(act, node string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s node %s: %w", act, node, err)
}

// evictAll evicts in parallel within a bound; each pod has a result of its own.
func (c *Component) evictAll(ctx context.Context, pods []types.Pod) []error {
	results := make([]error, len(pods))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, p := range pods {
		g.Go(func() error {
			if results[i] = ctx.Err(); results[i] == nil {
				results[i] = c.Kube.Evict(ctx, p)
			}
			return nil
		})
	}
	_ = g.Wait()
	return results
}

// collect takes in the outcome of the call that has ended, if one has.
func (c *Component) collect() {
	out, ok := c.mail.Get(types.Global)
	if c.running == nil || !ok || out.n != c.running.n {
		return
	}
	done := c.running
	c.running = nil
	if done.cut {
		return
	}
	c.lastErr = out.err
	now := time.Now()
	c.pause(now, done.verb, out.err)
	switch {
	case done.verb == evict:
		c.takeEvictions(now, done.evict, out.results)
	case out.err != nil:
	case done.verb == cordon:
		// What was listed before may have grown since.
		c.mem.cordonedAt, c.mem.cordonSeen, c.mem.refusals, c.mem.list = now, false, 0, time.Time{}
	case done.verb == uncordon:
		c.mem.newBoot = false
		c.Log.Info("cordonNode: the node takes pods again")
	case done.verb == list:
		c.takeList(now, out.pods, done.known)
	}
}

// pause says when a verb may be called again: later and later while it fails.
func (c *Component) pause(now time.Time, v verb, err error) {
	m := &c.mem
	wait := minBackoff
	switch {
	case err == nil:
		delete(m.backoff, v)
	case v == cordon && errors.Is(err, types.ErrRefused):
		m.refusals++
		wait = cordonEvery
	default:
		wait = min(max(2*m.backoff[v], minBackoff), maxBackoff)
		m.backoff[v] = wait
	}
	m.retry[v] = now.Add(wait)
}

// takeList replaces the set of pods to evict by a fresh one and keeps what is
// known of those that stay in it.
// known are the pods there were before the list was asked for: one that came
// later may not be in it.
func (c *Component) takeList(now time.Time, pods []types.Pod, known map[string]bool) {
	m := &c.mem
	before := map[string]evictee{}
	for _, e := range m.pods {
		before[e.pod.UID] = e
	}
	m.list, m.known, m.pods = now, known, nil
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
		e.backoff = min(max(2*e.backoff, minBackoff), maxRefused)
		e.next = now.Add(e.backoff)
	}
	c.lastErr = bad
}
