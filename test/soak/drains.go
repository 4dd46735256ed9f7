//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// hour is how long the agents take an hour to be, so that a drain that cannot
// end does so soon.
const hour = time.Second

// The bounds of a drain, in such hours.
const (
	longDrain  = 1000
	shortDrain = 5
)

// podsEach is how many pods a node has that run nowhere else.
const podsEach = 2

// drains lets three devices drain again and again, each by itself, while their
// agents are killed and their API servers have faults.
func drains(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return (&drainRun{Stage: s, began: time.Now()}).run(ctx)
}

// drainRun is what the devices go through.
type drainRun struct {
	*Stage
	began   time.Time
	more    func() bool // whether to go on, where others kill and give faults; nil where this does
	foreign sync.Mutex  // held while one node has someone else's cordon
	bare    bool        // no application has a volume
	silent  uint32      // for how many seconds a drain waits for an API server that does not answer; 0: 300
	reboot  sync.Map    // names of devices whose power may be cut: what they have asked for ends with a reboot
}

// goesOn says whether there were not enough kills yet.
func (r *drainRun) goesOn() bool {
	if r.more != nil {
		return r.more()
	}
	if r.Short {
		return r.kills() < 50 || time.Since(r.began) < 2*time.Minute
	}
	return r.kills() < 200
}

// run ends when enough were killed, or at the first drain that never ends.
func (r *drainRun) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i, m := range r.Fleet.Members {
		if err := r.prepare(ctx, i, m); err != nil {
			return err
		}
	}
	var running sync.WaitGroup
	for i, m := range r.Fleet.Members {
		d := &drainer{drainRun: r, Member: m, i: i, rng: r.Rand(uint64(i))}
		running.Go(func() {
			if err := d.live(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", m.Name, err))
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.Settle(ctx) // while the agents still run
}

// prepare gives a device pods of its own, and one with a volume, and switches it on.
func (r *drainRun) prepare(ctx context.Context, i int, m *player.Member) error {
	app := devcluster.App{Name: "only-" + m.Name, Node: m.Name, Required: true, Replicas: podsEach}
	if err := r.Cluster.CreateApp(ctx, app); err != nil {
		return err
	}
	r.CanRun(app.Name, m.Name)
	if !r.bare {
		if err := r.giveVolume(ctx, m); err != nil {
			return err
		}
	}
	if err := m.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: r.drainTimeout(longDrain)}); err != nil {
		return err
	}
	return r.Boot(i)
}

// drainTimeout are the settings of a device whose drains may take so long.
// EVE's window against drains of all nodes, which holds until the others have
// shown who they are, is as short as it can be.
func (r *drainRun) drainTimeout(hours uint32) map[string]types.ConfigItemValue {
	items := map[string]types.ConfigItemValue{}
	for key, value := range map[string]uint32{
		types.SettingDrainTimeout: hours, types.SettingDrainAllNodes: 1, types.SettingConfigInterval: 1, types.SettingDrainSkipAPI: cmp.Or(r.silent, 300),
		types.SettingDrainUnused: longDrain, // a busy machine may take longer to reboot a device than a day of its agent
	} {
		items[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemInt, IntValue: value}
	}
	return items
}

// drainer is a device that drains again and again.
type drainer struct {
	*drainRun
	*player.Member
	i   int
	rng *rand.Rand
}

// live drains the device again and again.
func (d *drainer) live(ctx context.Context) error {
	stories := []struct {
		name string
		play func(context.Context) error
	}{
		{"reboot", d.reboots},
		{"withdrawal", d.withdraws},
		{"two requesters", d.asksTwice},
		{"failure", d.fails},
		{"foreign cordon", d.isCordonedBySomebody},
	}
	for d.goesOn() {
		if err := d.idle(ctx); err != nil {
			return err
		}
		story := stories[d.rng.IntN(len(stories))]
		d.told(d.Name, "soak", "story: "+story.name)
		if err := d.withKillsAndFaults(ctx, story.play); err != nil {
			return fmt.Errorf("%s: %w", story.name, err)
		}
	}
	return d.idle(ctx)
}

// withKillsAndFaults plays a story while the agent is killed and its API server has faults.
func (d *drainer) withKillsAndFaults(ctx context.Context, play func(context.Context) error) error {
	during, stop := context.WithCancel(ctx)
	defer stop()
	kills, faults := rand.New(rand.NewPCG(d.rng.Uint64(), 0)), rand.New(rand.NewPCG(d.rng.Uint64(), 0))
	var killed, faulted error
	var both sync.WaitGroup
	if d.more == nil {
		both.Go(func() { killed = d.killOften(during, kills) })
		both.Go(func() { faulted = d.faultOften(during, faults) })
	}
	err := play(ctx)
	stop()
	both.Wait()
	return errors.Join(err, killed, faulted)
}

func (d *drainer) killOften(ctx context.Context, rng *rand.Rand) error {
	for range 1 + rng.IntN(6) {
		point := d.moment(ctx, rng)
		if ctx.Err() != nil || !d.goesOn() {
			return nil
		}
		if err := d.Kill(d.Member, point); err != nil {
			return err
		}
	}
	return nil
}

// troubles are what an API server may have for some seconds.
var troubles = []devcluster.Fault{
	devcluster.Refused, devcluster.Hung, devcluster.Expired, devcluster.Slow(2 * time.Second), devcluster.Reset(64),
	"429=0.5", "500=0.5", "503", "409=0.5,only=patch+update+create", "403=0.3,only=patch", "slow=1s,only=create,of=eviction",
}

func (d *drainer) faultOften(ctx context.Context, rng *rand.Rand) error {
	for range rng.IntN(3) {
		wait(ctx, soon(rng, 5*time.Second))
		if ctx.Err() != nil {
			return nil
		}
		is, _ := d.Watch.Drain.Get(types.Global)
		if err := d.Fault(d.i, troubles[rng.IntN(len(troubles))], is.Status.String()); err != nil {
			return err
		}
		wait(ctx, soon(rng, 5*time.Second))
		if err := d.Heal(d.i); err != nil {
			return err
		}
		d.Cluster.CutWatches(d.i)
	}
	return nil
}

func soon(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

// moment waits for the moment of a kill: some time after the last one, or when
// the agent has just written its journal or what it says.
func (d *drainer) moment(ctx context.Context, rng *rand.Rand) string {
	switch rng.IntN(6) {
	case 0:
		wait(ctx, soon(rng, 200*time.Millisecond))
		return d.phase("at once")
	case 1, 2:
		wait(ctx, soon(rng, 6*time.Second))
		return d.phase("at any time")
	case 3:
		return d.written(ctx, d.TopicDir("NodeDrainStatus"), soon(rng, 3*time.Millisecond))
	}
	return d.written(ctx, filepath.Join(d.Root, "persist/status/zedkube/NodeDrainJournal"), soon(rng, 3*time.Millisecond))
}

// phase names a point of a drain.
func (d *drainer) phase(when string) string {
	is, _ := d.Watch.Drain.Get(types.Global)
	return fmt.Sprintf("drain/%s/%s", is.Status, when)
}

// written waits until a file of the topic changes, five seconds at most.
func (d *drainer) written(ctx context.Context, dir string, then time.Duration) string {
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
	wait(ctx, then)
	return d.phase(strings.TrimPrefix(filepath.Base(dir), "NodeDrain") + " written")
}
