package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// seedVariable plays a run of kills again, as far as chance goes.
const seedVariable = "DRAIN_KILLS_SEED"

// TestDrainSurvivesKillsAtRandomPoints kills agents in the middle of drains,
// fifty times. Whatever the moment, nobody outside may see a difference.
func TestDrainSurvivesKillsAtRandomPoints(t *testing.T) { killDrains(t, 50) }

// killDrains lets three devices drain again and again, each by itself, and
// kills their agents until there were so many kills.
func killDrains(t *testing.T, kills int64) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	program, err := exec.LookPath("zedkube")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{Log: t.Output(), Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	// Not t.TempDir, which is removed: the agents' logs explain a failure.
	dir, err := os.MkdirTemp("", "drainkills-")
	if err != nil {
		t.Fatal(err)
	}
	j := newJudge(t, cluster)
	fleet, err := player.NewFleet(t.Context(), cluster, player.FleetOptions{
		Dir: dir, Program: []string{program, "--hour", hour.String()}, Say: j.said,
	})
	if err != nil {
		t.Fatal(err)
	}
	j.follow(t.Context(), fleet)
	began := time.Now()
	r := &rampage{judge: j, fleet: fleet, limit: kills, seed: seed}
	err = r.run(t.Context())
	j.settled(t.Context(), fleet, dir, errors.Join(err, fleet.Close()))
	t.Logf("%d kills in %s: %s", r.kills.Load(), time.Since(began).Round(time.Second), j.summary())
	if !t.Failed() {
		os.RemoveAll(dir)
	}
}

// hour is how long the agents take an hour to be, so that a drain that cannot
// end does so soon.
const hour = time.Second

// The bounds of a drain, in such hours.
const (
	longDrain  = 1000
	shortDrain = 5
)

// rampage is what the devices go through.
type rampage struct {
	judge *judge
	fleet *player.Fleet
	limit int64
	seed  uint64
	kills atomic.Int64

	foreign sync.Mutex // held while one node has someone else's cordon
}

// run ends when enough were killed, or at the first drain that never ends.
func (r *rampage) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for i, m := range r.fleet.Members {
		if err := r.prepare(ctx, m); err != nil {
			return err
		}
		v := &victim{rampage: r, Member: m, rng: rand.New(rand.NewPCG(r.seed, uint64(i)))}
		running.Go(func() {
			if err := v.live(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", m.Name, err))
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.judge.settle(ctx) // while the agents still run
}

// prepare gives a device pods of its own and switches it on.
func (r *rampage) prepare(ctx context.Context, m *player.Member) error {
	app := devcluster.App{Name: "only-" + m.Name, Node: m.Name, Required: true, Replicas: podsEach}
	if err := r.fleet.Cluster.CreateApp(ctx, app); err != nil {
		return err
	}
	if err := m.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: drainTimeout(longDrain)}); err != nil {
		return err
	}
	return m.Boot(ctx)
}

// podsEach is how many pods a node has that run nowhere else.
const podsEach = 2

// drainTimeout are the settings of a device whose drains may take so long.
// EVE's window against drains of all nodes, which holds until the others have
// shown who they are, is as short as it can be.
func drainTimeout(hours uint32) map[string]types.ConfigItemValue {
	items := map[string]types.ConfigItemValue{}
	for key, value := range map[string]uint32{
		types.SettingDrainTimeout: hours, types.SettingDrainAllNodes: 1, types.SettingConfigInterval: 1,
	} {
		items[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemInt, IntValue: value}
	}
	return items
}

// victim is one device of a rampage.
type victim struct {
	*rampage
	*player.Member
	rng *rand.Rand
}

// live drains the device again and again.
func (v *victim) live(ctx context.Context) error {
	stories := []struct {
		name string
		play func(context.Context) error
	}{
		{"reboot", v.reboots},
		{"withdrawal", v.withdraws},
		{"two requesters", v.asksTwice},
		{"failure", v.fails},
		{"foreign cordon", v.isCordonedBySomebody},
	}
	for v.kills.Load() < v.limit {
		if err := v.idle(ctx); err != nil {
			return err
		}
		story := stories[v.rng.IntN(len(stories))]
		v.judge.note(v.Name, "story: "+story.name)
		if err := v.haunted(ctx, story.play); err != nil {
			return fmt.Errorf("%s: %w", story.name, err)
		}
		v.judge.done(story.name)
	}
	return v.idle(ctx)
}

// haunted plays a story while the agent is killed.
func (v *victim) haunted(ctx context.Context, play func(context.Context) error) error {
	killing, stop := context.WithCancel(ctx)
	defer stop()
	rng := rand.New(rand.NewPCG(v.rng.Uint64(), 0))
	var killer sync.WaitGroup
	var failed error
	killer.Go(func() {
		for range 1 + rng.IntN(6) {
			what := v.moment(killing, rng)
			if killing.Err() != nil || v.kills.Load() >= v.limit {
				return
			}
			if failed = v.kill(what); failed != nil {
				return
			}
		}
	})
	err := play(ctx)
	stop()
	killer.Wait()
	return errors.Join(err, failed)
}

// kill kills the agent and starts it again at once.
func (v *victim) kill(what string) error {
	v.judge.note(v.Name, "kill, "+what)
	did, err := v.RestartProgram()
	if did {
		v.kills.Add(1)
	}
	return err
}

// moment waits for the moment of a kill: some time after the last one, or when
// the agent has just written its journal or what it says.
func (v *victim) moment(ctx context.Context, rng *rand.Rand) string {
	soon := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
	switch rng.IntN(6) {
	case 0:
		return wait(ctx, soon(200*time.Millisecond))
	case 1, 2:
		return wait(ctx, soon(6*time.Second))
	case 3:
		return v.written(ctx, v.TopicDir("NodeDrainStatus"), soon(3*time.Millisecond))
	}
	return v.written(ctx, filepath.Join(v.Root, "persist/status/zedkube/NodeDrainJournal"), soon(3*time.Millisecond))
}

func wait(ctx context.Context, d time.Duration) string {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return "after " + d.String()
}

// written waits until a file of the topic changes, five seconds at most.
func (v *victim) written(ctx context.Context, dir string, then time.Duration) string {
	stamp := func() string {
		info, err := os.Stat(filepath.Join(dir, types.Global+".json"))
		if err != nil {
			return ""
		}
		return info.ModTime().String()
	}
	before := stamp()
	for end := time.Now().Add(5 * time.Second); stamp() == before && time.Now().Before(end); {
		wait(ctx, 500*time.Microsecond)
		if ctx.Err() != nil {
			return ""
		}
	}
	return strings.TrimPrefix(dir, v.Root) + " written, " + wait(ctx, then)
}
