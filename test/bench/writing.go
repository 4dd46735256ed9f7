package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

const (
	// writtenVolumes are written all the time.
	writtenVolumes = 10
	// measuredEvery is how often Longhorn measures each of them.
	measuredEvery = 5 * time.Second
)

// writing has guests write: Longhorn measures the size of each volume anew, each
// at its own moment. It counts what zedagent is told, and how old the file is.
func (b *bench) writing(ctx context.Context) error {
	leader := b.fleet.Reporter()
	if leader == nil {
		return errors.New("writing: no node reports")
	}
	if err := b.makeVolumes(ctx); err != nil {
		return err
	}
	if err := b.sized(ctx, leader, 0, 1); err != nil { // all of them are reported
		return err
	}
	if err := pause(ctx, 30*time.Second); err != nil {
		return err
	}
	messages := make(chan struct{}, 1)
	leader.Watch.Report.Notify(messages)
	told := 0
	var took []time.Duration
	began := time.Now()
	tick := time.NewTicker(measuredEvery / writtenVolumes)
	defer tick.Stop()
	for i := 0; time.Since(began) < b.idling; i++ {
		if err := b.cluster.FillVolume(ctx, writtenVolume(i%writtenVolumes), writtenBytes(i)); err != nil {
			return err
		}
		if i%(2*writtenVolumes) == 1 {
			since := time.Now()
			if err := b.sized(ctx, leader, i%writtenVolumes, writtenBytes(i)); err != nil {
				return err
			}
			took = append(took, time.Since(since))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		select {
		case <-messages:
			told++
		default:
		}
	}
	minutes := time.Since(began).Minutes()
	b.add(fmt.Sprintf("reports told to zedagent/min, %d volumes are written", writtenVolumes), "≤ 2", "≤ 1", "%.1f", float64(told)/minutes)
	b.add("size of a volume → KubeClusterInfo file", "0 to 30 s", "≤ 1 s", "%s", percentiles([][]time.Duration{took}))
	return nil
}

func writtenVolume(i int) string     { return fmt.Sprintf("written-%d", i) }
func writtenBytes(round int) int64   { return 1<<30 + int64(round+1)<<12 }
func writtenClaim(volume int) string { return writtenVolume(volume) + "-pvc-0" }

// makeVolumes has Longhorn and volumes that are attached to the first node.
func (b *bench) makeVolumes(ctx context.Context) error {
	if err := b.cluster.InstallLonghorn(ctx); err != nil {
		return err
	}
	var nodes []string
	for _, n := range b.cluster.Nodes {
		nodes = append(nodes, n.Name)
	}
	for i := range writtenVolumes {
		if err := b.cluster.CreateVolume(ctx, writtenVolume(i), nodes[0], nodes...); err != nil {
			return err
		}
	}
	return nil
}

// sized waits for the leader's file to have all volumes, and one of at least a
// size.
func (b *bench) sized(ctx context.Context, leader *player.Member, volume int, bytes int64) error {
	return reported(ctx, leader, fmt.Sprintf("%d bytes of volume %d", bytes, volume), func(r types.KubeClusterInfo) bool {
		found := false
		for _, v := range r.Storage.Volumes {
			found = found || v.Name == writtenClaim(volume) && v.AllocatedBytes >= uint64(bytes)
		}
		return found && len(r.Storage.Volumes) >= writtenVolumes
	})
}
