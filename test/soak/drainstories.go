//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

// endless is how long anything may take before it counts as never: two other
// nodes drain first, one after the other, and are killed meanwhile.
const endless = 4 * time.Minute

// until waits until missing says nothing any more.
func (d *drainer) until(ctx context.Context, missing func() string) error {
	deadline := time.Now().Add(endless)
	for {
		m := missing()
		switch {
		case m == "":
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("after %s: %s", endless, m)
		}
		wait(ctx, 20*time.Millisecond)
	}
}

// says waits for one of the states.
func (d *drainer) says(ctx context.Context, states ...types.DrainStatus) error {
	return d.until(ctx, func() string {
		is, _ := d.Watch.Drain.Get(types.Global)
		for _, s := range states {
			if is.Status == s {
				return ""
			}
		}
		return fmt.Sprintf("the drain is %s, not %v", is.Status, states)
	})
}

// hasSaid waits until a state has been said since the request, and may be past.
func (d *drainer) hasSaid(ctx context.Context, s types.DrainStatus) error {
	return d.until(ctx, func() string {
		if d.said(d.Name, s) {
			return ""
		}
		is, _ := d.Watch.Drain.Get(types.Global)
		return fmt.Sprintf("the drain is %s and was not %s", is.Status, s)
	})
}

// isBack waits until the node has no cordon of ours.
func (d *drainer) isBack(ctx context.Context) error {
	return d.until(ctx, func() string {
		if cordon := d.cordon(d.Name); cordon != "" {
			return "cordoned: " + cordon
		}
		return ""
	})
}

// idle waits until no drain is left to see and the pods are back.
func (d *drainer) idle(ctx context.Context) error {
	if err := d.says(ctx, types.DrainNotRequested, types.DrainFailedDrain); err != nil {
		return err
	}
	if err := d.isBack(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, endless)
	defer cancel()
	_, err := d.Cluster.WaitRunning(bounded, "app=only-"+d.Name, podsEach)
	return err
}

// requester is zedagent or baseosmgr, by chance.
func (d *drainer) requester() types.DrainRequester {
	return []types.DrainRequester{types.DrainRequesterDeviceOp, types.DrainRequesterUpdate}[d.rng.IntN(2)]
}

// reboots is what a reboot command does: request, drain, COMPLETE, reboot. The
// killing goes on until the node has given back what it holds.
func (d *drainer) reboots(ctx context.Context) error {
	if err := d.until(ctx, func() string {
		// While it takes another drain to go on, it waits for that, and asks for none.
		if is := d.HearsDrain().Status; is != types.DrainNotRequested && is != types.DrainFailedDrain && is != types.DrainFailedCordon {
			return "zedagent hears that the drain is " + is.String()
		}
		return ""
	}); err != nil {
		return err
	}
	boots := d.Boots()
	d.reboot.Store(d.Name, true)
	defer d.reboot.Delete(d.Name)
	d.Reboots(d.Member)
	if err := d.until(ctx, func() string {
		if d.Boots() == boots {
			is, _ := d.Watch.Drain.Get(types.Global)
			return "no reboot, the drain is " + is.Status.String()
		}
		return ""
	}); err != nil {
		return err
	}
	d.reboot.Delete(d.Name)
	if err := d.says(ctx, types.DrainNotRequested); err != nil {
		return err
	}
	return d.isBack(ctx)
}

// withdraws takes a request back, at any moment or when the drain is done.
func (d *drainer) withdraws(ctx context.Context) error {
	by := d.requester()
	if err := d.Asks(d.Member, by); err != nil {
		return err
	}
	return d.endsSomehow(ctx, by)
}

// endsSomehow lets a drain go on for some time or to its end, and takes the
// last request back.
func (d *drainer) endsSomehow(ctx context.Context, by types.DrainRequester) error {
	if d.rng.IntN(2) == 0 {
		if err := d.says(ctx, types.DrainComplete); err != nil {
			return err
		}
	} else {
		wait(ctx, soon(d.rng, 6*time.Second))
	}
	if err := d.TakesBack(d.Member, by); err != nil {
		return err
	}
	ends := []types.DrainStatus{types.DrainNotRequested}
	if is, _ := d.Watch.Drain.Get(types.Global); is.Status == types.DrainFailedDrain {
		ends = append(ends, is.Status) // of a drain before: killed in time, the agent never read this request
	}
	if err := d.says(ctx, ends...); err != nil {
		return err
	}
	return d.isBack(ctx)
}

// asksTwice has two requesters, who come and go in any order.
func (d *drainer) asksTwice(ctx context.Context) error {
	first := d.requester()
	second := types.DrainRequesterDeviceOp + types.DrainRequesterUpdate - first
	if err := d.Asks(d.Member, first); err != nil {
		return err
	}
	wait(ctx, soon(d.rng, 3*time.Second))
	if err := d.Asks(d.Member, second); err != nil {
		return err
	}
	wait(ctx, soon(d.rng, 3*time.Second))
	if err := d.TakesBack(d.Member, first); err != nil {
		return err
	}
	return d.endsSomehow(ctx, second)
}

// fails has a budget that never opens, and tries once more where it may.
func (d *drainer) fails(ctx context.Context) error {
	app, by := "only-"+d.Name, d.requester()
	if err := d.Cluster.SetBudget(ctx, app, podsEach); err != nil {
		return err
	}
	if err := d.bound(shortDrain); err != nil {
		return err
	}
	if err := d.Asks(d.Member, by); err != nil {
		return err
	}
	if err := d.hasSaid(ctx, types.DrainFailedDrain); err != nil {
		return err
	}
	// At once, and while the request stands.
	if err := d.isBack(ctx); err != nil {
		return err
	}
	if err := d.bound(longDrain); err != nil {
		return err
	}
	if err := d.Cluster.DropBudget(ctx, app); err != nil {
		return err
	}
	if d.rng.IntN(2) == 0 {
		return d.TakesBack(d.Member, by)
	}
	if err := d.Asks(d.Member, by); err != nil {
		return err
	}
	if err := d.says(ctx, types.DrainComplete); err != nil {
		return err
	}
	return d.endsSomehow(ctx, by)
}

// bound is a new kubernetes.drain.timeout.
func (d *drainer) bound(hours uint32) error {
	return d.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: d.drainTimeout(hours)})
}

// isCordonedBySomebody drains a node that someone else has cordoned. There is
// one such node at a time, so that pods have somewhere to go.
func (d *drainer) isCordonedBySomebody(ctx context.Context) error {
	if !d.foreign.TryLock() {
		return d.withdraws(ctx)
	}
	defer d.foreign.Unlock()
	if err := d.Cordon(ctx, d.Name); err != nil {
		return err
	}
	if err := d.withdraws(ctx); err != nil {
		return err
	}
	return d.Uncordon(ctx, d.Name)
}
