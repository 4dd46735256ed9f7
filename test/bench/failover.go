package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

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
		{"SIGKILL", "317 s", "≤ 35 s", b.rounds, func(m *player.Member) { m.KillProgram() }},
		{"clean stop (SIGTERM)", "321 s", "≤ 2 s", 2*b.rounds + 1, func(m *player.Member) { m.StopProgram() }},
	} {
		var leads, reports []time.Duration
		for i := range end.rounds {
			// The end comes anywhere between two renewals.
			if err := pause(ctx, renewal*time.Duration(i)/time.Duration(end.rounds)); err != nil {
				return err
			}
			h, err := b.handOver(ctx, end.do)
			if err != nil {
				return err
			}
			leads, reports = append(leads, h.leads), append(reports, h.reports)
		}
		b.add(end.how+" of the leader → another says that it leads", end.baseline, end.goal, "%s", spread(leads))
		b.add("the same → its KubeClusterInfo stands", "not measured", end.goal, "%s", spread(reports))
	}
	return nil
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
