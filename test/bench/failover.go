package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// renewal is how often a leader renews its Lease.
const renewal = 5 * time.Second

// handover is what it took until another node reported, from the end of the
// one that did.
type handover struct {
	leads, reports time.Duration
}

// failover measures how long nobody reports for the cluster after the end of
// the leader's program.
func (b *bench) failover(ctx context.Context) error {
	for _, end := range []struct {
		how, baseline, goal string
		rounds              int
		do                  func(*player.Member)
	}{
		{"SIGKILL", "317 s", "≤ 23 s", b.rounds, func(m *player.Member) { m.KillProgram() }},
		{"clean stop (SIGTERM)", "321 s", "≤ 0.3 s", 2*b.rounds + 1, func(m *player.Member) { m.StopProgram() }},
	} {
		leads, reports, err := b.handOvers(ctx, end.rounds, end.do)
		if err != nil {
			return err
		}
		b.add(end.how+" of the leader → another says that it leads, "+noVolumes, end.baseline, end.goal, "%s", spread(leads))
		b.add("the same → its KubeClusterInfo stands", "350 s", end.goal, "%s", spread(reports))
	}
	return nil
}

// The scenes in which reports are timed.
const (
	noVolumes = "30 apps, no volumes"
	oddVolume = "30 apps, 10 volumes of Longhorn, one of which lacks its engine"
)

// volumes times the reports again in a cluster with volumes, of which one is not
// whole. What a drain would make of them is not asked for: it comes last.
func (b *bench) volumes(ctx context.Context) error {
	if err := b.cluster.InstallLonghorn(ctx); err != nil {
		return err
	}
	name := func(i int) string { return fmt.Sprintf("bench-volume-%d", i) }
	for i := range 10 {
		nodes := b.cluster.Nodes
		if err := b.cluster.CreateVolume(ctx, name(i), nodes[i%3].Name, nodes[i%3].Name, nodes[(i+1)%3].Name); err != nil {
			return err
		}
	}
	// Each is attached some moments later.
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	engines := b.cluster.Custom("lhe").Namespace(devcluster.LonghornNamespace)
	if err := engines.Delete(ctx, name(0)+"-e-0", metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("take the engine of a volume away: %w", err)
	}
	if err := b.firstReport(ctx, oddVolume); err != nil {
		return err
	}
	if err := b.claimed(ctx, fewApps); err != nil {
		return err
	}
	leads, reports, err := b.handOvers(ctx, 2*b.rounds+1, func(m *player.Member) { m.StopProgram() })
	if err != nil {
		return err
	}
	b.add("clean stop (SIGTERM) of the leader → another says that it leads, "+oddVolume, "not measured", "≤ 0.3 s", "%s", spread(leads))
	b.add("the same → its KubeClusterInfo stands", "not measured", "≤ 0.3 s", "%s", spread(reports))
	return nil
}

// handOvers ends the leader's program that many times.
func (b *bench) handOvers(ctx context.Context, rounds int, end func(*player.Member)) (leads, reports []time.Duration, err error) {
	for i := range rounds {
		// The end comes anywhere between two renewals.
		if err := pause(ctx, renewal*time.Duration(i)/time.Duration(rounds)); err != nil {
			return nil, nil, err
		}
		h, err := b.handOver(ctx, end)
		if err != nil {
			return nil, nil, err
		}
		leads, reports = append(leads, h.leads), append(reports, h.reports)
	}
	return leads, reports, nil
}

// handOver ends the leader's program and starts it again once another node
// reports. It returns when all three take part in the election again and none
// but the new leader has a report.
func (b *bench) handOver(ctx context.Context, end func(*player.Member)) (handover, error) {
	var h handover
	old := b.fleet.Reporter()
	if old == nil {
		return h, errors.New("failover: no node reports")
	}
	var ending sync.WaitGroup
	defer ending.Wait()
	began := time.Now()
	ending.Go(func() { end(old) })
	var next *player.Member
	if err := until(ctx, "another leader", time.Millisecond, func() bool {
		i := slices.IndexFunc(b.fleet.Members, func(m *player.Member) bool { return m != old && ofElection(m).IsStatsLeader })
		if i >= 0 {
			next = b.fleet.Members[i]
		}
		return next != nil
	}); err != nil {
		return h, err
	}
	h.leads = time.Since(began)
	if err := until(ctx, "its report", time.Millisecond, func() bool {
		report, _ := next.Watch.Report.Get(types.Global)
		return len(report.Nodes) == len(b.fleet.Members)
	}); err != nil {
		return h, err
	}
	h.reports = time.Since(began)
	ending.Wait()
	if err := old.StartProgram(); err != nil {
		return h, err
	}
	return h, until(ctx, "the election goes on", 10*time.Millisecond, func() bool {
		return b.fleet.Reporter() == next && !slices.ContainsFunc(b.fleet.Members, func(m *player.Member) bool {
			_, reports := m.Watch.Report.Get(types.Global)
			return !ofElection(m).ElectionRunning || ofElection(m).LeaderIdentity != next.Name || reports != (m == next)
		})
	})
}

// ofElection is what a member says of the election.
func ofElection(m *player.Member) types.KubeLeaderElectInfo {
	info, _ := m.Watch.Leader.Get(types.Global)
	return info
}
