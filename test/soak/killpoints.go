//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/config"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// killpoints lets three devices drain again and again, as drains does, while their
// agents kill themselves at listed points, the one that was hit least first.
func killpoints(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	most := 200
	if r.Short {
		most = 40
	}
	x := &drainRun{Stage: s, more: func() bool { return s.kills() < most }}
	during, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	var failed [8]error
	for i, m := range s.Fleet.Members {
		k := &killing{drainRun: x, m: m, rng: r.Rand(uint64(100 + i)), missed: map[string]int{}}
		if err := k.kill(nil); err != nil { // before it is first started: it comes to some points only then
			return err
		}
		all.Go(func() { failed[i] = k.killAgain(during) })
	}
	all.Go(func() { otherRequests(during, s, r.Rand(200)) })
	err = x.run(ctx)
	stop()
	all.Wait()
	list, passed := listed(), map[string]bool{}
	for _, m := range s.Fleet.Members {
		for _, point := range m.PassedPoints() {
			if passed[point] = true; !slices.Contains(list, strings.TrimSuffix(strings.TrimSuffix(point, "/before"), "/after")) {
				r.Found("the agent of %s came to the point %s, which is not listed", m.Name, point)
			}
		}
	}
	r.Checked("every point that is passed is listed", len(passed))
	return errors.Join(append(failed[:], err)...)
}

// killing has the agent of one device kill itself again and again.
type killing struct {
	*drainRun
	m       *player.Member
	rng     *rand.Rand
	missed  map[string]int // points that the agent did not come to in time
	started int            // how often it was started again
	ended   int            // how many of its ends were seen

	said  types.DrainStatus // what its drain was at the last look
	since time.Time         // when it began to be so
}

// patience is how long the agent has at most to come to a point.
const patience = 15 * time.Second

func (k *killing) killAgain(ctx context.Context) error {
	for ctx.Err() == nil && (k.goesOn() || k.dead()) {
		wait(ctx, soon(k.rng, time.Second))
		points := k.choose()
		if err := k.kill(points); err != nil {
			return err
		}
		for k.dies(ctx) {
			if err := k.startAgain(ctx); err != nil {
				return err
			}
		}
		for _, point := range points {
			k.missed[point]++
		}
		if err := k.kill(nil); err != nil {
			return err
		}
	}
	return k.m.KillAt(nil, k.rng)
}

// dead reports whether the agent has killed itself and does not run again.
func (k *killing) dead() bool { return len(k.m.KilledAt()) > k.started }

// dies waits for that, but not for long.
func (k *killing) dies(ctx context.Context) bool {
	for end := time.Now().Add(soon(k.rng, patience)); !k.dead(); wait(ctx, 10*time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(end) {
			return false
		}
	}
	return true
}

// startAgain starts an agent that has killed itself, half the times with the next order, so
// that it also dies in its first second. It may have died while its device rebooted, which has
// started another one.
func (k *killing) startAgain(ctx context.Context) error {
	point := k.m.KilledAt()[k.started]
	k.started++
	delete(k.missed, point)
	var now, later []string
	if k.goesOn() {
		later = k.choose()
	}
	if k.rng.IntN(2) == 0 {
		now, later = later, nil
	}
	if err := k.kill(now); err != nil {
		return err
	}
	for end := time.Now().Add(patience); len(k.m.Ended()) <= k.ended; wait(ctx, 10*time.Millisecond) {
		if time.Now().After(end) || ctx.Err() != nil {
			k.Killed(point)
			return nil
		}
	}
	k.ended = len(k.m.Ended())
	k.Died(k.m, point)
	err := k.rise(ctx, point)
	if later == nil || err != nil {
		return err
	}
	wait(ctx, soon(k.rng, 2*time.Second))
	return k.kill(later)
}

// rise starts the agent again, or cuts the device's power instead where that may be: a cut
// between two effects. A device that hears of COMPLETE reboots by itself.
func (k *killing) rise(ctx context.Context, point string) error {
	wait(ctx, 200*time.Millisecond) // until what the agent has said last is heard
	is, _ := k.m.Watch.Drain.Get(types.Global)
	if _, may := k.reboot.Load(k.m.Name); !may || is.Status == types.DrainComplete || k.rng.IntN(2) == 0 {
		_, err := k.m.StartEnded()
		k.Up(k.m)
		return err
	}
	k.Faulted("power cut, " + is.Status.String())
	k.told(k.m.Name, "soak", "its power is cut at "+point)
	boots := k.m.Boots()
	k.m.CutPower()
	for end := time.Now().Add(endless); k.m.Boots() == boots && ctx.Err() == nil && time.Now().Before(end); {
		wait(ctx, 10*time.Millisecond)
	}
	return nil
}

// kill has the agent kill itself at the points, and while its drains go on at what was hit seldom in the
// runs before and it may come to only once.
func (k *killing) kill(points []string) error {
	if k.goesOn() && !k.starves() {
		points = append(k.lacking(k.m.PassedPoints()), points...)
	}
	return k.m.KillAt(points, k.rng)
}

// several is how many points an agent may kill itself at, at a time.
const several = 10

// starves reports that the drain has waited for its turn for so long that the agent has to be let
// alone: one that is killed every other second may never be there when the lock is free.
func (k *killing) starves() bool {
	is, _ := k.m.Watch.Drain.Get(types.Global)
	if is.Status != k.said || k.since.IsZero() {
		k.said, k.since = is.Status, time.Now()
	}
	return is.Status == types.DrainStarting && time.Since(k.since) > time.Minute
}

// choose is some of the points that this agent has come to: those that were hit least, and of these
// those that were missed least.
func (k *killing) choose() []string {
	if k.starves() {
		return nil
	}
	passed := k.m.PassedPoints()
	slices.Sort(passed)
	passed = slices.Compact(passed)
	k.rng.Shuffle(len(passed), func(i, j int) { passed[i], passed[j] = passed[j], passed[i] })
	k.count(func(c *Counts) {
		slices.SortStableFunc(passed, func(a, b string) int {
			times := func(point string) int { return 2*(k.Earlier.Kills[point]+c.Kills[point]) + k.missed[point] }
			return cmp.Compare(times(a), times(b))
		})
	})
	return passed[:min(several, len(passed))]
}

// lacking are the points that earlier runs and this one have hit less often than often enough, without
// those that were passed. Before the first run that is all of them, which says nothing.
func (k *killing) lacking(passed []string) (points []string) {
	all := reachedBy("killpoints")
	slices.Sort(all)
	if !slices.ContainsFunc(all, func(point string) bool { return k.Earlier.Kills[point] > 0 }) {
		return nil
	}
	k.count(func(c *Counts) {
		for _, point := range all {
			if k.Earlier.Kills[point]+c.Kills[point] < enough && !slices.Contains(passed, point) {
				points = append(points, point)
			}
		}
	})
	return points
}

// otherRequests are what else happens on devices: kubeconfigs are issued, an application comes
// and goes. A command fails where its agent was just killed.
func otherRequests(ctx context.Context, s *Stage, rng *rand.Rand) {
	app := types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte("other requests")), Version: "1"}, DisplayName: "other",
		FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper}, Activate: true,
	}
	for ctx.Err() == nil {
		m := s.Fleet.Members[rng.IntN(len(s.Fleet.Members))]
		switch rng.IntN(3) {
		case 0:
			_, _ = m.Command("kubeconfig", "--reason", "soak", "--for", "10m")
		case 1:
			for _, other := range s.Fleet.Members {
				app.IsDesignatedNodeID = other == m
				_ = other.ConfigureApp(app)
			}
		default:
			_ = m.Send(func(d *eveapi.Document) error {
				d.Message.Apps = slices.DeleteFunc(d.Message.Apps, func(a *config.AppInstanceConfig) bool { return a.GetDisplayname() == app.DisplayName })
				return nil
			})
		}
		wait(ctx, 2*time.Second)
	}
}
