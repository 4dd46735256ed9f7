package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// sizes are the clusters whose cost is compared, each the one before and more.
var sizes = []struct{ nodes, pods int }{{3, 10}, {10, 100}, {100, 1000}, {300, 3000}, {1000, 10000}}

const (
	scaleTitle = "How it grows"
	// restBetween is how long a cluster that has grown is left alone before it is
	// measured.
	restBetween = 15 * time.Second
)

// grown is what was measured in a cluster of one size.
type grown struct {
	nodes, pods int
	quiet, busy watched
	pod, node   []time.Duration // from a change to the leader's file
}

// scale measures what the agents take in clusters of all sizes, and puts the
// table into the document.
func (b *bench) scale(ctx context.Context, program, out string) error {
	var rows []grown
	none := func(int) []types.AppInstanceConfig { return nil }
	err := b.on(ctx, program, devcluster.Options{Crowd: true}, none, b.bootAll, func(ctx context.Context) error {
		for _, size := range sizes {
			row, err := b.at(ctx, size.nodes, size.pods)
			if err != nil {
				return fmt.Errorf("%d nodes, %d pods: %w", size.nodes, size.pods, err)
			}
			fmt.Fprint(os.Stderr, row)
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return putSection(out, scaleTitle, b.scaleText(rows))
}

// bootAll brings the fleet up, without applications.
func (b *bench) bootAll(ctx context.Context) error {
	for _, m := range b.fleet.Members {
		if err := m.Boot(ctx); err != nil {
			return err
		}
	}
	return until(ctx, "one node reporting", 100*time.Millisecond, func() bool { return b.fleet.Reporter() != nil })
}

// at measures in a cluster of one size.
func (b *bench) at(ctx context.Context, nodes, pods int) (grown, error) {
	row := grown{nodes: nodes, pods: pods}
	if err := b.cluster.AddCrowd(ctx, nodes-len(b.fleet.Members), pods); err != nil {
		return row, err
	}
	leader := b.fleet.Reporter()
	if leader == nil {
		return row, errors.New("no node reports")
	}
	err := pause(ctx, restBetween)
	if err != nil {
		return row, err
	}
	if row.quiet, err = b.watch(ctx, leader, func(ctx context.Context) error { return pause(ctx, b.idling/2) }); err != nil {
		return row, err
	}
	var changing []string
	for i := 1; i < pods; i++ { // the first is for the times
		changing = append(changing, devcluster.CrowdPod(i))
	}
	rand.Shuffle(len(changing), func(i, j int) { changing[i], changing[j] = changing[j], changing[i] })
	changing = changing[:min(len(changing), 500)]
	err = b.churn(ctx, changing, func(ctx context.Context) (err error) {
		row.busy, err = b.watch(ctx, leader, func(ctx context.Context) error { return b.podTimes(ctx, leader, &row) })
		return errors.Join(err, b.nodeTimes(ctx, leader, &row))
	})
	return row, err
}

// podTimes takes the times from a change of a pod to the leader's file, again
// and again.
func (b *bench) podTimes(ctx context.Context, leader *player.Member, row *grown) error {
	return b.timed(ctx, &row.pod, func(i int) (time.Duration, error) {
		return b.phase(ctx, leader, devcluster.CrowdPod(0), i%2 == 1)
	})
}

// nodeTimes takes those of a node. That is not while the cost is measured: of
// nodes that are not Ready the others ask whether they answer.
func (b *bench) nodeTimes(ctx context.Context, leader *player.Member, row *grown) error {
	node, kind := b.cluster.Nodes[1].Name, corev1.NodeMemoryPressure
	if row.nodes > len(b.fleet.Members) {
		// Of a report that is cut the first by name stay, without the other conditions.
		node, kind = devcluster.CrowdNode(0), corev1.NodeReady
	}
	return b.timed(ctx, &row.node, func(i int) (time.Duration, error) {
		return b.condition(ctx, leader, node, kind, (i%2 == 0) != (kind == corev1.NodeReady))
	})
}

// timed makes changes and notes how long each took to be seen, until the time to
// watch is over.
func (b *bench) timed(ctx context.Context, took *[]time.Duration, change func(i int) (time.Duration, error)) error {
	end := time.Now().Add(b.idling)
	for i := 0; time.Now().Before(end) || i%2 == 1; i++ { // all is as it was in the end
		one, err := change(i)
		if err != nil {
			return err
		}
		*took = append(*took, one)
		if err := pause(ctx, rand.N(500*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// phase changes a pod's phase and returns how long the report took to say so.
func (b *bench) phase(ctx context.Context, leader *player.Member, pod string, runs bool) (time.Duration, error) {
	phase, want := corev1.PodPending, types.KubePodPending
	if runs {
		phase, want = corev1.PodRunning, types.KubePodRunning
	}
	began := time.Now()
	if err := setPhase(ctx, b.cluster.Client(), pod, phase); err != nil {
		return 0, err
	}
	err := reported(ctx, leader, "the phase of pod "+pod, func(r types.KubeClusterInfo) bool {
		return slices.ContainsFunc(r.AppPods, func(p types.KubePodInfo) bool { return p.Name == pod && p.Status == want })
	})
	return time.Since(began), err
}

// String is a row of the table.
func (g grown) String() string {
	return fmt.Sprintf("| %d | %d | %.0f | %.1f | %.0f | %.1f | %.0f / %.0f | %.0f / %.0f | %.0f / %.0f | %s | %s |\n",
		g.nodes, g.pods, g.busy.led.rss, g.busy.led.core(), g.busy.followed.rss, g.busy.followed.core(),
		g.busy.led.requests, g.busy.followed.requests, g.busy.led.received, g.busy.followed.received,
		g.quiet.led.received, g.quiet.followed.received, quantiles(g.pod), quantiles(g.node))
}

func quantiles(ds []time.Duration) string {
	sorted := slices.Sorted(slices.Values(ds))
	n := len(sorted)
	return fmt.Sprintf("p50 %s, p99 %s of %d", short(sorted[n/2]), short(sorted[n*99/100]), n)
}

func (b *bench) scaleText(rows []grown) string {
	var s strings.Builder
	fmt.Fprintf(&s, `Measured alone on %s (`+"`go run ./test/bench -only scale -idle %s`"+`, %d CPUs, %s/%s), at %d pod changes a second. Three
nodes have agents, one of which leads; the others and all pods exist only as objects of the API server, every pod belonging to an
application in the namespace that every agent watches. Goals at 1,000 nodes and 10,000 pods: leader ≤ 150 MB and ≤ 3 %% of a
core, a change in the file within 2 s. RSS is the maximum seen, in MB; CPU is in %% of a core. The times of nodes are taken
after that: a node that is not ready costs more, as the others ask whether its device answers.

| nodes | pods | RSS leader | CPU leader | RSS follower | CPU follower | API requests/min, leader / follower | kB/min received, leader / follower | the same while nothing changes | pod phase → KubeClusterInfo file | node condition → the same |
|---|---|---|---|---|---|---|---|---|---|---|
`, time.Now().UTC().Format(time.DateOnly), b.idling, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, changeRate)
	for _, row := range rows {
		s.WriteString(row.String())
	}
	return s.String()
}
