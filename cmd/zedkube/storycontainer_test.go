package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// container NODE MODE: the node has a kube container that follows KubeConfig, in this mode from now on.
func container(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	mode := player.ContainerMode(args[1])
	if !slices.Contains([]player.ContainerMode{player.ContainerHealthy, player.ContainerOffline, player.ContainerLoops, player.ContainerPanics}, mode) {
		return fmt.Errorf("no mode %q", mode)
	}
	if s.containers[m.Name] == nil {
		c, err := player.NewKubeContainer(m, &s.stops, devcluster.KubeletVersion)
		if err != nil {
			return err
		}
		s.containers[m.Name] = c
		s.playing.Go(func() { c.Run(s.plugged) })
	}
	s.containers[m.Name].Mode(mode)
	return nil
}

// stepPatience is how long a step is waited for, from the step before it: several looks at
// all Leases, of 20 s each, on a machine that does much else.
const stepPatience = 4 * patience

// killAt is killat NODE STEP: SIGKILL for the node's zedkube as soon as its journal says that a
// change of k3s is at this step, and it starts again.
func killAt(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	path := filepath.Join(m.Root, "persist/status/zedkube/KubeLifecycleJournal/global.json")
	seen := ""
	for ends := time.Now().Add(stepPatience); time.Now().Before(ends); time.Sleep(time.Millisecond) {
		var j types.KubeLifecycleJournal
		raw, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(raw, &j)
		}
		if seen = fmt.Sprintf("%s, %v", raw, err); err == nil && string(j.Step) == args[1] {
			m.KillProgram()
			return m.StartProgram()
		}
	}
	return fmt.Errorf("after %s the journal of %s is %s", stepPatience, args[0], seen)
}

// ran [NODE VERSION]...: waits until exactly these versions have come up, in this order. k3s was
// never stopped on two nodes at once.
func ran(s *story, _ *testscript.TestScript, args []string) error {
	want := []string{}
	for pair := range slices.Chunk(args, 2) {
		want = append(want, pair[0]+" "+pair[1])
	}
	return within(stepPatience, func() string {
		got, most := s.stops.Seen()
		if most > 1 {
			return fmt.Sprintf("k3s was stopped on %d nodes at once", most)
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("these came up: %q, not %q", got, want)
		}
		return ""
	})
}
