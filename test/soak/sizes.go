//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// sizes lets two, three or five devices drain, one of which may be a worker and
// one the tie-breaker, while their agents are killed and power is cut.
func sizes(ctx context.Context, r *Run) (err error) {
	rng := r.Rand(100)
	nodes := []int{2, 3, 5}[rng.IntN(3)]
	s, err := r.Stage(ctx, devcluster.Options{Nodes: nodes}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	masters := s.Fleet.IDs()
	if nodes > 2 {
		masters, s.TieBreaker = masters[:nodes-rng.IntN(2)], s.Cluster.Nodes[1].Name
	}
	s.told("soak", "soak", fmt.Sprintf("%d nodes, %d of them masters", nodes, len(masters)))
	err = s.Fleet.ChangeCluster(func(c *types.EdgeNodeClusterConfig) {
		c.MasterNodeIDs = masters
		if nodes > 2 {
			c.TieBreakerNodeID.UUID = masters[1]
		}
	})
	if err != nil {
		return err
	}
	if rng.IntN(2) == 0 {
		return (&drainRun{Stage: s}).disturbed(ctx, r.many(), everyStory, func(ctx context.Context, d *drainer, rng *rand.Rand) error {
			return d.Kill(d.Member, d.moment(ctx, rng))
		})
	}
	reboots := func(d *drainer) []func(context.Context) error { return []func(context.Context) error{d.reboots} }
	return (&drainRun{Stage: s}).disturbed(ctx, r.many(), reboots, func(_ context.Context, d *drainer, _ *rand.Rand) error {
		is, _ := d.Watch.Drain.Get(types.Global)
		d.Faulted("power cut, " + is.Status.String())
		d.CutPower()
		return nil
	})
}
