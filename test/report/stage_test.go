//go:build linux

// Package report holds the proof that what the nodes of a cluster report is
// complete and honest: golden reports of known clusters, and a judge that reads
// every report while the cluster changes, the API server fails and agents die.
package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// clock is how times are told.
const clock = "15:04:05.000"

// stage is a cluster with a device for each node. The devices are off at first.
type stage struct {
	cluster *devcluster.Cluster
	fleet   *player.Fleet
	alive   context.Context

	mu   sync.Mutex
	said map[string][]string // by device
}

// newStage starts a cluster, and arranges it before it has devices.
func newStage(t *testing.T, nodes int, arrange func(ctx context.Context, c *devcluster.Cluster) error) *stage {
	t.Helper()
	program := agent.Build(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Log: t.Output(), Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := arrange(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	s := &stage{cluster: cluster, said: map[string][]string{}}
	alive, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	s.alive = alive
	s.fleet, err = player.NewFleet(alive, cluster, player.FleetOptions{Dir: directory(t), Program: []string{program}, Say: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(t) })
	t.Logf("the cluster is arranged after %s", time.Since(began).Round(100*time.Millisecond))
	return s
}

// boot switches all devices on.
func (s *stage) boot(t *testing.T) {
	t.Helper()
	for _, m := range s.fleet.Members {
		if err := m.Boot(s.alive); err != nil {
			t.Fatal(err)
		}
	}
}

// directory is where the devices live; after a failure it stays. Sockets want a
// short path.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "report-")
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

// disorder is what no log of an agent may hold.
var disorder = regexp.MustCompile(`(?m)^(WARNING: DATA RACE|panic: |fatal error: ).*$`)

// end switches everything off and looks at what was left behind.
func (s *stage) end(t *testing.T) {
	if t.Failed() { // as they said it last
		for _, m := range s.fleet.Members {
			m.KillProgram()
		}
	}
	if err := s.fleet.Close(); err != nil {
		t.Error(err)
	}
	for _, m := range s.fleet.Members {
		for _, how := range m.Ended() {
			t.Errorf("%s: the agent ended by itself: %s", m.Name, how)
		}
		log, err := os.ReadFile(filepath.Join(m.Root, "zedkube.log"))
		if err != nil {
			t.Error(err)
		}
		if found := disorder.Find(log); found != nil {
			t.Errorf("%s: the agent's log says %s", m.Name, found)
		}
	}
	if t.Failed() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for device, lines := range s.said {
			t.Logf("%s:\n%s", device, strings.Join(lines, "\n"))
		}
	}
}

func (s *stage) hear(device, agent, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said[device] = append(s.said[device], fmt.Sprintf("%s %s: %s", time.Now().Format(clock), agent, text))
}

func (s *stage) name(i int) string { return s.cluster.Nodes[i].Name }

// until waits for missing to return "", and tells how long that took.
func until(t *testing.T, within time.Duration, missing func() string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		what := missing()
		if what == "" {
			return time.Since(began).Round(10 * time.Millisecond)
		}
		if time.Since(began) > within {
			t.Fatalf("after %s: %s", within, what)
		}
		pause(t.Context(), 100*time.Millisecond)
	}
}

// pause waits so long, or until ctx is done: then it returns false.
func pause(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
	}
}
