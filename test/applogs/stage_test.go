//go:build linux

// Package applogs holds the stories of container applications on real nodes:
// three devices on hosts of their own with the real agent, kubelets, containerd
// and runc. What the applications print, and that they run at all, is told by
// themselves on the disks of the nodes.
package applogs

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster of hosts with a device on each.
type stage struct {
	*rig.Rig
	books  []*book
	claims *claims
	apps   map[string]*app
	rand   *rand.Rand // of the story; goroutines split theirs off
}

// rotates is the size at which the kubelets rotate logs.
const rotates = "100Ki"

func newStage(t *testing.T) *stage {
	t.Helper()
	s := newStageOf(t, 3, rotates)
	s.rand = seeds.Rand(t)
	return s
}

// newStageOf is a cluster of some hosts, whose kubelets rotate logs of that size.
func newStageOf(t *testing.T, nodes int, rotates string) *stage {
	t.Helper()
	cluster := devcluster.Options{Nodes: nodes, Hosts: true, Real: true, LogMaxSize: rotates}
	s := &stage{Rig: rig.New(t, rig.Options{Name: "applogs", Cluster: cluster}), apps: map[string]*app{}}
	for _, m := range s.Fleet.Members {
		b, err := newBook(filepath.Join(m.Root, "agent.log"))
		if err != nil {
			t.Fatal(err)
		}
		m.Log = b.pipe
		s.books = append(s.books, b)
	}
	s.claims = watchClaims(s)
	s.Closed = func() {
		s.claims.end(t)
		for i, b := range s.books {
			for _, wrong := range b.end() {
				t.Errorf("%s: %s", s.Name(i), wrong)
			}
		}
	}
	return s
}
