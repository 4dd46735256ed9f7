package witness

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
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

// meaning is what the end of an attempt says about the other device.
//
// To be refused is an answer: only a live kernel, or a firewall in front of it,
// sends that. Silence is silence, and so is "no route to host", which Linux says
// when nobody in the local network answers for the address, or when a router
// cannot deliver.
//
// All other errors are our own: "network is unreachable" is a missing route, so
// most likely an interface of ours that is down, and others are a lack of ports,
// files, or rights. They say nothing of the other device.
func meaning(err error) reply {
	switch {
	case err == nil, errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return answer
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return silence
	}
	return untried
}
