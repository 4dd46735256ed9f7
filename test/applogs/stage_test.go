//go:build linux

// Package applogs holds the stories of container applications on real nodes:
// three devices on hosts of their own with the real agent, kubelets, containerd
// and runc. What the applications print, and that they run at all, is told by
// themselves on the disks of the nodes.
package applogs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster of hosts with a device on each.
type stage struct {
	cluster *devcluster.Cluster
	fleet   *player.Fleet
	books   []*book
	claims  *claims
	apps    map[string]*app
	dir     string

	mu   sync.Mutex
	said []string
}

// rotates is the size at which the kubelets rotate logs.
const rotates = "100Ki"

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageOf(t, 3, rotates)
}

// newStageOf is a cluster of so many hosts, whose kubelets rotate logs of that
// size.
func newStageOf(t *testing.T, nodes int, rotates string) *stage {
	t.Helper()
	program := agent.Build(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := time.Now()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Log: t.Output(), Nodes: nodes, Hosts: true, Real: true, LogMaxSize: rotates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("the cluster stands after %s", since(began))
	s := &stage{cluster: cluster, apps: map[string]*app{}, dir: directory(t)}
	s.fleet, err = player.NewFleet(context.Background(), cluster, player.FleetOptions{Dir: s.dir, Program: []string{program}, Say: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.fleet.Members {
		b, err := newBook(filepath.Join(m.Root, "agent.log"))
		if err != nil {
			t.Fatal(err)
		}
		m.Log = b.pipe
		s.books = append(s.books, b)
	}
	s.claims = watchClaims(s)
	t.Cleanup(func() { s.end(t) })
	return s
}

// directory is where the devices live; after a failure it stays. Sockets want a
// short path.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "applogs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the devices' files are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// end switches everything off and looks at what was left behind.
func (s *stage) end(t *testing.T) {
	if err := s.fleet.Close(); err != nil {
		t.Error(err)
	}
	s.claims.end(t)
	for i, m := range s.fleet.Members {
		for _, how := range m.Ended() {
			t.Errorf("%s: the agent ended by itself: %s", m.Name, how)
		}
		for _, wrong := range s.books[i].end() {
			t.Errorf("%s: %s", m.Name, wrong)
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
	s.said = append(s.said, fmt.Sprintf("%s %s %s: %s", time.Now().Format(clock), device, agent, text))
}

// name is that of a device's node.
func (s *stage) name(i int) string { return s.fleet.Members[i].Name }

// clock is how times are told.
const clock = "15:04:05.000"

func since(at time.Time) time.Duration { return time.Since(at).Round(10 * time.Millisecond) }

// patience is how many times longer than a quiet machine needs a test waits for
// what must come: other tests may have both processors.
const patience = 4

// until waits for missing to return "", which takes up to quiet on a quiet
// machine, and says how long that took.
func until(t *testing.T, quiet time.Duration, missing func() string) time.Duration {
	t.Helper()
	return within(t, patience*quiet, missing)
}

// within waits for missing to return "", but no longer than the limit.
func within(t *testing.T, limit time.Duration, missing func() string) time.Duration {
	t.Helper()
	for began := time.Now(); ; {
		what := missing()
		if what == "" {
			return since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("after %s: %s", limit.Round(time.Millisecond), what)
		}
		pause(t, 50*time.Millisecond)
	}
}

func pause(t *testing.T, long time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	case <-time.After(long):
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
