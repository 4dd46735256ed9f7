package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// youngKube is a kube container that takes its time.
type youngKube struct {
	player.ClusterNode
	runs atomic.Bool
}

// Join fails while k3s does not run; then the Node is there, without its roles.
func (k *youngKube) Join(ctx context.Context, bootID string) ([]byte, error) {
	if !k.runs.Load() {
		return nil, errors.New("k3s does not run yet")
	}
	kubeconfig, err := k.ClusterNode.Join(ctx, bootID)
	return kubeconfig, errors.Join(err, k.Forget(ctx))
}

// k3s NODE waits|runs: before the device boots, that its k3s is in no hurry; then
// that it runs, on a Node without roles.
func k3s(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	switch kube := m.Kube.(type) {
	case player.ClusterNode:
		m.Kube = &youngKube{ClusterNode: kube}
	case *youngKube:
		kube.runs.Store(args[1] == "runs")
	}
	return nil
}

// setCluster is cluster NODE UUID: the controller tells the device that its cluster is this one.
func setCluster(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	id, err := uuid.Parse(args[1])
	if err != nil {
		return err
	}
	return m.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { c.ClusterID.UUID = id })
}

// hear keeps what the agents of a device say.
func (s *story) hear(device, agent, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[device] += agent + " " + text + "\n"
}

// said NODE PATTERN: waits until an agent of the device has said this.
func said(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return mismatch("what the agents of "+args[0]+" have said", s.heard[args[0]], args[1])
	})
}

// unsaid NODE PATTERN: none of them has.
func unsaid(s *story, _ *testscript.TestScript, args []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := regexp.MustCompile(args[1]).FindString(s.heard[args[0]]); found != "" {
		return fmt.Errorf("an agent of %s has said %s", args[0], found)
	}
	return nil
}

// waits PATTERN FLAGS: zedkube join wait with these flags goes on, and prints this.
func waits(s *story, ts *testscript.TestScript, args []string) error {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	pattern, err := regexp.Compile(args[0])
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "zedkube"), append([]string{"join", "wait"}, args[1:]...)...)
	cmd.Dir = ts.Getenv("WORK")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	var told strings.Builder
	for lines := bufio.NewScanner(out); !pattern.MatchString(told.String()) && lines.Scan(); {
		fmt.Fprintln(&told, lines.Text())
	}
	cancel()
	_ = cmd.Wait() // it is killed
	if !pattern.MatchString(told.String()) {
		return fmt.Errorf("it printed %q", told.String())
	}
	return nil
}
