//go:build linux

package apps

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
)

// repairing begins the points of what agents do for a node that is gone.
var repairing = []string{
	"apps/create events", "apps/delete attachment", "apps/fence", "apps/force-delete pod", "apps/forget vmi", "apps/note repair", "apps/patch leases",
}

// loss is how a node is lost, and comes back.
type loss struct {
	name       string
	lose, back func(s *stage, t *testing.T, i int)
}

var (
	cutting = loss{"cut", (*stage).cut, (*stage).heal}
	killing = loss{"killed", (*stage).kill, (*stage).bootNode}
)

// kills begins to kill agents, count times in all. Each of two hands has devices
// of its own.
func (s *stage) kills(t *testing.T, count int, among ...int) *sync.WaitGroup {
	done := &sync.WaitGroup{}
	tickets := make(chan int, count)
	for i := range count {
		tickets <- i
	}
	close(tickets)
	for _, i := range among {
		rng := seeds.Split(s.rand)
		done.Go(func() {
			for range tickets {
				s.killsItself(t, rng, i)
				s.killAgent(i)
				down := rng.Float64()
				rig.Pause(t, time.Duration(down*down*down*float64(5*time.Second)))
				s.startAgent(t, i)
			}
		})
	}
	return done
}

// killsItself waits until the agent of a device has killed itself at one of the stage's points; where there are
// none, or it comes to none, only for a while.
func (s *stage) killsItself(t *testing.T, rng *rand.Rand, i int) {
	m, most := s.Fleet.Members[i], 2*time.Second
	before := len(m.KilledAt())
	order := func(points []string) {
		if err := m.KillAtSome(points, rng); err != nil {
			t.Error(err)
		}
	}
	if len(s.points) > 0 {
		most *= 5
		order(s.points)
		defer order(nil)
	}
	for end := time.Now().Add(time.Duration(rng.Int64N(int64(most)))); time.Now().Before(end); rig.Pause(t, 10*time.Millisecond) {
		if at := m.KilledAt(); len(at) > before {
			t.Logf("%s killed itself: %s", s.Name(i), at[before])
			seeds.Killed(t, at[before])
			return
		}
	}
	seeds.Count(t, "kills", 1)
}

// diesRepairing waits until a lost node is as it should be, while agents kill themselves at some of the stage's points
// that begin so, first where that was done least, and at no others: they come there only when they have watched the
// node for a while.
func (s *stage) diesRepairing(t *testing.T, begin []string, lacks func() string, among ...int) {
	t.Helper()
	points := slices.DeleteFunc(slices.Clone(s.points), func(point string) bool {
		return !slices.ContainsFunc(begin, func(b string) bool { return strings.HasPrefix(point, b) })
	})
	s.rand.Shuffle(len(points), func(a, b int) { points[a], points[b] = points[b], points[a] })
	slices.SortStableFunc(points, func(a, b string) int { return s.died[a] - s.died[b] })
	died := map[int]int{}
	for n, i := range among {
		m := s.Fleet.Members[i]
		var those []string
		for p := range min(4, len(points)) {
			those = append(those, points[(4*n+p)%len(points)])
		}
		died[i] = len(m.KilledAt())
		if err := m.KillAt(those, s.rand); err != nil {
			t.Fatal(err)
		}
	}
	again := func() {
		for _, i := range among {
			for _, at := range s.Fleet.Members[i].KilledAt()[died[i]:] {
				t.Logf("%s killed itself: %s", s.Name(i), at)
				seeds.Killed(t, at)
				s.died[at]++
				died[i]++
				s.killAgent(i)
				s.startAgent(t, i)
			}
		}
	}
	took := rig.Until(t, 10*time.Minute, func() string { // each death costs about a minute
		again()
		return lacks()
	})
	rig.Pause(t, time.Second) // what it lacked may have come of an effect after which an agent is to die
	for _, i := range among {
		if err := s.Fleet.Members[i].KillAt(nil, s.rand); err != nil {
			t.Fatal(err)
		}
	}
	again()
	t.Logf("the lost node is as it should be after %s", took)
}

// toggles switches the console of an application on and off until the returned
// function is called, which leaves it on.
func (s *stage) toggles(t *testing.T, a *app) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	rng := seeds.Split(s.rand)
	done.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second + time.Duration(rng.Int64N(int64(3*time.Second)))):
			}
			a.cfg.RemoteConsole = !a.cfg.RemoteConsole && ctx.Err() == nil
			s.configure(t, a)
		}
	})
	return func() {
		cancel()
		done.Wait()
		a.cfg.RemoteConsole = true
		s.configure(t, a)
	}
}

// killPoints loses the node of an application and takes it back, while agents
// are killed, half of them on either way.
func (s *stage) killPoints(t *testing.T, l loss, points int) {
	s.dropUnsafe(t)
	moves := s.apps["moves"]
	lost := s.nodeOf(t, moves)
	var rest []int
	for i := range s.Cluster.Nodes {
		if i != lost {
			rest = append(rest, i)
		}
	}
	t.Logf("%s is %s", s.Name(lost), l.name)
	stop := s.toggles(t, moves)
	l.lose(s, t, lost)
	at := s.isLost(t, lost)
	s.kills(t, points/2, rest...).Wait()
	t.Logf("%d agents were killed up to %s after it was Unknown", points/2, rig.Since(at))
	if len(s.points) > 0 {
		s.diesRepairing(t, repairing, func() string { return cmp.Or(s.lacksFence(t, lost), s.keeps(t, moves, lost)) }, rest...)
	}
	s.isReplaced(t, moves, lost, time.Now()) // agents that die all the time repair nothing
	rig.Until(t, 90*time.Second, func() string { return s.lacksFence(t, lost) })
	t.Logf("it is fenced %s after that", rig.Since(at))
	l.back(s, t, lost)
	if len(s.points) > 0 {
		s.diesRepairing(t, []string{"apps/unfence"}, func() string {
			if s.lacksFence(t, lost) == "" {
				return s.Name(lost) + " is still fenced"
			}
			return ""
		}, 0, 1, 2)
	}
	s.kills(t, points-points/2, 0, 1, 2).Wait()
	stop()
	s.allRest(t)
}

// nodeOf is where an application runs.
func (s *stage) nodeOf(t *testing.T, a *app) int {
	t.Helper()
	on := -1
	rig.Until(t, 30*time.Second, func() string {
		for i := range s.Cluster.Nodes {
			if s.runsOn(t, a, i) == "" {
				on = i
				return ""
			}
		}
		return describe(s.pods(t, a))
	})
	return on
}

// dropUnsafe removes what keeps a lost node from being fenced: what has data there
// only, and volumes of which nothing is known.
func (s *stage) dropUnsafe(t *testing.T) {
	t.Helper()
	lonely := s.apps["lonely"]
	if lonely == nil {
		return
	}
	s.deconfigure(t, lonely)
	s.remove(t, lonely.cfg.KubeName())
	rig.Until(t, 60*time.Second, func() string { return describe(s.pods(t, lonely)) })
	for i := range s.Cluster.Nodes {
		if err := s.Cluster.Client().StorageV1().VolumeAttachments().Delete(t.Context(), theirs(i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.foreign = s.foreigners(t)
}
