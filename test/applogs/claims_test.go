//go:build linux

package applogs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

const (
	// settles is how long two devices may differ that hear of a change from API
	// servers of their own.
	settles = 2 * time.Second
	// fresh is how long an agent that has started is left to look around.
	fresh = 10 * time.Second
	// alive is how old the last sign of life of a container that runs may be.
	alive = 4 * time.Second
)

// claims watches all the time that no two devices claim an application, but
// while both really have a copy of it.
type claims struct {
	stage *stage
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu      sync.Mutex
	apps    []*app
	agents  map[int]time.Time // since when the agent of a device runs; none: it does not
	since   map[string]time.Time
	wrongs  []string
	looks   int
	twice   int // claims of two that were seen
	longest time.Duration
}

func watchClaims(s *stage) *claims {
	ctx, stop := context.WithCancel(context.Background())
	c := &claims{stage: s, stop: stop, agents: map[int]time.Time{}, since: map[string]time.Time{}}
	c.done.Go(func() {
		for ctx.Err() == nil {
			c.look(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return c
}

func (c *claims) watch(apps ...*app) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apps = append(c.apps, apps...)
}

// agent notes that the agent of a device starts, or ends.
func (c *claims) agent(i int, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.agents, i); up {
		c.agents[i] = time.Now()
	}
}

func (c *claims) end(t *testing.T) {
	c.stop()
	c.done.Wait()
	for _, w := range c.wrongs {
		t.Error(w)
	}
	t.Logf("looked %d times who claims what, and found %d times two; the longest that two did without two copies: %s",
		c.looks, c.twice, c.longest.Round(time.Millisecond))
}

// look compares once what the devices claim with what they have.
func (c *claims) look(ctx context.Context) {
	c.mu.Lock()
	apps := slices.Clone(c.apps)
	c.mu.Unlock()
	now := map[string]bool{}
	for _, a := range apps {
		var of []int
		for i := range c.stage.Fleet.Members {
			status, _ := told[types.ENClusterAppStatus](c.stage, i, "ENClusterAppStatus", a)
			if c.settled(i) && status.ScheduledOnThisNode {
				of = append(of, i)
			}
		}
		if len(of) < 2 {
			continue
		}
		c.both()
		if without := slices.DeleteFunc(slices.Clone(of), func(i int) bool { return c.stage.hasCopy(ctx, a, i) }); len(without) > 0 {
			now[fmt.Sprintf("%s is claimed by the nodes %v, has no copy on %v", a.cfg.DisplayName, of, without)] = true
		}
	}
	c.count(now)
}

func (c *claims) both() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.twice++
}

func (c *claims) settled(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	began, up := c.agents[i]
	return up && time.Since(began) > fresh
}

func (c *claims) count(now map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	for what := range c.since {
		if !now[what] {
			delete(c.since, what)
		}
	}
	for what := range now {
		if _, ok := c.since[what]; !ok {
			c.since[what] = time.Now()
		}
		lasted := time.Since(c.since[what])
		c.longest = max(c.longest, lasted)
		if lasted > settles && !slices.ContainsFunc(c.wrongs, func(w string) bool { return strings.HasSuffix(w, what) }) {
			c.wrongs = append(c.wrongs, time.Now().Format(rig.Clock)+" for too long, "+what)
		}
	}
}

// hasCopy says whether an application runs on a device, or the cluster has a pod
// of it there.
func (s *stage) hasCopy(ctx context.Context, a *app, i int) bool {
	if last, _ := s.beat(a, i, ""); time.Since(last) < alive {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	pods, err := s.Cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + a.cfg.KubeName()})
	if err != nil {
		return true // who knows
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName == s.Name(i) {
			return true
		}
	}
	return false
}
