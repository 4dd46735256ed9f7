package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

const (
	// talkers is how many containers write at the same time, lineLength bytes and
	// an end in each line, for talkTime.
	talkers    = 50
	lineLength = 999
	talkTime   = 30 * time.Second
	// silence is how long nothing may come before all that comes has come.
	silence = 15 * time.Second
	// glance is how often the agent's output is looked at: no delay is known better.
	glance = 10 * time.Millisecond
	// gates is the folder on the node where files let the containers begin.
	gates = "/var/lib/bench"
)

// logs measures what it takes to follow many containers on a real node.
func (b *bench) logs(ctx context.Context, program string) error {
	if err := devcluster.CanRunPods(); err != nil {
		b.add("logs of containers on a real node", "—", "—", "not measured: %v", err)
		return nil
	}
	end, err := b.onRealNode(ctx, program)
	if err != nil {
		return errors.Join(err, end())
	}
	for _, each := range []int{40, 400} { // lines per second: 2 and 20 MB/s in all
		if err := b.talk(ctx, each); err != nil {
			return errors.Join(err, end())
		}
	}
	return end()
}

// onRealNode starts one device on a node that runs containers. What ends it is
// to be called in any case.
func (b *bench) onRealNode(ctx context.Context, program string) (end func() error, err error) {
	var ends []func() error
	end = func() error {
		var errs []error
		for _, e := range slices.Backward(ends) {
			errs = append(errs, e())
		}
		return errors.Join(errs...)
	}
	if program, err = filepath.Abs(program); err != nil {
		return end, err
	}
	dir, err := os.MkdirTemp(memory(), "zedkube-bench-")
	if err != nil {
		return end, err
	}
	ends = append(ends, func() error { return os.RemoveAll(dir) })
	b.apps = func(int) []types.AppInstanceConfig { return appList(0, 0, talkers, false) }
	if b.cluster, err = devcluster.Start(ctx, devcluster.Options{Log: os.Stderr, Nodes: 1, Hosts: true, Real: true}); err != nil {
		return end, err
	}
	ends = append(ends, b.cluster.Stop)
	if b.fleet, err = player.NewFleet(ctx, b.cluster, player.FleetOptions{Dir: dir, Program: []string{program}, Apps: b.apps}); err != nil {
		return end, err
	}
	ends = append(ends, b.fleet.Close)
	return end, b.fleet.Members[0].Boot(ctx)
}

// talk measures with so many lines per second of each container.
func (b *bench) talk(ctx context.Context, each int) error {
	said := int(talkTime.Seconds()) * each
	gate := filepath.Join(gates, strconv.Itoa(each))
	for _, app := range b.apps(0) {
		prints := devcluster.Prints{Rate: float64(each), Length: lineLength, Most: said, Gate: gate}
		if err := b.cluster.CreateApp(ctx, devcluster.App{Name: app.KubeName(), Prints: prints}); err != nil {
			return err
		}
	}
	if err := b.talking(ctx, talkers); err != nil {
		return err
	}
	if err := b.claimed(ctx, talkers); err != nil {
		return err
	}
	if err := pause(ctx, 10*time.Second); err != nil { // all streams are open, the start is over
		return err
	}
	o := observe(b.fleet.Members[0])
	if err := os.WriteFile(b.cluster.HostPath(0, gate), nil, 0o644); err != nil {
		return err
	}
	if err := o.watch(ctx); err != nil {
		return err
	}
	// What a kubelet holds back it serves when the container ends.
	for _, app := range b.apps(0) {
		if out, err := b.cluster.Kubectl(ctx, "-n", devcluster.AppNamespace, "delete", "rs", app.KubeName(), "--wait=false"); err != nil {
			return fmt.Errorf("delete an application: %w: %s", err, out)
		}
	}
	if err := errors.Join(b.talking(ctx, 0), pause(ctx, 5*time.Second)); err != nil {
		return err
	}
	h, err := o.judge(said)
	if err != nil {
		return err
	}
	b.tell(fmt.Sprintf("%d containers that are to write %d MB/s for %s", talkers, each*(lineLength+1)*talkers/1_000_000, talkTime), talkers*said, o, h)
	for _, word := range append(h.words, h.missing()...) {
		fmt.Fprintln(os.Stderr, word)
	}
	return nil
}

// talking waits until so many containers run.
func (b *bench) talking(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := b.cluster.WaitRunning(ctx, "app", n)
	return err
}

func (b *bench) tell(what string, want int, o *observed, h heard) {
	b.add(what+": written in fact", "—", "—", "%.1f MB/s", h.rate())
	b.add("lines lost / of them torn / doubled / marks of gaps and limits", "6-9 % of the time never fetched", "0 / 0 / 0 / 0",
		"%d / %d / %d / %d of %d; %d lines and %d marks came only when their containers ended",
		want-h.lines, h.torn, h.doubled, len(h.words)-h.lateWords, want, h.late, h.lateWords)
	b.add("line written → on the agent's stderr", "up to 10 s", "—", "%s", percentiles([][]time.Duration{h.delays}))
	b.add("CPU and RSS of the agent meanwhile", "not measured", "—", "%.2f CPUs of %.2f that were busy in %s, %.1f ms per MB; at most %.0f MB (%.0f before)",
		o.cpu/o.took.Seconds(), o.busy/o.took.Seconds(), short(o.took), 1000*o.cpu/h.megabytes(), o.rss, o.before)
}
