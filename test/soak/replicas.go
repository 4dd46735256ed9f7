//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/history"
	"github.com/zedkube/zedkube/types"
)

// lastWhole is what is counted of it beside the rules.
const lastWhole = "a drain waits while it has the last whole replica"

// losses are ways in which the replica of a volume on another node ceases to be whole, and is whole again.
var losses = []struct {
	name     string
	attached bool // the volume is, to a third node
	lose     func(ctx context.Context, c *devcluster.Cluster, volume, replica string) error
	regain   func(ctx context.Context, c *devcluster.Cluster, volume, replica string) error
}{
	{"failed, detached", false, fails(true), fails(false)},
	{"in error", true, mode("ERR", 0), mode("RW", 0)},
	{"being rebuilt", true, mode("WO", 40), mode("RW", 0)},
	{"not known to the engine", true, mode("", 0), mode("RW", 0)},
}

func fails(is bool) func(context.Context, *devcluster.Cluster, string, string) error {
	return func(ctx context.Context, c *devcluster.Cluster, _, replica string) error {
		return c.FailReplica(ctx, replica, is)
	}
}

func mode(is string, percent int) func(context.Context, *devcluster.Cluster, string, string) error {
	return func(ctx context.Context, c *devcluster.Cluster, volume, replica string) error {
		return c.SetReplicaMode(ctx, volume, replica, is, percent)
	}
}

// replicas lets devices drain, one at a time, that have the last whole replica of a volume, until
// another one is whole again.
func replicas(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Cluster.InstallLonghorn(ctx); err != nil {
		return err
	}
	x, rng := &drainRun{Stage: s, bare: true}, r.Rand(100)
	var all []*drainer
	for i, m := range s.Fleet.Members {
		if err := x.prepare(ctx, i, m); err != nil {
			return err
		}
		all = append(all, &drainer{drainRun: x, Member: m, i: i, rng: r.Rand(uint64(i))})
	}
	for round := range len(losses) * r.many() {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, d := range all {
			if err := d.idle(ctx); err != nil {
				return err
			}
		}
		if err := all[0].hasTheLast(ctx, round, all[1].Name, all[2].Name, rng); err != nil {
			return fmt.Errorf("%s: %s: %w", all[0].Name, losses[round%len(losses)].name, err)
		}
	}
	return s.Settle(ctx)
}

// hasTheLast drains a device that has a volume in common with another one, where that one's replica is lost for some time. A third
// one may have it attached.
func (d *drainer) hasTheLast(ctx context.Context, round int, other, third string, rng *rand.Rand) error {
	loss, c := losses[round%len(losses)], d.Cluster
	volume := fmt.Sprintf("last-%d", round)
	lost, state := volume+"-r-2", "attached"
	if !loss.attached {
		third, state = "", "detached"
	}
	if err := c.CreateVolume(ctx, volume, third, d.Name, other); err != nil {
		return err
	}
	if err := c.WaitVolume(ctx, volume, state); err != nil {
		return err
	}
	d.Faulted("replica " + loss.name)
	if err := loss.lose(ctx, c, volume, lost); err != nil {
		return err
	}
	by, asked := d.requester(), time.Since(d.History.Began())
	if err := d.Asks(d.Member, by); err != nil {
		return err
	}
	if err := d.until(ctx, func() string {
		if is, _ := d.Watch.Progress.Get(types.Global); !strings.Contains(is.Reason, volume) {
			return fmt.Sprintf("the drain does not wait for %s: %s", volume, is.Reason)
		}
		return ""
	}); err != nil {
		return err
	}
	d.Checked(lastWhole, 1)
	wait(ctx, soon(rng, 4*time.Second))
	if rng.IntN(2) == 0 {
		if err := d.Kill(d.Member, d.phase("with the last replica")); err != nil {
			return err
		}
		wait(ctx, soon(rng, 4*time.Second))
	}
	if err := loss.regain(ctx, c, volume, lost); err != nil {
		return err
	}
	if err := d.says(ctx, types.DrainComplete); err != nil {
		return err
	}
	if err := d.isLookedAt(ctx, asked); err != nil {
		return err
	}
	if err := d.TakesBack(d.Member, by); err != nil {
		return err
	}
	return c.MoveVolume(ctx, volume, "") // an engine keeps its node from being drained
}

// isLookedAt waits until it is recorded what there was at the API server after COMPLETE.
func (d *drainer) isLookedAt(ctx context.Context, since time.Duration) error {
	return d.until(ctx, func() string {
		if slices.ContainsFunc(d.History.Events(), func(e history.Event) bool {
			return e.Kind == history.Looked && e.Node == d.Name && e.At > since
		}) {
			return ""
		}
		return "it was not looked at"
	})
}
