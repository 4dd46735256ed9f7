//go:build linux

// Package metrics proves what the agent says of the use of nodes, pods and
// containers against real kubelets, and the command that shows it.
package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster of three hosts with a device on each.
type stage struct {
	*rig.Rig
	watched []*history // what each device's KubeNodeMetrics said
	burner  *meter
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{burner: newMeter(fmt.Sprintf("--cpu=%g", burns))}
	t.Cleanup(s.burner.end)
	s.Rig = rig.New(t, rig.Options{Name: "metrics", Cluster: devcluster.Options{Hosts: true, Real: true}})
	s.createApps(t) // their containers go on while the devices boot
	for i, m := range s.Fleet.Members {
		s.Cluster.StopKubelet(i) // it comes back with the boot id of the device
		h := watch(filepath.Join(m.TopicDir("KubeNodeMetrics"), types.Global+".json"))
		t.Cleanup(h.end)
		s.watched = append(s.watched, h)
	}
	s.Boot(t)
	return s
}

// history is every value that a file has had.
type history struct {
	path string
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	values []types.KubeNodeMetrics
}

func watch(path string) *history {
	h := &history{path: path, stop: make(chan struct{})}
	h.done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		var was time.Time
		for {
			select {
			case <-h.stop:
				return
			case <-tick.C:
			}
			info, err := os.Stat(path)
			if err != nil || info.ModTime().Equal(was) {
				continue
			}
			v, err := read[types.KubeNodeMetrics](path)
			if err != nil {
				continue
			}
			was = info.ModTime()
			h.mu.Lock()
			h.values = append(h.values, v)
			h.mu.Unlock()
		}
	})
	return h
}

func (h *history) end() { close(h.stop); h.done.Wait() }

func (h *history) all() []types.KubeNodeMetrics {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.values)
}

// last is the newest value; zero for none.
func (h *history) last() (v types.KubeNodeMetrics) {
	if all := h.all(); len(all) > 0 {
		v = all[len(all)-1]
	}
	return v
}

func read[T any](path string) (v T, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}
