//go:build linux

// Command soak runs scenes in which agents are killed, cut off and lied to, for
// hours, and judges what they did by the rules of test/history. What it ran and
// found it writes to docs/reliability.md. A finding names the command that
// repeats it, as far as chance goes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// document is where a whole soak writes its report.
const document = "docs/reliability.md"

// options are what was asked for.
type options struct {
	program string
	scenes  []string // none: all
	seed    uint64   // 0: another for every run
	long    time.Duration
	short   bool
	more    bool // goes on with the runs of the soak before
	out     string
}

// runs is where a soak notes its runs.
const runs = "bin/soak/runs.jsonl"

func main() {
	var o options
	var only string
	flag.StringVar(&o.program, "program", "", "the zedkube program; by default it is built, with a flag that says how long an hour is")
	flag.StringVar(&only, "scene", "", "only these scenes, with commas: "+strings.Join(names(), ", "))
	flag.Uint64Var(&o.seed, "seed", 0, "one run with this seed; 0 is another for every run, and with CI=true 1, 2 and so on")
	flag.DurationVar(&o.long, "for", 0, "how long; 0 is one run of every scene")
	flag.BoolVar(&o.short, "short", false, "short runs, as in make test")
	flag.BoolVar(&o.more, "continue", false, "count the runs of the soak before too, of which "+runs+" has notes")
	flag.StringVar(&o.out, "out", "", "where the report goes; by default "+document+" of all scenes, else nowhere")
	flag.Parse()
	if only != "" {
		o.scenes = strings.Split(only, ",")
	} else if o.out == "" {
		o.out = document
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1)
	}
}

func names() (all []string) {
	for _, s := range scenes() {
		all = append(all, s.Name)
	}
	return all
}

// soak runs the scenes in turn until the time is over, and writes the report.
func soak(ctx context.Context, o options) error {
	for _, name := range o.scenes {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("there is no scene %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	all := scenes()
	if len(o.scenes) > 0 {
		all = slices.DeleteFunc(all, func(s Scene) bool { return !slices.Contains(o.scenes, s.Name) })
	}
	if o.program == "" {
		var err error
		if o.program, err = build(ctx, ".", "bin/soak"); err != nil {
			return err
		}
	}
	report := newReport(time.Now())
	if o.out != "" {
		report.book = runs
	}
	if err := report.open(o.more); err != nil {
		return err
	}
	for ctx.Err() == nil {
		s, ok := report.next(all, o)
		if !ok {
			break
		}
		one := o
		if o.seed == 0 && os.Getenv("CI") == "true" {
			one.seed = uint64(report.row(s).runs*max(1, s.Plays)) + 1 // each history has a seed of its own
		}
		var earlier Counts
		if o.seed == 0 { // who repeats a run has not seen the ones before it
			earlier = report.hits()
		}
		if err := report.add(s, o.short, func() (Counts, time.Duration, uint64, error) { return once(ctx, s, one, earlier, os.Stdout) }); err != nil {
			return err
		}
	}
	for _, s := range scenes() {
		why := "not a part of this run"
		if slices.ContainsFunc(all, func(asked Scene) bool { return asked.Name == s.Name }) {
			why = fmt.Sprintf("a run takes about %s, and there was less time left", s.takes())
		}
		report.miss(s, why)
	}
	text := report.text(time.Now())
	if o.out == "" {
		fmt.Print("\n", text)
	} else if err := os.WriteFile(o.out, []byte(text), 0o644); err != nil {
		return err
	}
	if n := report.findings(); n > 0 {
		return fmt.Errorf("%d findings", n)
	}
	return context.Cause(ctx)
}

// once is one run of a scene. The error says why it cannot run here.
func once(ctx context.Context, s Scene, o options, earlier Counts, log io.Writer) (Counts, time.Duration, uint64, error) {
	if s.Needs != nil {
		if err := s.Needs(); err != nil {
			return Counts{}, 0, 0, err
		}
	}
	seed := o.seed
	for seed == 0 {
		seed = uint64(rand.Uint32()) // short enough to be typed
	}
	// Sockets want a short path.
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return Counts{}, 0, 0, err
	}
	fmt.Fprintf(log, "%s: scene %s, seed %d\n", time.Now().Format(time.TimeOnly), s.Name, seed)
	r := &Run{Seed: seed, Dir: dir, Program: o.program, Log: log, Short: o.short, Earlier: earlier}
	counts, took := r.play(ctx, s)
	if len(counts.Found) == 0 {
		return counts, took, seed, errors.Join(context.Cause(ctx), os.RemoveAll(dir)) // half a run is none
	}
	short := ""
	if o.short {
		short = " SHORT=1"
	}
	fmt.Fprintf(log, "%s; repeat it, as far as chance goes: make soak SCENE=%s SEED=%d%s\n", dir, s.Name, seed, short)
	return counts, took, seed, nil
}
