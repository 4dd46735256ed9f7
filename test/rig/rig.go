//go:build linux

// Package rig is what the tests of whole clusters stand on: a control plane, a
// fleet of devices with the real program, and waiting for what must come.
package rig

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

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
)

// Options say what a rig is made of.
type Options struct {
	Name    string // begins the name of the directory of the devices
	Cluster devcluster.Options
	Program string // path of the agent; "" builds it

	// Arrange prepares the cluster before it has devices. It may be nil.
	Arrange func(ctx context.Context, c *devcluster.Cluster) error
}

// Rig is a cluster with a device for each node. The devices are off at first.
type Rig struct {
	Cluster *devcluster.Cluster
	Fleet   *player.Fleet
	Dir     string
	// Closed is called when the devices are off and before the control plane
	// stops. It may be nil.
	Closed func()

	alive  context.Context // until the devices are off
	mu     sync.Mutex
	events map[string][]string // by device
}

// New starts the control plane and prepares the devices. The end of the test
// switches everything off, and fails it if an agent ended by itself, panicked or
// raced.
func New(t *testing.T, o Options) *Rig {
	t.Helper()
	if o.Program == "" {
		o.Program = agent.Build(t)
	}
	o.Cluster.Log = t.Output()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	began := time.Now()
	cluster, err := devcluster.Start(ctx, o.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if o.Arrange != nil {
		if err := o.Arrange(ctx, cluster); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the cluster is there after %s", Since(began))
	r := &Rig{Cluster: cluster, Dir: directory(t, o.Name), events: map[string][]string{}}
	alive, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	r.alive = alive
	r.Fleet, err = player.NewFleet(alive, cluster, player.FleetOptions{Dir: r.Dir, Program: []string{o.Program}, Say: r.Event})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.end(t) })
	return r
}

// directory is where the devices live; after a failure it stays. Sockets want a
// short path.
func directory(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", name+"-")
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

// Boot switches devices on, all of them where none is named.
func (r *Rig) Boot(t *testing.T, of ...int) {
	t.Helper()
	for i, m := range r.Fleet.Members {
		if len(of) > 0 && !slices.Contains(of, i) {
			continue
		}
		if err := m.Boot(r.alive); err != nil { // a device outlives the function that switches it on
			t.Fatal(err)
		}
	}
}

// Name is that of a device's node.
func (r *Rig) Name(i int) string { return r.Fleet.Members[i].Name }

// Heard reports whether an agent of a device has said something with text in it.
func (r *Rig) Heard(m *player.Member, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.events[m.Name], func(line string) bool { return strings.Contains(line, text) })
}

// Event notes what happened to a device, for the log of a test that fails.
func (r *Rig) Event(device, agent, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[device] = append(r.events[device], fmt.Sprintf("%s %s: %s", time.Now().Format(Clock), agent, text))
}

// forbidden is what no log of an agent may hold.
var forbidden = regexp.MustCompile(`(?m)^(WARNING: DATA RACE|panic: |fatal error: ).*$`)

// end switches everything off and looks at what was left behind.
func (r *Rig) end(t *testing.T) {
	if t.Failed() { // what the agents published last stays as it was
		for _, m := range r.Fleet.Members {
			m.KillProgram()
		}
	}
	if err := r.Fleet.Close(); err != nil {
		t.Error(err)
	}
	if r.Closed != nil {
		r.Closed()
	}
	for _, m := range r.Fleet.Members {
		itself := len(m.KilledAt())
		for _, how := range m.Ended() {
			if itself > 0 && how == "signal: killed" {
				itself--
				continue
			}
			t.Errorf("%s: the agent ended by itself: %s", m.Name, how)
		}
		log, err := os.ReadFile(filepath.Join(m.Root, "zedkube.log"))
		if err != nil {
			t.Error(err)
		}
		if found := forbidden.Find(log); found != nil {
			t.Errorf("%s: the agent's log says %s", m.Name, found)
		}
	}
	if t.Failed() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for device, lines := range r.events {
			t.Logf("%s:\n%s", device, strings.Join(lines, "\n"))
		}
	}
}
