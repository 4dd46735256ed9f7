package witness

import (
	"context"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/reach"
)

const (
	// dialTimeout is a second for a packet that is lost and sent again, and one more
	// for a device that is busy.
	dialTimeout = 2 * time.Second
	// lookTimeout is for both rounds of connections, and a moment to end.
	lookTimeout = 2*dialTimeout + time.Second
)

// dialAll tries the connections of a plan, all at the same time: a plan is short.
func (c *Component) dialAll(ctx context.Context, plan []dial) []dial {
	c.try(ctx, plan, false)
	if !controlled(plan) {
		c.try(ctx, plan, true)
	}
	return plan
}

// try tries those of the plan that are for now, or for later.
func (c *Component) try(ctx context.Context, plan []dial, later bool) {
	var all sync.WaitGroup
	for i := range plan {
		if d := &plan[i]; d.later == later {
			all.Go(func() { c.connect(ctx, d) })
		}
	}
	all.Wait()
}

func (c *Component) connect(ctx context.Context, d *dial) {
	once, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := c.Dial(once, "tcp", d.address)
	if err == nil {
		_ = conn.Close()
	}
	d.reply = meaning(err)
	if d.reply == untried {
		d.why = err.Error()
	}
}

// meaning is reach.Meaning as a reply.
func meaning(err error) reply {
	switch answered, tried := reach.Meaning(err); {
	case answered:
		return answer
	case tried:
		return silence
	}
	return untried
}
