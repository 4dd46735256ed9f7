package applogs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/logjudge"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	appID = "9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"
	podID = "7e0f"
)

// stage is a node with one application, and what reads its logs.
type stage struct {
	t       *testing.T
	kubelet *kubelet
	judge   *logjudge.Judge
	dir     string
	pipe    *pipe
	agent   *Component
	configs *pubsub.Table[types.AppInstanceConfig]
	info    *pubsub.Table[types.EdgeNodeInfo]
	nodes   *pubsub.Table[types.Node]
	pods    *pubsub.Table[types.Pod]
	api     *pubsub.Table[types.APIStatus]
	stop    context.CancelFunc
	ended   chan struct{}
	tune    func(*Component)
}

// pipe is the way to the judge. Once it is dead nothing that is written arrives,
// as with a process that was killed.
type pipe struct {
	mu     sync.Mutex
	to     io.Writer
	dead   bool
	full   chan struct{} // not nil: nobody reads until it is closed
	killer func(arrived bool)
	writes []int
}

var errDead = errors.New("killed")

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	full := p.full
	p.mu.Unlock()
	if full != nil {
		<-full
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killer != nil {
		p.killer(false)
	}
	if p.dead {
		return 0, errDead
	}
	p.writes = append(p.writes, len(b))
	n, err := p.to.Write(b)
	if p.killer != nil {
		p.killer(true)
	}
	if p.dead {
		return 0, errDead
	}
	return n, err
}

func newStage(t *testing.T, containers ...string) *stage {
	t.Helper()
	s := &stage{
		t: t, kubelet: newKubelet(), judge: &logjudge.Judge{}, dir: t.TempDir(),
		configs: &pubsub.Table[types.AppInstanceConfig]{}, info: &pubsub.Table[types.EdgeNodeInfo]{},
		nodes: &pubsub.Table[types.Node]{}, pods: &pubsub.Table[types.Pod]{}, api: &pubsub.Table[types.APIStatus]{},
	}
	_ = s.configs.Publish(appID, types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.MustParse(appID)}, DisplayName: "web",
		FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper},
	})
	_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
	_ = s.nodes.Publish("n1", types.Node{Name: "n1"})
	_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
	for _, c := range containers {
		s.kubelet.restart(c)
	}
	s.show(containers...)
	return s
}

// show makes the API server know the containers as they are.
func (s *stage) show(containers ...string) {
	p := types.Pod{Namespace: "eve-kube-app", Name: "web-1", UID: podID, NodeName: "n1", Phase: types.PodRunning, App: "web-9f27b-0"}
	for _, c := range containers {
		p.Containers = append(p.Containers, s.kubelet.row(c))
	}
	_ = s.pods.Publish(p.Key(), p)
}

func (s *stage) journal() string { return filepath.Join(s.dir, "journal") }

// start starts an agent on what the last one left.
func (s *stage) start() {
	log := logrus.New()
	log.SetOutput(s.t.Output())
	if !testing.Verbose() {
		log.SetOutput(io.Discard)
	}
	s.pipe = &pipe{to: s.judge}
	s.agent = &Component{
		Log: log, Pulse: &loop.Pulse{}, Configs: s.configs, Info: s.info, Nodes: s.nodes, AppPods: s.pods, API: s.api, Kube: s.kubelet,
		Out: s.pipe, MaxRecord: LargestRecord, Streams: 64, Rate: DefaultRate, Burst: DefaultBurst,
		Journal: s.journal(), Checkpoints: filepath.Join(s.dir, "persist", "checkpoints"),
	}
	_ = os.MkdirAll(filepath.Join(s.dir, "persist"), 0o700)
	if s.tune != nil {
		s.tune(s.agent)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(s.t.Context())
	s.ended = make(chan struct{})
	go func(c *Component, ended chan struct{}) { defer close(ended); c.Run(ctx) }(s.agent, s.ended)
}

// end stops the agent in good order.
func (s *stage) end() {
	s.stop()
	<-s.ended
}

// kill ends the agent as SIGKILL does: what it would write next never arrives,
// and the journal is as it was then.
func (s *stage) kill() {
	s.pipe.mu.Lock()
	s.pipe.dead = true
	raw, err := os.ReadFile(s.journal())
	s.pipe.mu.Unlock()
	if err != nil {
		s.t.Fatal(err)
	}
	s.end()
	if err := os.WriteFile(s.journal(), raw, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// dieAt makes the agent die when it is about to write for the nth time from
// now; buried starts the next one.
func (s *stage) dieAt(n int) (buried func()) {
	var raw []byte
	s.pipe.mu.Lock()
	defer s.pipe.mu.Unlock()
	s.pipe.killer = func(arrived bool) {
		if n -= btoi(!arrived); n == 0 && !arrived && !s.pipe.dead {
			s.pipe.dead = true
			raw, _ = os.ReadFile(s.journal())
		}
	}
	return func() {
		s.pipe.mu.Lock()
		dead := s.pipe.dead
		s.pipe.mu.Unlock()
		if !dead {
			s.kill()
		} else if s.end(); os.WriteFile(s.journal(), raw, 0o600) != nil {
			s.t.Fatal("no journal")
		}
		s.start()
		synctest.Wait()
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// marks are the agent's own words.
func (s *stage) marks() (texts []string) {
	for _, m := range s.judge.Marks() {
		texts = append(texts, strings.TrimPrefix(m.Msg, "zedkube: "))
	}
	return texts
}
