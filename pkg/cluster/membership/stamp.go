package membership

import (
	"context"
	"time"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/types"
)

const (
	stampTimeout = 10 * time.Second
	minBackoff   = time.Second
	maxBackoff   = time.Minute
)

// call is the stamp under way.
type call struct {
	stamp types.AgentStamp
	began time.Duration
}

// begin stamps beside the steps, under a context that outlives this one: a
// hanging API server must not keep the configuration from being heard.
func (c *Component) begin(ctx context.Context, f facts, stamp types.AgentStamp) {
	ctx = types.Because(ctx, "CONTROLLER", "the list of masters is published to the other nodes")
	c.running = &call{stamp: stamp, began: f.uptime}
	c.stamping.Begin(ctx, stampTimeout, func(ctx context.Context) error { return c.Kube.Stamp(ctx, f.node.Name, stamp) })
}

// collect takes in the outcome of the stamp that has ended, if one has.
func (c *Component) collect() {
	err, ok := c.stamping.Take()
	if !ok {
		return
	}
	m, done := &c.mem, c.running
	c.running, c.lastErr = nil, err
	if err != nil {
		m.backoff = min(max(2*m.backoff, minBackoff), maxBackoff)
		m.retry = c.Uptime() + m.backoff
		return
	}
	m.backoff, m.sent, m.sentAt = 0, done.stamp, loop.Span{Holds: true, Began: done.began}
}
