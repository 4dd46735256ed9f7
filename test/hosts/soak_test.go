//go:build linux && soak

package hosts

import (
	"testing"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
)

// TestSoakKilledReportersAreFollowed is the story of TestHosts for longer.
func TestSoakKilledReportersAreFollowed(t *testing.T) {
	rig.NeedsHosts(t)
	s := newStage(t, agent.Build(t), devcluster.Options{Nodes: 3, Spare: 2}, 3)
	s.threeForm(t)
	s.killedAreFollowed(t, seeds.Some(50, 5))
}
