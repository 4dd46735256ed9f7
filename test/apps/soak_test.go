//go:build linux && soak

package apps

import (
	"fmt"
	"testing"

	"github.com/zedkube/zedkube/test/rig"
)

// TestSoakKillPoints is the end of the story of TestMachines, for longer.
func TestSoakKillPoints(t *testing.T) {
	rig.NeedsHosts(t)
	s := newStage(t)
	s.machinesRun(t)
	for round := range 10 {
		l := []loss{cutting, killing}[round%2]
		t.Run(fmt.Sprintf("round %d, %s", round+1, l.name), func(t *testing.T) { s.killPoints(t, l, 30) })
		if t.Failed() {
			return
		}
	}
}
