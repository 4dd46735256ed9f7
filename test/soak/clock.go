//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/wallclock"
	"github.com/zedkube/zedkube/types"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// jumps are by how much a clock is wrong at most.
var jumps = []time.Duration{3 * time.Second, 2 * time.Minute, 2 * time.Hour, 3 * day, 2 * year, 40 * year}

// certified says whether certificates hold for a clock that is wrong by so much: those of
// devcluster are good from an hour before the start to a year after it. With a clock
// that is wrong by more, the agent trusts no API server.
func certified(by time.Duration) bool { return by > -50*time.Minute && by < 360*day }

// clocks lets three devices drain, report and elect while the clock of each
// jumps; one begins in 1970 and learns the time later.
func clocks(ctx context.Context, r *Run) (err error) {
	r.Bounds.Clocks = false
	// The program with its flag --hour is that of the tests, as in `make soak`.
	program, err := filepath.Abs(filepath.Join(filepath.Dir(r.Program), "wallclock", "zedkube"))
	if err != nil {
		return err
	}
	if err := wallclock.Go(ctx, ".", "test", "-c", "-vet=off", "-tags", "kustomize_disable_go_plugin_support", "-o", program, "./cmd/zedkube"); err != nil {
		return err
	}
	usual := r.Program
	r.Program = program
	defer func() { r.Program = usual }()
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	of := map[string]*deviceClock{}
	for i, m := range s.Fleet.Members {
		clock, err := wallclock.New(filepath.Join(m.Root, "clock"))
		if err != nil {
			return err
		}
		defer clock.Close()
		m.Program = append(clock.Env(), m.Program...)
		of[m.Name] = &deviceClock{clock, s}
		if i != 1 {
			continue
		}
		if err := of[m.Name].wrong(m.Name, -time.Since(time.Unix(0, 0))); err != nil { // 1970
			return err
		}
		learn := time.AfterFunc(soon(r.Rand(100), 20*time.Second), func() {
			if err := of[m.Name].wrong(m.Name, 0); err != nil {
				s.Found("%v", err)
			}
		})
		defer learn.Stop()
	}
	return (&drainRun{Stage: s}).disturbed(ctx, r.many(), everyStory, func(ctx context.Context, d *drainer, rng *rand.Rand) error {
		most := jumps[rng.IntN(len(jumps))]
		by := soon(rng, most)
		if rng.IntN(2) == 0 {
			by, most = -by, -most
		}
		if err := of[d.Name].wrong(d.Name, by); err != nil {
			return err
		}
		is, _ := d.Watch.Drain.Get(types.Global)
		d.Faulted(fmt.Sprintf("clock wrong by up to %s, %s", most, is.Status))
		wait(ctx, soon(rng, 8*time.Second))
		return of[d.Name].wrong(d.Name, 0)
	})
}

// deviceClock is the clock of one device.
type deviceClock struct {
	*wallclock.Clock
	stage *Stage
}

// wrong makes it wrong by so much, which may leave the device alone.
func (c *deviceClock) wrong(node string, by time.Duration) error {
	if !certified(by) {
		c.stage.Alone(node, true)
	}
	if err := c.Set(by); err != nil {
		return err
	}
	if certified(by) {
		c.stage.Alone(node, false)
	}
	return nil
}
