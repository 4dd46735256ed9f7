//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/zedkube/zedkube/test/history"
)

// Scene is one kind of run.
type Scene struct {
	Name        string
	Does        string       // for the report, in a line
	Needs       func() error // why it cannot run here; nil: it can everywhere
	Fake        bool         // histories in fake time, which the report counts by themselves
	KillPoints  []string     // that it has to reach, as listed by the program; none: any
	FaultPoints []string     // likewise
	// Takes is about how long a short run takes on two cores, where that is more than a minute.
	Takes time.Duration
	// Run is one run, of some minutes. Its error is a finding, as is what breaks a
	// rule of its history.
	Run func(ctx context.Context, r *Run) error

	// Without Run it is a test, by an expression, of a package that plays so many
	// histories; 0 for one that does not take their number from test/seeds.
	Package, Test string
	Plays         int
}

func (s Scene) takes() time.Duration { return cmp.Or(s.Takes, time.Minute) }

// Run is one run of a scene.
type Run struct {
	Seed    uint64
	Dir     string // for what it writes; it stays if something was found
	Program string // zedkube
	Log     io.Writer
	Short   bool // as a part of `make test`
	History *history.Log
	Bounds  history.Bounds
	Earlier Counts // of this soak: points that were hit seldom come first

	mu     sync.Mutex
	counts Counts
}

// Counts are what happened in runs.
type Counts struct {
	Kills      map[string]int // by point
	Faults     map[string]int // by point
	Operations int            // drains, reboots, elections, failovers
	Histories  int            // simulated
	Checked    map[string]int // by rule
	Found      []string
}

func newCounts() Counts {
	return Counts{Kills: map[string]int{}, Faults: map[string]int{}, Checked: map[string]int{}}
}

// Rand is chance of its own for one of those who need it. The same seed and
// stream give the same.
func (r *Run) Rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(r.Seed, stream)) }

// Killed counts a hit of a kill point.
func (r *Run) Killed(point string) { r.count(func(c *Counts) { c.Kills[point]++ }) }

// Faulted counts a hit of a fault point.
func (r *Run) Faulted(point string) { r.count(func(c *Counts) { c.Faults[point]++ }) }

// Operated counts operations.
func (r *Run) Operated(n int) { r.count(func(c *Counts) { c.Operations += n }) }

// Simulated counts histories in fake time.
func (r *Run) Simulated(n int) { r.count(func(c *Counts) { c.Histories += n }) }

// Checked counts what was judged otherwise than by the history.
func (r *Run) Checked(what string, n int) { r.count(func(c *Counts) { c.Checked[what] += n }) }

// Found notes what is wrong and not in the history.
func (r *Run) Found(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintln(r.Log, "WRONG:", text)
	r.count(func(c *Counts) { c.Found = append(c.Found, text) })
}

func (r *Run) count(how func(*Counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how(&r.counts)
}

// kills is how many there were so far.
func (r *Run) kills() (n int) {
	r.count(func(c *Counts) {
		for _, times := range c.Kills {
			n += times
		}
	})
	return n
}

// play is one run of the scene, with the judgement of its history.
func (r *Run) play(ctx context.Context, s Scene) (Counts, time.Duration) {
	began := time.Now()
	r.History, r.Bounds, r.counts = history.New(), history.Usual(), newCounts()
	run := s.Run
	if run == nil {
		run = s.goTest
	}
	if err := run(ctx, r); err != nil && ctx.Err() == nil {
		r.Found("%v", err)
	}
	events := r.History.Events()
	found, checked := history.Check(events, r.Bounds)
	for rule, n := range checked {
		if n > 0 {
			r.Checked(rule, n)
		}
	}
	for _, v := range found {
		r.Found("%s", v)
	}
	if len(r.counts.Found) > 0 && len(events) > 0 {
		path := r.Dir + "/history.jsonl"
		if err := history.Write(path, events); err != nil {
			r.Found("%v", err)
		}
		fmt.Fprintln(r.Log, "its history is in", path)
	}
	return r.counts, time.Since(began)
}

// build builds the program as its own tests have it, which may say how long an
// hour is (cmd/zedkube/script_test.go): the binary of the tests is the program
// where that is its name. It can be killed at its kill points. root is the module's directory.
func build(ctx context.Context, root, dir string, flags ...string) (string, error) {
	program, err := filepath.Abs(filepath.Join(dir, "zedkube"))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{
		"test", "-c", "-vet=off", "-tags=kustomize_disable_go_plugin_support,failpoints", "-o", program,
	}, append(flags, "./cmd/zedkube")...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return program, nil
}
