//go:build linux

// Package apps holds the stories of virtual machines whose nodes are lost: three
// devices on hosts of their own with the real agent, the real controllers of
// Kubernetes and KubeVirt, and played kubelets, disks and attachers.
package apps

import (
	"context"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster of three hosts with a device on each.
type stage struct {
	*rig.Rig
	sites   *sites
	judge   *judge
	apps    map[string]*app
	foreign string         // what is not ours, as it was
	points  []string       // at which agents kill themselves; none: they are killed at any moment
	died    map[string]int // how often at each of them for a lost node
	rand    *rand.Rand     // of the story; goroutines split theirs off
}

// newStage has the agent at program; "" builds it.
func newStage(t *testing.T, program string) *stage {
	t.Helper()
	longhorn := func(ctx context.Context, c *devcluster.Cluster) error { return c.InstallLonghorn(ctx) }
	s := &stage{
		Rig:  rig.New(t, rig.Options{Name: "apps", Program: program, Cluster: devcluster.Options{Hosts: true, KubeVirt: true}, Arrange: longhorn}),
		apps: map[string]*app{},
		died: map[string]int{},
		rand: seeds.Rand(t),
	}
	s.sites = newSites(t, s.Cluster)
	s.judge = newJudge(s)
	s.Closed = func() {
		s.judge.end(t)
		s.sites.end(t)
	}
	return s
}
