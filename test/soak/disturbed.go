//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// disturbance is what goes wrong on a device for some seconds. When it returns
// all is well there again, also after an error.
type disturbance func(ctx context.Context, d *drainer, rng *rand.Rand) error

// disturbed lets every device drain so many times while it is disturbed.
func (r *drainRun) disturbed(ctx context.Context, times int, stories func(*drainer) []func(context.Context) error, disturb disturbance) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all []*drainer
	for i, m := range r.Fleet.Members {
		if m.Name == r.TieBreaker { // nothing may run there, and nobody waits for it
			if err := r.Boot(i); err != nil {
				return err
			}
			continue
		}
		if err := r.prepare(ctx, i, m); err != nil {
			return err
		}
		all = append(all, &drainer{drainRun: r, Member: m, i: i, rng: r.Rand(uint64(i))})
	}
	var running sync.WaitGroup
	for _, d := range all { // not before all are prepared, which no disturbance may prevent
		running.Go(func() {
			for range times {
				if err := d.oneStory(ctx, stories(d), disturb); err != nil {
					cancel(fmt.Errorf("%s: %w", d.Name, err))
					return
				}
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.Settle(ctx)
}

// oneStory plays one story to its end, with one to three disturbances.
func (d *drainer) oneStory(ctx context.Context, stories []func(context.Context) error, disturb disturbance) error {
	if err := d.idle(ctx); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(d.rng.Uint64(), 0))
	goesOn, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	var disturbing sync.WaitGroup
	disturbing.Go(func() {
		for range 1 + rng.IntN(3) {
			wait(goesOn, soon(rng, 4*time.Second))
			if goesOn.Err() != nil || failed != nil {
				return
			}
			failed = disturb(ctx, d, rng)
		}
	})
	err := stories[d.rng.IntN(len(stories))](ctx)
	stop()
	disturbing.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return d.idle(ctx)
}

// everyStory are the drains of the scene drains that need no budget of time.
func everyStory(d *drainer) []func(context.Context) error {
	return []func(context.Context) error{d.reboots, d.withdraws, d.asksTwice, d.isCordonedBySomebody}
}

// staysUp are those in which the device does not reboot.
func staysUp(d *drainer) []func(context.Context) error {
	return []func(context.Context) error{d.withdraws, d.asksTwice}
}

// many is how many stories each device has in a run.
func (r *Run) many() int {
	if r.Short {
		return 1
	}
	return 5
}
