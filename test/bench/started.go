package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

const startedTitle = "Memory at the start in a large cluster"

// startedMemory is what the agents took when they were started together.
type startedMemory struct {
	led, followed processMemory
	load          float64
}

// processMemory is that of a process, in MB.
type processMemory struct{ most, rss float64 }

// started measures how much memory the agents of a large cluster take at their
// start, when all of its lists come at once, and puts the table into the document.
func (b *bench) started(ctx context.Context, program, out string) error {
	none := func(int) []types.AppInstanceConfig { return nil }
	largest := sizes[len(sizes)-1]
	var rows []startedMemory
	err := b.on(ctx, program, devcluster.Options{Crowd: true}, none, b.bootAll, func(ctx context.Context) error {
		if err := b.cluster.AddCrowd(ctx, largest.nodes-len(b.fleet.Members), largest.pods); err != nil {
			return err
		}
		for range b.rounds {
			row, err := b.startAll(ctx)
			if err != nil {
				return err
			}
			fmt.Fprint(os.Stderr, row)
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return putSection(out, startedTitle, startedText(rows))
}

// startAll starts all agents again and returns what they took until the leader had
// reported for a while.
func (b *bench) startAll(ctx context.Context) (row startedMemory, err error) {
	for _, m := range b.fleet.Members {
		m.StopProgram()
	}
	for _, m := range b.fleet.Members {
		if _, err := freshStart(m); err != nil {
			return row, err
		}
	}
	if err := until(ctx, "one node reporting", 100*time.Millisecond, func() bool { return b.fleet.Reporter() != nil }); err != nil {
		return row, err
	}
	if err := pause(ctx, restBetween); err != nil {
		return row, err
	}
	leader := b.fleet.Reporter()
	if leader == nil {
		return row, errors.New("no node reports")
	}
	row.load = load()
	for _, m := range b.fleet.Members {
		took := processMemory{memoryMB(m.PID(), "VmHWM:"), residentMB(m.PID())}
		if m == leader {
			row.led = took
		} else {
			row.followed = processMemory{max(row.followed.most, took.most), max(row.followed.rss, took.rss)}
		}
	}
	return row, nil
}

// String is a row of the table.
func (r startedMemory) String() string {
	return fmt.Sprintf("| %.0f / %.0f | %.0f / %.0f | %.1f |\n", r.led.most, r.followed.most, r.led.rss, r.followed.rss, r.load)
}

func startedText(rows []startedMemory) string {
	slices.SortFunc(rows, func(a, b startedMemory) int { return int(a.led.most - b.led.most) })
	var s strings.Builder
	fmt.Fprintf(&s, `Measured on %s (`+"`go run ./test/bench -only started`"+`) with 1,000 nodes and 10,000 pods that do not change: three
agents are started together, of which one comes to lead, and looked at %s after it has reported. One row for each of %d runs, the
median in the middle. The goal is 110 MB for the leader.

| most RSS leader / follower, MB | RSS then | load |
|---|---|---|
`, time.Now().UTC().Format(time.DateOnly), restBetween, len(rows))
	for _, row := range rows {
		s.WriteString(row.String())
	}
	return s.String()
}
