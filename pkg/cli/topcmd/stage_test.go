package topcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// topStage is a device on which somebody runs "zedkube top".
type topStage struct {
	t     *testing.T
	root  string
	paths device.Paths
	out   bytes.Buffer
}

func newTopStage(t *testing.T) *topStage {
	t.Helper()
	s := &topStage{t: t, root: t.TempDir()}
	s.paths = device.Options{Root: s.root}.Paths()
	s.put("run/zedkube.pid", fmt.Sprint(os.Getpid()))
	s.put("run/zedkube.touch", "")
	s.touch(time.Now())
	return s
}

func (s *topStage) put(name, content string) {
	s.t.Helper()
	file := filepath.Join(s.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
		s.t.Fatal(err)
	}
}

// touch is the agent's sign of life.
func (s *topStage) touch(at time.Time) {
	s.t.Helper()
	if err := os.Chtimes(s.paths.Touch, at, at); err != nil {
		s.t.Fatal(err)
	}
}

func (s *topStage) publish(topic string, v any) {
	s.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.put("run/zedkube/"+topic+"/global.json", string(text))
}

// looks are the wishes that lie there for the agent.
func (s *topStage) looks() (all []types.MetricsLook) {
	files, _ := filepath.Glob(filepath.Join(s.root, "run/zedkube-cli/MetricsLook/*.json"))
	for _, file := range files {
		v, _, err := device.ReadRecord[types.MetricsLook](file)
		if err != nil {
			s.t.Error(err)
		}
		all = append(all, v)
	}
	return all
}

func (s *topStage) top(o topOptions, live bool, kube nodeAsker) *top {
	s.t.Helper()
	l, err := startMeasuring(s.paths)
	if err != nil {
		s.t.Fatal(err)
	}
	if o.sort == "" {
		o.sort = sortCPU
	}
	top := newTop(s.paths, o, terminal.Terminal{Writer: &s.out, Fd: -1, Live: live}, l)
	top.asking.kube = kube
	return top
}

// kubelets are nodes that answer, or do not.
type kubelets struct {
	nodes []string
	err   error
	fails map[string]error
	slow  map[string]bool

	mu    sync.Mutex
	asked map[string]int
	now   int
	most  int // at the same time
}

func (k *kubelets) FreshNodes(context.Context) (nodes []types.Node, err error) {
	for _, name := range k.nodes {
		nodes = append(nodes, types.Node{Name: name, Cores: 4})
	}
	return nodes, k.err
}

func (k *kubelets) NodeStats(ctx context.Context, node types.Node) (s types.KubeletStats, err error) {
	k.mu.Lock()
	if k.asked == nil {
		k.asked = map[string]int{}
	}
	k.asked[node.Name]++
	k.now++
	k.most = max(k.most, k.now)
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.now--
		k.mu.Unlock()
	}()
	if k.slow[node.Name] {
		<-ctx.Done()
		return s, ctx.Err()
	}
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
	s.Node = types.NodeMetrics{CPU: some(1e9), MemoryWorking: some(1 << 30), MemoryAvailable: some(3 << 30)}
	for _, namespace := range []string{"eve-kube-app", "kube-system"} {
		s.Pods = append(s.Pods, types.PodStats{Namespace: namespace, Name: "pump", UID: namespace, Sample: types.PodSample{At: time.Now(), CPU: some(7)}})
	}
	return s, k.fails[node.Name]
}
