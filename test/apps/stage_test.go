//go:build linux

// Package apps holds the stories of virtual machines whose nodes are lost: three
// devices on hosts of their own with the real agent, the real controllers of
// Kubernetes and KubeVirt, and played kubelets, disks and attachers.
package apps

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

// stage is a cluster of three hosts with a device on each.
type stage struct {
	cluster *devcluster.Cluster
	fleet   *player.Fleet
	sites   *sites
	judge   *judge
	apps    map[string]*app
	foreign string // what is not ours, as it was

	mu   sync.Mutex
	said map[string][]string // by device
}

func newStage(t *testing.T) *stage {
	t.Helper()
	program := agent.Build(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Log: t.Output(), Hosts: true, KubeVirt: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("the cluster stands after %s", since(began))
	if err := cluster.InstallLonghorn(ctx); err != nil {
		t.Fatal(err)
	}
	s := &stage{cluster: cluster, said: map[string][]string{}, apps: map[string]*app{}}
	s.fleet, err = player.NewFleet(context.Background(), cluster, player.FleetOptions{Dir: directory(t), Program: []string{program}, Say: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	s.sites = newSites(t, cluster)
	s.judge = newJudge(s)
	t.Cleanup(func() { s.end(t) })
	return s
}

// directory is where the devices live; after a failure it stays. Sockets want a
// short path.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "apps-")
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
	if err := s.fleet.Close(); err != nil {
		t.Error(err)
	}
	s.judge.end(t)
	s.sites.end(t)
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

// clock is how times are told.
const clock = "15:04:05.000"

func since(t time.Time) time.Duration { return time.Since(t).Round(10 * time.Millisecond) }

func (s *stage) name(i int) string { return s.cluster.Nodes[i].Name }

// patience is how many times longer than a quiet machine needs a test waits for
// what must come: other tests may have both processors.
const patience = 4

// until waits for missing to return "", which takes up to quiet on a quiet
// machine, and tells how long that took.
func until(t *testing.T, quiet time.Duration, missing func() string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		what := missing()
		if what == "" {
			return since(began)
		}
		if time.Since(began) > patience*quiet {
			t.Fatalf("after %s: %s", since(began), what)
		}
		pause(t, 50*time.Millisecond)
	}
}

// lasts watches for some time that wrong goes on returning "".
func lasts(t *testing.T, long time.Duration, wrong func() string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < long; {
		if what := wrong(); what != "" {
			t.Fatalf("after %s: %s", since(began), what)
		}
		pause(t, 100*time.Millisecond)
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

// needsHosts skips where there can be no hosts, but not on a build machine.
func needsHosts(t *testing.T) {
	t.Helper()
	err := devcluster.CanHost()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}
