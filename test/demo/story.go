package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// How long one step of the story may take: an emulator takes ten times the
// processor's time, and other tests may have most of that.
const (
	stepTimeout         = 60 * time.Second
	emulatedStepTimeout = 6 * time.Minute
)

// step is one step of the story. Do returns what is to be said of it, too.
type step struct {
	name string
	do   func(context.Context) (string, error)
}

// beginning is how every story begins.
func (s *stage) beginning() []step {
	return []step{
		{"every agent publishes a drain status and listens", s.agentsSpeak},
		{"each device decrypts the cluster's token, which its EdgeDevConfig brings", s.tokenArrives},
		{"nim gives each node its cluster address after zedkube asks for it", s.addressesReady},
		{":12346/status answers and the nodes join", s.nodesJoin},
		{"one node is elected to report and reports three nodes", s.leaderReports},
		{"every application runs and exactly one node claims it", s.appsClaimed},
	}
}

// steps are those of the drain, which is told unless another story is wanted.
func (s *stage) steps() []step {
	return append(s.beginning(), []step{
		{"a reboot command is deferred and the drain begins", s.drainBegins},
		{"the PodDisruptionBudget holds the drain back, and the node says why", s.budgetBlocks},
		{"the budget opens and the drain completes", s.drainCompletes},
		{"the drained applications run elsewhere", s.appsMoved},
		{"the device reboots, comes back and is uncordoned", s.nodeReturns},
		{"the drain lock is free, one node reports and three nodes are schedulable", s.clusterWhole},
	}...)
}

// tell plays the story, step by step, until one is not seen.
func (s *stage) tell(ctx context.Context, steps []step, patience time.Duration) error {
	for _, step := range steps {
		began := time.Now()
		bounded, cancel := context.WithTimeout(ctx, patience)
		detail, err := step.do(bounded)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.view.Step(false, step.name, ": "+err.Error())
			return fmt.Errorf("not seen: %s: %w", step.name, err)
		}
		s.view.Step(true, step.name, fmt.Sprintf(" (%s%.1f s)", detail, time.Since(began).Seconds()))
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

// tokenArrives looks from the controller's document to the status that other
// agents read.
func (s *stage) tokenArrives(ctx context.Context) (string, error) {
	return "", s.everyNode(ctx, func(n *player.Member) string {
		config, err := n.ClusterConfig()
		if err != nil {
			return err.Error()
		}
		status, _ := n.Watch.ClusterStatus.Get(types.Global)
		switch {
		case !config.CipherToken.IsCipher:
			return "its EdgeDevConfig holds no encrypted token"
		case status.EncryptedClusterToken != s.fleet.Token():
			return "EdgeNodeClusterStatus does not hold the token of the cluster"
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
