//go:build linux

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/history"
	"github.com/zedkube/zedkube/types"
)

// silences lets three devices drain while their API servers refuse, hang, are
// slow, or let watches stall or expire, in every state of a drain.
func silences(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return (&drainRun{Stage: s}).disturbed(ctx, r.many(), everyStory, func(ctx context.Context, d *drainer, rng *rand.Rand) error {
		// So that every state is met, it is waited for, but not for ever.
		state := underWay[rng.IntN(len(underWay))]
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && ctx.Err() == nil; wait(ctx, 5*time.Millisecond) {
			if is, _ := d.Watch.Drain.Get(types.Global); is.Status == state {
				break
			}
		}
		is, _ := d.Watch.Drain.Get(types.Global)
		if err := d.Fault(d.i, quiet[rng.IntN(len(quiet))], is.Status.String()); err != nil {
			return err
		}
		if rng.IntN(2) == 0 {
			d.Cluster.CutWatches(d.i)
		}
		wait(ctx, soon(rng, 15*time.Second))
		return d.Heal(d.i)
	})
}

// underWay are the states in which a drain can be met.
var underWay = []types.DrainStatus{
	types.DrainRequested, types.DrainStarting, types.DrainCordoned, types.DrainRetrying, types.DrainComplete, types.DrainNotRequested,
}

// quiet are faults under which an agent hears nothing new.
var quiet = []devcluster.Fault{
	devcluster.Refused, devcluster.Hung, devcluster.Expired, devcluster.Stalled, devcluster.Slow(6 * time.Second),
	"slow=20s,only=watch", "503,only=watch", "409,only=patch+update+create", "429,only=create", "500,only=patch", "429,only=get+watch", "reset=64,only=get",
}

// restores lets three devices drain while etcd is set back to what it held
// before: later writes are gone, and resource versions begin again there.
func restores(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var one sync.Mutex // restores at a time
	var kept bool
	// No cordon of somebody else: etcd would forget that, too.
	stories := func(d *drainer) []func(context.Context) error {
		return []func(context.Context) error{d.reboots, d.withdraws, d.asksTwice}
	}
	// Nor volumes: the controller manager would know an attachment that etcd has forgotten.
	return (&drainRun{Stage: s, bare: true}).disturbed(ctx, r.many(), stories, func(ctx context.Context, d *drainer, rng *rand.Rand) error {
		if !one.TryLock() {
			return nil
		}
		defer one.Unlock()
		bounded, cancel := context.WithTimeout(ctx, endless)
		defer cancel()
		is, _ := d.Watch.Drain.Get(types.Global)
		d.Faulted("etcd restarts, " + is.Status.String())
		if err := d.Cluster.KeepEtcd(bounded); err != nil || !kept && rng.IntN(2) == 0 {
			return err
		}
		kept = true
		wait(ctx, soon(rng, 3*time.Second))
		d.Faulted("etcd restored, " + is.Status.String())
		d.History.Add(history.Event{Kind: history.Restored})
		return d.Cluster.RestoreEtcd(bounded)
	})
}
