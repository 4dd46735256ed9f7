package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

const (
	// fewApps is how many applications the controller configures on each node for
	// most measures, a third of them designated there; manyApps is how many for the
	// others.
	fewApps  = 30
	manyApps = 300
	// patience is how long anything may take before the bench gives up.
	patience = 3 * time.Minute
)

// bench is one run.
type bench struct {
	fleet   *player.Fleet
	cluster *devcluster.Cluster
	apps    func(i int) []types.AppInstanceConfig // what the controller tells node i at the start
	rounds  int
	idling  time.Duration // how long the idle agents are watched
	figures []figure

	measuring context.Context // ends with the control plane that is measured on
	logPorts  map[string]int  // where the logs of each node are served; nil while they are not
	reading   sync.Mutex
	read      map[string]bool // logs that were asked for, by path
}

// figure is one row of the document. Values of several runs are given as
// median and maximum.
type figure struct {
	name, baseline, goal, ours string
	load                       float64 // of the machine, 1 minute average, when it was measured
}

func (b *bench) add(name, baseline, goal, format string, args ...any) {
	f := figure{name, baseline, goal, fmt.Sprintf(format, args...), load()}
	b.figures = append(b.figures, f)
	fmt.Fprintf(os.Stderr, "%s: %s (load %.1f)\n", f.name, f.ours, f.load)
}

// load is the load average of the last minute; 0 where it cannot be read.
func load() float64 {
	var one float64
	if content, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(content), &one)
	}
	return one
}

// appsFor is what the controller tells node i where nothing depends on it.
func appsFor(i int) []types.AppInstanceConfig { return appList(i, 0, fewApps, false) }

// mixedApps is the same with virtual machines among them.
func mixedApps(i int) []types.AppInstanceConfig { return appList(i, 0, fewApps, true) }

// appList is the applications from one number on, up to another, as node i gets
// them. With machines a tenth of the many are virtual machines, and more than a
// third of the few.
func appList(i, from, to int, machines bool) []types.AppInstanceConfig {
	var list []types.AppInstanceConfig
	for j := from; j < to; j++ {
		app := types.AppInstanceConfig{
			UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte("bench "+strconv.Itoa(j))), Version: "1"},
			DisplayName:    "bench-" + strconv.Itoa(j),
			FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper},
			Activate:       true, IsDesignatedNodeID: home(j) == i,
		}
		if machines && j < 90 && j%9 < 3 {
			app.FixedResources.VirtualizationMode = types.VirtualizationHVM
		}
		list = append(list, app)
	}
	return list
}

// home is the designated node of the jth application: each has as many.
func home(j int) int { return j % 3 }

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
	if err := b.create(ctx, 0, b.apps(0)); err != nil {
		return err
	}
	return b.claimed(ctx, len(b.apps(0)))
}

// create creates applications, of which the first has this number.
func (b *bench) create(ctx context.Context, first int, apps []types.AppInstanceConfig) error {
	for i, app := range apps {
		j := first + i
		made := devcluster.App{
			Name:   app.KubeName(),
			Domain: app.UUIDandVersion.UUID.String() + ".1." + strconv.Itoa(j+1),
			Node:   b.cluster.Nodes[home(j)].Name,
			// Nothing but the number of the many sends them where they belong.
			Required: j >= fewApps && !app.IsVMI(),
		}
		err := error(nil)
		if app.IsVMI() {
			_, err = b.cluster.CreateVM(ctx, made)
		} else {
			err = b.cluster.CreateApp(ctx, made)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// claimed waits until so many applications run and are claimed by a node each.
func (b *bench) claimed(ctx context.Context, n int) error {
	return until(ctx, "every application claimed, one node reporting", 100*time.Millisecond, func() bool {
		claims := 0
		for _, m := range b.fleet.Members {
			for _, status := range m.Watch.Apps.All() {
				if status.ScheduledOnThisNode && status.AppKubeStatus == types.AppKubeRunning {
					claims++
				}
			}
		}
		return claims == n && b.fleet.Reporter() != nil
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
	return b.firstReport(ctx, noVolumes)
}

// firstReport measures from the start of all agents to the first report of the
// one that is elected; the lease is free, for the last leader gave it back.
func (b *bench) firstReport(ctx context.Context, scene string) error {
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
	b.add("start of three agents → first KubeClusterInfo, lease free, "+scene, "35.4 s", "≤ 0.3 s", "%s", spread(took))
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
