package player

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

// ContainerMode is what becomes of a version that k3s is to run.
type ContainerMode string

// The modes. The kube container downloads a version that is not on the disk, after it has
// stopped k3s.
const (
	ContainerHealthy ContainerMode = "healthy" // it comes up
	ContainerOffline ContainerMode = "offline" // nothing is downloaded: what is on the disk starts again
	ContainerLoops   ContainerMode = "loops"   // what ran before starts and is stopped, again and again
	ContainerPanics  ContainerMode = "panics"  // nothing starts until what runs is wanted again
)

// K3sBinary is where the kube container has k3s, below the root.
const K3sBinary = "persist/vault/kube/k3s/bin/k3s"

// K3sOverride is the file of the user's own configuration, below the root.
const K3sOverride = "persist/vault/k3s-user-override.yaml"

// How often the played kube container looks, and begins its endless loop again; EVE's does both
// every 15 s.
const (
	containerPeriod = 300 * time.Millisecond
	loopPeriod      = 5 * time.Second
)

// Stops counts of how many nodes k3s is stopped at once, and notes which versions they ran.
type Stops struct {
	mu   sync.Mutex
	down map[string]bool
	most int
	ran  []string // "node version", one after the other
}

func (s *Stops) stop(node string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down == nil {
		s.down = map[string]bool{}
	}
	delete(s.down, node)
	if is {
		s.down[node] = true
	}
	s.most = max(s.most, len(s.down))
}

func (s *Stops) runs(node, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, node+" "+version)
}

// Seen are the versions that came up, with their nodes, and of how many nodes k3s was
// stopped at once at most.
func (s *Stops) Seen() (ran []string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.ran...), s.most
}

// KubeContainer plays what the kube container of a member does with KubeConfig and the override file. Its k3s is a
// script that prints a version, beside the kubelet of the cluster.
type KubeContainer struct {
	member *Member
	node   ClusterNode
	stops  *Stops

	mu   sync.Mutex
	mode ContainerMode
	runs string // the version that runs, or ran last
	down bool
	file string    // the override with which it runs
	loop time.Time // when ContainerLoops began last
}

// NewKubeContainer is one whose k3s of that version runs.
func NewKubeContainer(m *Member, stops *Stops, version string) (*KubeContainer, error) {
	c := &KubeContainer{member: m, node: m.Kube.(ClusterNode), stops: stops, mode: ContainerHealthy, runs: version}
	return c, c.install(version)
}

// Mode changes what becomes of a version that is new.
func (c *KubeContainer) Mode(mode ContainerMode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode = mode
}

// Run follows KubeConfig until ctx is done.
func (c *KubeContainer) Run(ctx context.Context) {
	tick := time.NewTicker(containerPeriod)
	defer tick.Stop()
	for {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.member.say("kube", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *KubeContainer) look(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	want, err := c.wanted()
	raw, _ := os.ReadFile(filepath.Join(c.member.Root, K3sOverride))
	restarts := string(raw) != c.file
	if err != nil || want == "" || want == c.runs && !c.down && !restarts {
		return err
	}
	c.file = string(raw)
	if c.mode == ContainerLoops && time.Since(c.loop) < loopPeriod {
		return nil
	}
	c.loop = time.Now()
	if !c.down {
		c.member.say("kube", "stops k3s "+c.runs+" for "+want)
		c.stops.stop(c.member.Name, true)
		c.node.Cluster.StopKubelet(c.node.Index)
		c.down = true
	}
	disk, err := c.onDisk(ctx)
	if err != nil {
		return err
	}
	starts := disk
	switch {
	case want == c.runs: // it is back; a binary beside it is its owner's to put back
		starts = want
	case c.mode == ContainerLoops:
		starts = c.runs
	case c.mode == ContainerPanics:
		return nil
	case c.mode == ContainerHealthy && disk != want:
		if err := c.install(want); err != nil {
			return err
		}
		starts = want
	}
	if err := c.node.Cluster.SetKubeletVersion(ctx, c.node.Index, starts); err != nil {
		return err
	}
	if err := c.node.Cluster.StartKubelet(c.node.Index); err != nil {
		return err
	}
	c.stops.stop(c.member.Name, false)
	if restarts {
		c.stops.runs(c.member.Name, "override")
	}
	if c.down = false; c.runs != starts {
		c.stops.runs(c.member.Name, starts)
	}
	c.runs = starts
	return nil
}

// wanted is what KubeConfig says, "" for nothing.
func (c *KubeContainer) wanted() (string, error) {
	raw, err := os.ReadFile(filepath.Join(c.member.Root, "persist/status/zedkube/KubeConfig/global.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var config types.KubeConfig
	if err == nil {
		err = json.Unmarshal(raw, &config)
	}
	return config.K3sVersion, err
}

// onDisk is the version that the binary prints.
func (c *KubeContainer) onDisk(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "/bin/sh", filepath.Join(c.member.Root, K3sBinary), "--version").Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) < 3 {
		return "", fmt.Errorf("ask k3s for its version: %q, %w", out, err)
	}
	return words[2], nil
}

func (c *KubeContainer) install(version string) error {
	path := filepath.Join(c.member.Root, K3sBinary)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", []byte("#!/bin/sh\necho 'k3s version "+version+" (0123abcd)'\n"), 0o755); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
