package membership

import (
	"context"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	stampTimeout = 10 * time.Second
	minBackoff   = time.Second
	maxBackoff   = time.Minute
)

// call is the stamp under way.
type call struct {
	n      int
	stamp  types.AgentStamp
	began  time.Duration
	cancel context.CancelFunc
}

// outcome is what came of it.
type outcome struct {
	n   int
	err error
}

// begin stamps beside the steps, under a context that outlives this one: a
// hanging API server must not keep the configuration from being heard.
func (c *Component) begin(ctx context.Context, f facts, stamp types.AgentStamp) {
	last, _ := c.results.Get(types.Global)
	ctx = types.Because(ctx, "CONTROLLER", "the list of masters is published to the other nodes")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stampTimeout)
	c.running = &call{n: last.n + 1, stamp: stamp, began: f.uptime, cancel: cancel}
	n, node := c.running.n, f.node.Name
	c.calls.Go(func() {
		defer cancel()
		_ = c.results.Publish(types.Global, outcome{n: n, err: c.Kube.Stamp(ctx, node, stamp)})
	})
}

// collect takes in the outcome of the stamp that has ended, if one has.
func (c *Component) collect() {
	out, ok := c.results.Get(types.Global)
	if c.running == nil || !ok || out.n != c.running.n {
		return
	}
	m, done := &c.mem, c.running
	c.running, c.lastErr = nil, out.err
	if out.err != nil {
		m.backoff = min(max(2*m.backoff, minBackoff), maxBackoff)
		m.retry = c.Uptime() + m.backoff
		return
	}
	m.backoff, m.sent, m.sentAt = 0, done.stamp, span{holds: true, began: done.began}
}

// cancel cuts the stamp under way short.
func (c *Component) cancel() {
	if c.running != nil {
		c.running.cancel()
	}
}
