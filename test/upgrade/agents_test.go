//go:build linux && soak

package upgrade

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

// unknowable is what an agent cannot know where there is no k3s. An operator releases the
// change without it.
var unknowable = []string{"Snapshot", "EtcdHealthy", "Compatible", "RemovedAPIs"}

// site is three devices whose kube containers and operator are played here.
type site struct {
	*rig.Rig
	traffic *traffic
	runs    []devcluster.Release // on each host
	changed []string             // nodes, in the order in which they changed
	asked   []time.Time          // when the operator last released the change
}

// TestSoakAgentsUpgradeThreeServersToTheNextMinorVersion lets the agents decide which node
// changes, and when. One server has changed before, and has been taken back.
func TestSoakAgentsUpgradeThreeServersToTheNextMinorVersion(t *testing.T) {
	rig.NeedsHosts(t)
	s := &site{
		Rig:  rig.New(t, rig.Options{Name: "upgrade", Cluster: devcluster.Options{Hosts: true}}),
		runs: make([]devcluster.Release, 3), asked: make([]time.Time, 3),
	}
	s.traffic = newTraffic(t, s.Cluster)

	change(t, s.Cluster, s.traffic, 1, devcluster.NextMinor)
	change(t, s.Cluster, s.traffic, 1, devcluster.Usual)

	for i := range s.Fleet.Members {
		s.install(t, i)
	}
	s.Boot(t)
	for i, m := range s.Fleet.Members {
		s.stage(t, i)
		set(t, m, map[string]string{types.SettingK3sVersion: version(devcluster.NextMinor)})
	}
	rig.Within(t, rig.Patience*10*time.Minute, func() string { return s.step(t) })
	if got, want := strings.Join(s.changed, " "), "node-2 node-3 node-1"; got != want {
		t.Errorf("the nodes changed in the order %s, want %s", got, want)
	}
	for i := range s.Fleet.Members {
		if got := apiVersion(t, s.traffic, i); got != devcluster.NextMinor.Version() {
			t.Errorf("the API server of %s is of version %s", s.Name(i), got)
		}
	}
	rig.Until(t, 20*time.Second, func() string { return s.cordoned(t) })
	s.traffic.endWithin(t, longestSilence)
}

// version is that of a release, as k3s has it.
func version(r devcluster.Release) string { return r.Version() + "+k3s1" }

func set(t *testing.T, m *player.Member, settings map[string]string) {
	t.Helper()
	all := types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{}}
	for key, value := range settings {
		all.GlobalSettings[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemString, StrValue: value}
	}
	if err := m.ConfigureSettings(all); err != nil {
		t.Fatal(err)
	}
}

// program is a k3s of a release's version.
func program(r devcluster.Release) string {
	return "#!/bin/sh\necho 'k3s version " + version(r) + " (0123abcd)'\n"
}

// k3s is where the binary of a host is.
func (s *site) k3s(i int) string {
	return filepath.Join(s.Fleet.Members[i].Root, "persist/vault/kube/k3s/bin/k3s")
}

// install puts the k3s that the host runs on its disk.
func (s *site) install(t *testing.T, i int) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(s.k3s(i)), 0o755)
	if err = errors.Join(err, os.WriteFile(s.k3s(i), []byte(program(s.runs[i])), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// stage gives a host the k3s of the next minor version, as an operator does without internet.
func (s *site) stage(t *testing.T, i int) {
	t.Helper()
	next, path := program(devcluster.NextMinor), filepath.Join(t.TempDir(), "k3s-next")
	if err := os.WriteFile(path, []byte(next), 0o755); err != nil {
		t.Fatal(err)
	}
	s.command(t, i, "k3s", "stage", path, "--version", version(devcluster.NextMinor), "--sha256", fmt.Sprintf("%x", sha256.Sum256([]byte(next))))
}

// step does what the kube containers and the operator of the site have to do now, and says
// what the upgrade lacks, "" for nothing.
func (s *site) step(t *testing.T) string {
	t.Helper()
	var released []int
	missing := ""
	for i, m := range s.Fleet.Members {
		config, _ := m.Watch.KubeConfig.Get(types.Global)
		if config.K3sVersion != "" && config.K3sVersion != version(s.runs[i]) {
			released = append(released, i)
		}
		l := s.lifecycle(t, i)
		s.operate(t, i, l)
		if l.Phase != types.LifecycleIdle || s.runs[i] != devcluster.NextMinor {
			missing += fmt.Sprintf("\n%s: %s: %s", s.Name(i), l.Phase, l.Reason)
		}
	}
	if len(released) > 1 {
		t.Fatalf("the nodes of hosts %v change at a time", released)
	}
	for _, i := range released {
		config, _ := s.Fleet.Members[i].Watch.KubeConfig.Get(types.Global)
		if config.K3sVersion != version(devcluster.NextMinor) {
			t.Fatalf("k3s of %s is to become %s", s.Name(i), config.K3sVersion)
		}
		t.Logf("%s changes", s.Name(i))
		change(t, s.Cluster, s.traffic, i, devcluster.NextMinor)
		s.runs[i], s.changed = devcluster.NextMinor, append(s.changed, s.Name(i))
		if raw, err := os.ReadFile(s.k3s(i)); err != nil || string(raw) != program(devcluster.NextMinor) {
			t.Errorf("the staged binary is not in its place on %s: %q, %v", s.Name(i), raw, err)
		}
	}
	return missing
}

// lifecycle is what a node's agent says of the change.
func (s *site) lifecycle(t *testing.T, i int) (l types.KubeLifecycle) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.Fleet.Members[i].TopicDir("KubeLifecycle"), types.Global+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return l
	}
	if err := errors.Join(err, json.Unmarshal(raw, &l)); err != nil {
		t.Fatal(err)
	}
	return l
}

// operate is what an operator does at a node when it is its turn: release what the agent
// cannot know.
func (s *site) operate(t *testing.T, i int, l types.KubeLifecycle) {
	t.Helper()
	if l.Phase != types.LifecycleWaits || l.To != version(devcluster.NextMinor) || s.runs[i] == devcluster.NextMinor {
		return
	}
	var release, other bool
	for _, p := range l.Preconditions {
		switch {
		case p.Holds:
		case slices.Contains(unknowable, p.Name):
			release = true
		case p.Name == "Turn" || p.Release:
			other = true
		}
	}
	if release && !other && time.Since(s.asked[i]) > 10*time.Second { // the agent has to hear of the last one
		s.asked[i] = time.Now()
		s.command(t, i, "k3s", "release", l.To)
	}
}

// cordoned names a node that is, "" for none.
func (s *site) cordoned(t *testing.T) string {
	list, err := s.Cluster.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, n := range list.Items {
		if n.Spec.Unschedulable {
			return n.Name + " is cordoned"
		}
	}
	return ""
}

func (s *site) command(t *testing.T, i int, args ...string) {
	t.Helper()
	out, err := s.Fleet.Members[i].Command(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: zedkube %s: %s", s.Name(i), strings.Join(args, " "), strings.SplitN(string(out), "\n", 2)[0])
}
