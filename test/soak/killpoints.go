//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

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
	enough := 200
	if r.Short {
		enough = 40
	}
	x := &rampage{Stage: s, more: func() bool { return s.kills() < enough }}
	hunting, stop := context.WithCancel(ctx)
	defer stop()
	var hunters sync.WaitGroup
	var failed [8]error
	for i, m := range s.Fleet.Members {
		if err := os.MkdirAll(m.Failpoints(), 0o700); err != nil {
			return err
		}
		h := &hunter{rampage: x, m: m, rng: r.Rand(uint64(100 + i)), missed: map[string]int{}}
		hunters.Go(func() { failed[i] = h.hunt(hunting) })
	}
	hunters.Go(func() { errands(hunting, s, r.Rand(200)) })
	err = x.run(ctx)
	stop()
	hunters.Wait()
	list, passed := listed(), map[string]bool{}
	for _, m := range s.Fleet.Members {
		for _, point := range lines(m.Failpoints(), "passed") {
			if passed[point] = true; !slices.Contains(list, strings.TrimSuffix(strings.TrimSuffix(point, "/before"), "/after")) {
				r.Found("the agent of %s came to the point %s, which is not listed", m.Name, point)
			}
		}
	}
	r.Checked("every point that is passed is listed", len(passed))
	return errors.Join(append(failed[:], err)...)
}

// lines are those of a file of an agent's failpoints; none where it is missing.
func lines(dir, name string) []string {
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// hunter has the agent of one device kill itself again and again.
type hunter struct {
	*rampage
	m       *player.Member
	rng     *rand.Rand
	missed  map[string]int // points that the agent did not come to in time
	revived int            // how often it was started again
	ended   int            // how many of its ends were seen
}

// patience is how long the agent has at most to come to a point.
const patience = 15 * time.Second

func (h *hunter) hunt(ctx context.Context) error {
	for ctx.Err() == nil && (h.goesOn() || h.dead()) {
		point := h.choose()
		if point == "" { // it has not begun yet
			wait(ctx, 100*time.Millisecond)
			continue
		}
		if err := h.order(point); err != nil {
			return err
		}
		for h.dies(ctx) {
			if err := h.revive(ctx); err != nil {
				return err
			}
		}
		h.missed[point]++
		if err := h.order(""); err != nil {
			return err
		}
	}
	return h.order("")
}

// dead reports whether the agent has killed itself and does not run again.
func (h *hunter) dead() bool { return len(lines(h.m.Failpoints(), "killed")) > h.revived }

// dies waits for that, but not for long.
func (h *hunter) dies(ctx context.Context) bool {
	for end := time.Now().Add(soon(h.rng, patience)); !h.dead(); wait(ctx, 10*time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(end) {
			return false
		}
	}
	return true
}

// revive starts an agent that has killed itself, half the times with the next order, so
// that it also dies in its first second. It may have died while its device rebooted, which has
// started another one.
func (h *hunter) revive(ctx context.Context) error {
	point := lines(h.m.Failpoints(), "killed")[h.revived]
	h.revived++
	delete(h.missed, point)
	if h.rng.IntN(2) == 0 && h.goesOn() {
		if err := h.order(h.choose()); err != nil {
			return err
		}
	}
	for end := time.Now().Add(patience); len(h.m.Ended()) <= h.ended; wait(ctx, 10*time.Millisecond) {
		if time.Now().After(end) || ctx.Err() != nil {
			h.Killed(point)
			return nil
		}
	}
	h.ended = len(h.m.Ended())
	h.Died(h.m, point)
	_, err := h.m.RestartProgram()
	h.Up(h.m)
	return err
}

// order has the agent kill itself at a point; "" nowhere.
func (h *hunter) order(point string) error {
	file := filepath.Join(h.m.Failpoints(), "kill")
	if point == "" {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	part := file + ".part" // the agent reads it at any moment
	if err := os.WriteFile(part, fmt.Appendf(nil, "%d %s\n", 1+h.rng.IntN(3)/2, point), 0o600); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// choose is one of the points that this agent has come to, of those that were hit least
// one that was missed least.
func (h *hunter) choose() string {
	passed := lines(h.m.Failpoints(), "passed")
	slices.Sort(passed)
	passed = slices.Compact(passed)
	h.rng.Shuffle(len(passed), func(i, j int) { passed[i], passed[j] = passed[j], passed[i] })
	best, least := "", 0
	h.count(func(c *Counts) {
		for _, point := range passed {
			if n := 2*c.Kills[point] + h.missed[point]; best == "" || n < least {
				best, least = point, n
			}
		}
	})
	return best
}

// errands are what else happens on devices: kubeconfigs are issued, an application comes
// and goes. A command fails where its agent was just killed.
func errands(ctx context.Context, s *Stage, rng *rand.Rand) {
	app := types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte("errand")), Version: "1"}, DisplayName: "errand",
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
			_ = m.Send(func(d *eveapi.Document) error { d.Message.Apps = nil; return nil })
		}
		wait(ctx, 2*time.Second)
	}
}
