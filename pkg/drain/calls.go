package drain

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	retryAfter  = time.Second
	minBackoff  = time.Second
	maxBackoff  = 5 * time.Second
)

// call is the one call under way.
type call struct {
	n      int
	verb   verb
	evict  []types.Pod
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
	c.running = &call{n: last.n + 1, verb: a.verb, evict: a.evict, cancel: cancel}
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
	now, m := time.Now(), &c.mem
	switch done.verb {
	case cordon:
		switch {
		case out.err == nil:
			m.cordoned = true
		case transport(out.err):
			m.retry[cordon] = now.Add(retryAfter)
		default:
			m.refusals++
			m.retry[cordon] = now.Add(cordonEvery)
		}
	case uncordon:
		m.retry[uncordon] = now.Add(retryAfter)
		if out.err == nil {
			m.newBoot = false
			c.Log.Info("cordonNode: the node takes pods again")
		}
	case list:
		m.retry[list] = now.Add(retryAfter)
		if out.err == nil {
			c.takeList(now, out.pods)
		}
	case evict:
		c.takeEvictions(now, done.evict, out.results)
	}
}

// transport reports that no API server said no: it was not reached, or it did
// not answer in time.
func transport(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) || errors.Is(err, types.ErrNoAPI) || errors.Is(err, context.DeadlineExceeded)
}
