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
func (v *victim) until(ctx context.Context, missing func() string) error {
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
func (v *victim) says(ctx context.Context, states ...types.DrainStatus) error {
	return v.until(ctx, func() string {
		is, _ := v.Watch.Drain.Get(types.Global)
		for _, s := range states {
			if is.Status == s {
				return ""
			}
		}
		return fmt.Sprintf("the drain is %s, not %v", is.Status, states)
	})
}

// hasSaid waits until a state has been said since the request, and may be past.
func (v *victim) hasSaid(ctx context.Context, s types.DrainStatus) error {
	return v.until(ctx, func() string {
		if v.said(v.Name, s) {
			return ""
		}
		is, _ := v.Watch.Drain.Get(types.Global)
		return fmt.Sprintf("the drain is %s and was not %s", is.Status, s)
	})
}

// isBack waits until the node has no cordon of ours.
func (v *victim) isBack(ctx context.Context) error {
	return v.until(ctx, func() string {
		if cordon := v.cordon(v.Name); cordon != "" {
			return "cordoned: " + cordon
		}
		return ""
	})
}

// idle waits until no drain is left to see and the pods are back.
func (v *victim) idle(ctx context.Context) error {
	if err := v.says(ctx, types.DrainNotRequested, types.DrainFailedDrain); err != nil {
		return err
	}
	if err := v.isBack(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, endless)
	defer cancel()
	_, err := v.Cluster.WaitRunning(bounded, "app=only-"+v.Name, podsEach)
	return err
}

// requester is zedagent or baseosmgr, by chance.
func (v *victim) requester() types.DrainRequester {
	return []types.DrainRequester{types.DrainRequesterDeviceOp, types.DrainRequesterUpdate}[v.rng.IntN(2)]
}

// reboots is what a reboot command does: request, drain, COMPLETE, reboot. The
// killing goes on until the node has given back what it holds.
func (v *victim) reboots(ctx context.Context) error {
	if err := v.until(ctx, func() string {
		if v.HearsDrain().Status == types.DrainUnknown {
			return "zedagent has not heard of the drain"
		}
		return ""
	}); err != nil {
		return err
	}
	boots := v.Boots()
	v.Reboots(v.Member)
	if err := v.until(ctx, func() string {
		if v.Boots() == boots {
			is, _ := v.Watch.Drain.Get(types.Global)
			return "no reboot, the drain is " + is.Status.String()
		}
		return ""
	}); err != nil {
		return err
	}
	if err := v.says(ctx, types.DrainNotRequested); err != nil {
		return err
	}
	return v.isBack(ctx)
}

// withdraws takes a request back, at any moment or when the drain is done.
func (v *victim) withdraws(ctx context.Context) error {
	by := v.requester()
	if err := v.Asks(v.Member, by); err != nil {
		return err
	}
	return v.endsSomehow(ctx, by)
}

// endsSomehow lets a drain go on for some time or to its end, and takes the
// last request back.
func (v *victim) endsSomehow(ctx context.Context, by types.DrainRequester) error {
	if v.rng.IntN(2) == 0 {
		if err := v.says(ctx, types.DrainComplete); err != nil {
			return err
		}
	} else {
		wait(ctx, soon(v.rng, 6*time.Second))
	}
	if err := v.TakesBack(v.Member, by); err != nil {
		return err
	}
	ends := []types.DrainStatus{types.DrainNotRequested}
	if is, _ := v.Watch.Drain.Get(types.Global); is.Status == types.DrainFailedDrain {
		ends = append(ends, is.Status) // of a drain before: killed in time, the agent never read this request
	}
	if err := v.says(ctx, ends...); err != nil {
		return err
	}
	return v.isBack(ctx)
}

// asksTwice has two requesters, who come and go in any order.
func (v *victim) asksTwice(ctx context.Context) error {
	first := v.requester()
	second := types.DrainRequesterDeviceOp + types.DrainRequesterUpdate - first
	if err := v.Asks(v.Member, first); err != nil {
		return err
	}
	wait(ctx, soon(v.rng, 3*time.Second))
	if err := v.Asks(v.Member, second); err != nil {
		return err
	}
	wait(ctx, soon(v.rng, 3*time.Second))
	if err := v.TakesBack(v.Member, first); err != nil {
		return err
	}
	return v.endsSomehow(ctx, second)
}

// fails has a budget that never opens, and tries once more where it may.
func (v *victim) fails(ctx context.Context) error {
	app, by := "only-"+v.Name, v.requester()
	if err := v.Cluster.SetBudget(ctx, app, podsEach); err != nil {
		return err
	}
	if err := v.bound(shortDrain); err != nil {
		return err
	}
	if err := v.Asks(v.Member, by); err != nil {
		return err
	}
	if err := v.hasSaid(ctx, types.DrainFailedDrain); err != nil {
		return err
	}
	// At once, and while the request stands.
	if err := v.isBack(ctx); err != nil {
		return err
	}
	if err := v.bound(longDrain); err != nil {
		return err
	}
	if err := v.Cluster.DropBudget(ctx, app); err != nil {
		return err
	}
	if v.rng.IntN(2) == 0 {
		return v.TakesBack(v.Member, by)
	}
	if err := v.Asks(v.Member, by); err != nil {
		return err
	}
	if err := v.says(ctx, types.DrainComplete); err != nil {
		return err
	}
	return v.endsSomehow(ctx, by)
}

// bound is a new kubernetes.drain.timeout.
func (v *victim) bound(hours uint32) error {
	return v.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: drainTimeout(hours)})
}

// isCordonedBySomebody drains a node that someone else has cordoned. There is
// one such node at a time, so that pods have somewhere to go.
func (v *victim) isCordonedBySomebody(ctx context.Context) error {
	if !v.foreign.TryLock() {
		return v.withdraws(ctx)
	}
	defer v.foreign.Unlock()
	if err := v.Cordon(ctx, v.Name); err != nil {
		return err
	}
	if err := v.withdraws(ctx); err != nil {
		return err
	}
	return v.Uncordon(ctx, v.Name)
}
