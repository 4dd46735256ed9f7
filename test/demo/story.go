package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// stepTimeout is how long one step of the story may take.
const stepTimeout = 60 * time.Second

// tell plays the story, step by step, until one is not seen.
func (s *stage) tell(ctx context.Context) error {
	steps := []struct {
		name string
		do   func(context.Context) (string, error)
	}{
		{"every agent publishes a drain status and listens", s.agentsSpeak},
		{"nim gives each node its cluster address after zedkube asks for it", s.addressesReady},
		{":12346/status answers and the nodes join", s.nodesJoin},
		{"one node is elected to report and reports three nodes", s.leaderReports},
		{"every application runs and exactly one node claims it", s.appsClaimed},
		{"a reboot command is deferred and the drain begins", s.drainBegins},
		{"the PodDisruptionBudget holds the drain back, and the node says why", s.budgetBlocks},
		{"the budget opens and the drain completes", s.drainCompletes},
		{"the drained applications run elsewhere", s.appsMoved},
		{"the device reboots, comes back and is uncordoned", s.nodeReturns},
		{"the drain lock is free, one node reports and three nodes are schedulable", s.clusterWhole},
	}
	for _, step := range steps {
		began := time.Now()
		bounded, cancel := context.WithTimeout(ctx, stepTimeout)
		detail, err := step.do(bounded)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.view.step(false, step.name, ": "+err.Error())
			return fmt.Errorf("not seen: %s: %w", step.name, err)
		}
		s.view.step(true, step.name, fmt.Sprintf(" (%s%.1f s)", detail, time.Since(began).Seconds()))
	}
	return nil
}

// until waits for seen to return "", looking again at every change of what the
// agents say and at least every 200 ms.
func (s *stage) until(ctx context.Context, seen func() string) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := seen()
		if missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New(missing)
		case <-tick.C:
		}
	}
}

// everyNode waits until missing returns "" for every node.
func (s *stage) everyNode(ctx context.Context, missing func(n *player.Member) string) error {
	return s.until(ctx, func() string {
		for _, n := range s.nodes {
			if m := missing(n); m != "" {
				return n.Name + ": " + m
			}
		}
		return ""
	})
}

func (s *stage) agentsSpeak(ctx context.Context) (string, error) {
	for _, n := range s.nodes {
		// A device lives longer than this step.
		if err := n.Boot(s.alive); err != nil {
			return "", err
		}
	}
	return "", s.everyNode(ctx, func(n *player.Member) string {
		if _, ok := n.Watch.Drain.Get(types.Global); !ok {
			return "no NodeDrainStatus"
		}
		return ""
	})
}

func (s *stage) addressesReady(ctx context.Context) (string, error) {
	return "", s.everyNode(ctx, func(n *player.Member) string {
		if status, ok := n.Watch.ClusterStatus.Get(types.Global); !ok || !status.ClusterIPIsReady {
			return "the cluster address is not ready"
		}
		return ""
	})
}

func (s *stage) nodesJoin(ctx context.Context) (string, error) {
	want := "cluster:" + s.fleet.ClusterID.String()
	return want + ", ", s.everyNode(ctx, func(n *player.Member) string {
		answer, err := player.Ask(ctx, n.IP)
		if err != nil || answer != want {
			return fmt.Sprintf("/status answers %q", answer)
		}
		return ""
	})
}

func (s *stage) leaderReports(ctx context.Context) (string, error) {
	leader := ""
	err := s.until(ctx, func() string {
		n := s.fleet.Reporter()
		if n == nil {
			return "no node reports, or several"
		}
		leader = n.Name
		report, ok := n.Watch.Report.Get(types.Global)
		if !ok || len(report.Nodes) != len(s.nodes) {
			return n.Name + " has no whole report yet"
		}
		for _, other := range s.nodes {
			if _, also := other.Watch.Report.Get(types.Global); also && other != n {
				return other.Name + " reports too"
			}
		}
		return ""
	})
	return leader + " leads, ", err
}

// claims says which node claims each application.
func (s *stage) claims(app types.AppInstanceConfig) []string {
	var claiming []string
	for _, n := range s.nodes {
		status, _ := n.Watch.Apps.Get(app.UUIDandVersion.UUID.String())
		if status.ScheduledOnThisNode && status.AppKubeStatus == types.AppKubeRunning {
			claiming = append(claiming, n.Name)
		}
	}
	return claiming
}

func (s *stage) appsClaimed(ctx context.Context) (string, error) {
	if err := s.startApps(ctx); err != nil {
		return "", err
	}
	return "", s.everyApp(ctx, func(claiming []string) bool { return len(claiming) == 1 })
}

func (s *stage) everyApp(ctx context.Context, good func(claiming []string) bool) error {
	return s.until(ctx, func() string {
		for _, app := range s.apps {
			if claiming := s.claims(app); !good(claiming) {
				return fmt.Sprintf("%s is claimed by %v", app.DisplayName, claiming)
			}
		}
		return ""
	})
}

// drained is the node of the story that drains.
func (s *stage) drained() *player.Member { return s.nodes[1] }

func (s *stage) drainBegins(ctx context.Context) (string, error) {
	s.drained().CommandReboot()
	return s.drained().Name + ", ", s.until(ctx, func() string {
		status, _ := s.drained().Watch.Drain.Get(types.Global)
		if status.Status < types.DrainRequested || status.RequestedBy != types.DrainRequesterDeviceOp {
			return "NodeDrainStatus is " + status.Status.String()
		}
		return ""
	})
}

func (s *stage) budgetBlocks(ctx context.Context) (string, error) {
	if err := s.until(ctx, func() string {
		if status, _ := s.drained().Watch.Drain.Get(types.Global); status.Status != types.DrainRetrying {
			return "NodeDrainStatus is " + status.Status.String()
		}
		if left := s.podsOn(ctx, s.drained().Name); left != budgeted {
			return fmt.Sprintf("%d application pods are left, not the %d that the budget holds", left, budgeted)
		}
		return ""
	}); err != nil {
		return "", err
	}
	// It must hold, not only be passed through.
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(3 * time.Second):
	}
	if left := s.podsOn(ctx, s.drained().Name); left != budgeted {
		return "", fmt.Errorf("%d application pods are left, not the %d that the budget holds", left, budgeted)
	}
	var why string
	err := s.until(ctx, func() string {
		progress, _ := s.drained().Watch.Progress.Get(types.Global)
		if len(progress.Blockers) != budgeted || progress.Blockers[0].Cause != "budget" {
			return fmt.Sprintf("NodeDrainProgress names %d pods in the way", len(progress.Blockers))
		}
		why = progress.Blockers[0].Why
		return ""
	})
	return why + ", ", err
}

func (s *stage) drainCompletes(ctx context.Context) (string, error) {
	if err := s.openBudget(ctx); err != nil {
		return "", err
	}
	return "", s.until(ctx, func() string {
		status, _ := s.drained().Watch.Drain.Get(types.Global)
		if status.Status == types.DrainComplete || s.drained().Boots() > 1 {
			return ""
		}
		return "NodeDrainStatus is " + status.Status.String()
	})
}

func (s *stage) appsMoved(ctx context.Context) (string, error) {
	return "", s.everyApp(ctx, func(claiming []string) bool {
		return len(claiming) == 1 && !slices.Contains(claiming, s.drained().Name)
	})
}

func (s *stage) nodeReturns(ctx context.Context) (string, error) {
	return "", s.until(ctx, func() string {
		if s.drained().Boots() < 2 {
			return s.drained().Name + " has not rebooted"
		}
		if status, _ := s.drained().Watch.Drain.Get(types.Global); status.Status != types.DrainNotRequested {
			return "NodeDrainStatus is " + status.Status.String()
		}
		return s.nodeFault(ctx, s.drained().Name)
	})
}

func (s *stage) clusterWhole(ctx context.Context) (string, error) {
	return "", s.until(ctx, func() string {
		if progress, _ := s.drained().Watch.Progress.Get(types.Global); progress.Journal.Locked || progress.Lock.Holder != "" {
			return "the drain lock is not given back"
		}
		n := s.fleet.Reporter()
		if n == nil {
			return "no node reports, or several"
		}
		report, _ := n.Watch.Report.Get(types.Global)
		var bad []string
		for _, info := range report.Nodes {
			if !info.Schedulable || info.Status != types.KubeNodeReady {
				bad = append(bad, info.Name)
			}
		}
		if len(report.Nodes) != len(s.nodes) || len(bad) > 0 {
			return fmt.Sprintf("%s reports %d nodes, not in order: %s", n.Name, len(report.Nodes), strings.Join(bad, " "))
		}
		return ""
	})
}
