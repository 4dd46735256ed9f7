//go:build linux && soak

package apps

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
)

// TestSoakKillPoints is the end of the story of TestMachines, for longer, and the agents kill themselves
// at the points that test/soak/reach.txt has for this scene.
func TestSoakKillPoints(t *testing.T) {
	rig.NeedsHosts(t)
	s := newStage(t, agent.BuildFailpoints(t))
	s.points = agent.Points(t, "lost-nodes")
	s.machinesRun(t)
	for round := range seeds.Some(10, 2) {
		l := []loss{cutting, killing}[round%2]
		t.Run(fmt.Sprintf("round %d, %s", round+1, l.name), func(t *testing.T) { s.killPoints(t, l, 12) })
		if t.Failed() {
			break
		}
	}
	passed := map[string]bool{}
	for _, m := range s.Fleet.Members {
		for _, point := range m.PassedPoints() {
			passed[point] = true
		}
	}
	t.Logf("no agent came to %q", slices.DeleteFunc(s.points, func(point string) bool { return passed[point] }))
}
