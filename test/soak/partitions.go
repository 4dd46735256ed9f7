//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// partitions lets three hosts with an etcd of their own drain while the cable of
// one is cut: both ways, one way, or again and again.
func partitions(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{Hosts: true, Nodes: 3, Spare: 2}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var one sync.Mutex // a second cut would leave nobody a quorum
	return (&drainRun{Stage: s}).disturbed(ctx, r.many(), staysUp, func(ctx context.Context, d *drainer, rng *rand.Rand) error {
		if !one.TryLock() {
			return nil
		}
		defer one.Unlock()
		cut := cuts[rng.IntN(len(cuts))]
		is, _ := d.Watch.Drain.Get(types.Global)
		d.Faulted(fmt.Sprintf("partition: %s, %s", cut.name, is.Status))
		d.Alone(d.Name, true)
		defer d.Alone(d.Name, false)
		for end := time.Now().Add(soon(rng, unnoticed)); ; {
			err := cut.cut(d.Cluster, d.i)
			wait(ctx, min(time.Until(end), 100*time.Millisecond+soon(rng, cut.long)))
			if err = errors.Join(err, cut.heal(d.Cluster, d.i)); err != nil || !time.Now().Before(end) {
				return err
			}
			wait(ctx, min(time.Until(end), soon(rng, cut.long)))
		}
	})
}

// unnoticed is for how long a kubelet may be cut off before its node is lost. A
// simulated kubelet does not make its pods Ready again after that, as a real one
// does; hosts that are cut off for longer are in test/hosts and test/apps.
const unnoticed = 10 * time.Second

// cuts are what can happen to a cable.
var cuts = []struct {
	name      string
	long      time.Duration // at most, until it is whole for as long
	cut, heal func(*devcluster.Cluster, int) error
}{
	{"both ways", time.Minute, (*devcluster.Cluster).CutNode, (*devcluster.Cluster).HealNode},
	{"flapping", 2 * time.Second, (*devcluster.Cluster).CutNode, (*devcluster.Cluster).HealNode},
	{"it hears only", time.Minute, way((*devcluster.Cluster).CutWay, devcluster.Sending), way((*devcluster.Cluster).HealWay, devcluster.Sending)},
	{"it sends only", time.Minute, way((*devcluster.Cluster).CutWay, devcluster.Hearing), way((*devcluster.Cluster).HealWay, devcluster.Hearing)},
}

func way(do func(*devcluster.Cluster, int, devcluster.Way) error, way devcluster.Way) func(*devcluster.Cluster, int) error {
	return func(c *devcluster.Cluster, i int) error { return do(c, i, way) }
}
