//go:build linux

// Package hosts holds the stories that need addresses, cables and a quorum that
// are real: three devices, each on a host of its own in network namespaces.
package hosts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster of hosts with a device on each.
type stage struct {
	cluster *devcluster.Cluster
	fleet   *player.Fleet
	reigns  *reigns
	ipv6    bool // the cluster's addresses are

	mu   sync.Mutex
	said map[string][]string // by device
}

// newStage starts the first host of a cluster. The devices are off, and the
// first so many of them are the masters.
func newStage(t *testing.T, program string, o devcluster.Options, masters int) *stage {
	t.Helper()
	o.Log, o.Hosts = t.Output(), true
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cluster, err := devcluster.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &stage{cluster: cluster, said: map[string][]string{}}
	dir := s.directory(t)
	s.fleet, err = player.NewFleet(context.Background(), cluster, player.FleetOptions{Dir: dir, Program: []string{program}, Say: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	s.reigns = watchReigns(s.fleet)
	t.Cleanup(func() { s.end(t) })
	for _, m := range s.fleet.Members { // which asks the controller every second
		item := types.ConfigItemValue{Key: types.SettingConfigInterval, ItemType: types.ConfigItemInt, IntValue: 1}
		if err := m.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{item.Key: item}}); err != nil {
			t.Fatal(err)
		}
	}
	s.setMasters(t, slices.Collect(upTo(masters))...)
	return s
}

// upTo counts from 0.
func upTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
}

// directory is where the devices live; after a failure it stays. Sockets want a
// short path.
func (s *stage) directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hosts-")
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
	s.reigns.end(t)
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
	s.said[device] = append(s.said[device], fmt.Sprintf("%s %s: %s", time.Now().Format("15:04:05.000"), agent, text))
}

// heard says whether an agent of a device has said something like that.
func (s *stage) heard(m *player.Member, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.said[m.Name], func(line string) bool { return strings.Contains(line, text) })
}

func (s *stage) id(i int) uuid.UUID { return s.fleet.IDs()[i] }

// setMasters is the controller's list of masters, by index.
func (s *stage) setMasters(t *testing.T, of ...int) {
	t.Helper()
	s.tell(t, func(c *types.EdgeNodeClusterConfig) {
		c.MasterNodeIDs = nil
		for _, i := range of {
			c.MasterNodeIDs = append(c.MasterNodeIDs, s.id(i))
		}
	})
}

// tell changes what the controller says of the cluster to every device.
func (s *stage) tell(t *testing.T, change func(*types.EdgeNodeClusterConfig)) {
	t.Helper()
	if err := s.fleet.ChangeCluster(change); err != nil {
		t.Fatal(err)
	}
}

// boot switches devices on.
func (s *stage) boot(t *testing.T, of ...int) {
	t.Helper()
	for _, i := range of {
		// A device lives longer than the story that switches it on.
		if err := s.fleet.Members[i].Boot(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// patience is how many times longer than a quiet machine needs a test waits for
// what must come: other tests may have both processors.
const patience = 4

// until waits for missing to return "", which takes up to quiet on a quiet
// machine.
func until(t *testing.T, quiet time.Duration, missing func() string) {
	t.Helper()
	within(t, patience*quiet, missing)
}

// within waits for missing to return "", and no longer than is promised.
func within(t *testing.T, limit time.Duration, missing func() string) {
	t.Helper()
	for end := time.Now().Add(limit); ; {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s: %s", limit, what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(10 * time.Millisecond):
		}
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
