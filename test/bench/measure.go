package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

const (
	// apps is how many applications the controller configures on each node, a
	// third of them designated there.
	apps = 30
	// patience is how long anything may take before the bench gives up.
	patience = 3 * time.Minute
	// idleTime is how long the idle agents are watched.
	idleTime = time.Minute
)

// bench is one run.
type bench struct {
	fleet   *player.Fleet
	cluster *devcluster.Cluster
	rounds  int
	figures []figure
}

// figure is one row of the document. Values of several runs are given as
// median and maximum.
type figure struct {
	name, baseline, goal, ours string
}

func (b *bench) add(name, baseline, goal, format string, args ...any) {
	f := figure{name, baseline, goal, fmt.Sprintf(format, args...)}
	b.figures = append(b.figures, f)
	fmt.Fprintf(os.Stderr, "%s: %s\n", f.name, f.ours)
}

func appsFor(i int) []types.AppInstanceConfig {
	list := make([]types.AppInstanceConfig, apps)
	for j := range list {
		list[j] = types.AppInstanceConfig{
			UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte("bench "+strconv.Itoa(j))), Version: "1"},
			DisplayName:    "bench-" + strconv.Itoa(j),
			FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper},
			Activate:       true, IsDesignatedNodeID: j%3 == i,
		}
	}
	return list
}

// until polls seen, for files and process states that ring no bell.
func until(ctx context.Context, what string, every time.Duration, seen func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !seen() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// warmUp brings the fleet up and the applications onto the nodes.
func (b *bench) warmUp(ctx context.Context) error {
	for _, m := range b.fleet.Members {
		if err := m.Boot(ctx); err != nil {
			return err
		}
	}
	for j, app := range appsFor(0) {
		err := b.cluster.CreateApp(ctx, devcluster.App{
			Name:   app.KubeName(),
			Domain: app.UUIDandVersion.UUID.String() + ".1." + strconv.Itoa(j+1),
			Node:   b.cluster.Nodes[j%3].Name,
		})
		if err != nil {
			return err
		}
	}
	return until(ctx, "every application claimed, one node reporting", 100*time.Millisecond, func() bool {
		claims := 0
		for _, m := range b.fleet.Members {
			for _, status := range m.Watch.Apps.All() {
				if status.ScheduledOnThisNode && status.AppKubeStatus == types.AppKubeRunning {
					claims++
				}
			}
		}
		return claims == apps && b.fleet.Reporter() != nil
	})
}

// restarts measures from the start of a process to its first words. The
// published files are taken away first, so that what appears is new. A status
// counts when it says what is true of a running application, not "unknown".
func (b *bench) restarts(ctx context.Context) error {
	m := b.fleet.Members[2]
	took := map[string][]time.Duration{}
	for range 2*b.rounds + 1 {
		m.StopProgram()
		began, err := freshStart(m)
		if err != nil {
			return err
		}
		for _, topic := range []struct{ name, says string }{
			{"NodeDrainStatus", `"Status":`}, {"ENClusterAppStatus", `"AppKubeStatus":4`},
		} {
			if err := until(ctx, topic.name, time.Millisecond, func() bool { return says(m, topic.name, topic.says) }); err != nil {
				return err
			}
			took[topic.name] = append(took[topic.name], time.Since(began))
		}
	}
	b.add("start → first NodeDrainStatus", "0.13 s", "≤ 0.1 s", "%s", spread(took["NodeDrainStatus"]))
	b.add("start → first ENClusterAppStatus of a running app, 30 apps", "15.4 s", "≤ 1 s", "%s", spread(took["ENClusterAppStatus"]))
	return b.firstReport(ctx)
}

// firstReport measures from the start of all agents to the first report of the
// one that is elected; the lease is free, for the last leader gave it back.
func (b *bench) firstReport(ctx context.Context) error {
	var took []time.Duration
	for range b.rounds {
		for _, m := range b.fleet.Members {
			m.StopProgram()
		}
		began := time.Now()
		for _, m := range b.fleet.Members {
			if _, err := freshStart(m); err != nil {
				return err
			}
		}
		if err := until(ctx, "a report", time.Millisecond, func() bool {
			return slices.ContainsFunc(b.fleet.Members, func(m *player.Member) bool { return says(m, "KubeClusterInfo", `"Nodes":[`) })
		}); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	b.add("start of three agents → first KubeClusterInfo, lease free", "35.5 s", "lease + 1 s", "%s", spread(took))
	return nil
}

// freshStart starts a member's program, stopped before, as if it had never
// published anything.
func freshStart(m *player.Member) (time.Time, error) {
	for _, topic := range []string{"NodeDrainStatus", "ENClusterAppStatus", "KubeClusterInfo"} {
		if err := os.RemoveAll(m.TopicDir(topic)); err != nil {
			return time.Time{}, err
		}
	}
	return time.Now(), m.StartProgram()
}

// says reports whether a file of the topic contains text.
func says(m *player.Member, topic, text string) bool {
	files, _ := filepath.Glob(filepath.Join(m.TopicDir(topic), "*.json"))
	for _, name := range files {
		if content, err := os.ReadFile(name); err == nil && strings.Contains(string(content), text) {
			return true
		}
	}
	return false
}
