//go:build linux

// Package metrics proves what the agent says of the use of nodes, pods and
// containers against real kubelets, and the command that shows it.
package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster of three hosts with a device on each.
type stage struct {
	cluster *devcluster.Cluster
	fleet   *player.Fleet
	watched []*history // what each device's KubeNodeMetrics said
	burner  *meter

	mu   sync.Mutex
	said []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	program := agent.Build(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Log: t.Output(), Hosts: true, Real: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("the cluster stands after %s", since(began))
	dir, err := os.MkdirTemp("", "metrics-") // sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &stage{cluster: cluster, burner: newMeter(fmt.Sprintf("--cpu=%g", burns))}
	t.Cleanup(s.burner.end)
	s.fleet, err = player.NewFleet(context.Background(), cluster, player.FleetOptions{Dir: dir, Program: []string{program}, Say: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(t) })
	s.createApps(t) // their containers go on while the devices boot
	for i, m := range s.fleet.Members {
		s.cluster.StopKubelet(i) // it comes back with the boot id of the device
		s.watched = append(s.watched, watch(filepath.Join(m.TopicDir("KubeNodeMetrics"), types.Global+".json")))
	}
	for _, m := range s.fleet.Members {
		if err := m.Boot(context.Background()); err != nil { // the device outlives this function
			t.Fatal(err)
		}
	}
	return s
}

// end switches everything off and looks at what was left behind.
func (s *stage) end(t *testing.T) {
	for _, h := range s.watched {
		h.end()
	}
	if err := s.fleet.Close(); err != nil {
		t.Error(err)
	}
	for _, m := range s.fleet.Members {
		for _, how := range m.Ended() {
			t.Errorf("%s: the agent ended by itself: %s", m.Name, how)
		}
	}
	if t.Failed() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Log(strings.Join(s.said, "\n"))
	}
}

func (s *stage) hear(device, agent, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf("%s %s %s: %s", time.Now().Format("15:04:05.000"), device, agent, text))
}

// history is every value that a file has had.
type history struct {
	path string
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	values []types.KubeNodeMetrics
}

func watch(path string) *history {
	h := &history{path: path, stop: make(chan struct{})}
	h.done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		var was time.Time
		for {
			select {
			case <-h.stop:
				return
			case <-tick.C:
			}
			info, err := os.Stat(path)
			if err != nil || info.ModTime().Equal(was) {
				continue
			}
			v, err := read[types.KubeNodeMetrics](path)
			if err != nil {
				continue
			}
			was = info.ModTime()
			h.mu.Lock()
			h.values = append(h.values, v)
			h.mu.Unlock()
		}
	})
	return h
}

func (h *history) end() { close(h.stop); h.done.Wait() }

func (h *history) all() []types.KubeNodeMetrics {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.values)
}

// last is the newest value; zero for none.
func (h *history) last() (v types.KubeNodeMetrics) {
	if all := h.all(); len(all) > 0 {
		v = all[len(all)-1]
	}
	return v
}

func read[T any](path string) (v T, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}

func since(at time.Time) time.Duration { return time.Since(at).Round(10 * time.Millisecond) }

// until waits for missing to return "", and says how long that took.
func until(t *testing.T, within time.Duration, missing func() string) time.Duration {
	t.Helper()
	for began := time.Now(); ; {
		what := missing()
		if what == "" {
			return since(began)
		}
		if time.Since(began) > within {
			t.Fatalf("after %s: %s", within, what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// needsPods skips where nodes cannot be real, but not on a build machine.
func needsPods(t *testing.T) {
	t.Helper()
	err := devcluster.CanRunPods()
	if err != nil && !devcluster.MaySkip(err) {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}
