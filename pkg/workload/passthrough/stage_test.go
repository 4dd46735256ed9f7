package passthrough

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// device is the UUID of the device whose Node is called name.
func device(name string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)) }

// host is the network interfaces of one, up or down.
type host struct {
	mu     sync.Mutex
	up     map[string]bool
	news   func()
	lost   chan error // ends Follow
	fails  error
	raises int
}

func (h *host) Raise(name string) (Raised, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.raises++
	up, ok := h.up[name]
	switch {
	case h.fails != nil:
		return Absent, h.fails
	case !ok:
		return Absent, nil
	case up:
		return WasUp, nil
	}
	h.up[name] = true
	return SetUp, nil
}

func (h *host) Follow(ctx context.Context, news func()) error {
	h.mu.Lock()
	h.news = news
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.news = nil
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-h.lost:
		return err
	}
}

// set makes a link up or down, or takes it away, and tells so.
func (h *host) set(name, state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.up[name] = state == "up"
	if state == "absent" {
		delete(h.up, name)
	}
	if h.news != nil && state != "up" {
		h.news()
	}
}

func (h *host) is(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch up, ok := h.up[name]; {
	case !ok:
		return "absent"
	case up:
		return "up"
	}
	return "down"
}

func (h *host) looks() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.raises
}

func (h *host) followed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.news != nil
}

// stage is a cluster of n1, n2 and n3, in fake time.
type stage struct {
	*testing.T
	nodes   pubsub.Table[types.Node]
	pods    pubsub.Table[types.Pod]
	api     pubsub.Table[types.APIStatus]
	cluster *kubetest.Cluster
	agents  map[string]*agent
}

// agent is the component on one node.
type agent struct {
	configs pubsub.Table[types.AppInstanceConfig]
	info    pubsub.Table[types.EdgeNodeInfo]
	word    pubsub.Table[types.ZedAgentStatus]
	host    *host
	kube    Kube
	links   Links
	log     *logtest.Hook
	stop    func()
}

func play(t *testing.T, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, agents: map[string]*agent{}}
		s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api}
		s.cluster.SetFault(kubetest.None)
		for _, name := range []string{"n1", "n2", "n3"} {
			_ = s.nodes.Publish(name, node(name))
		}
		tell(s)
		for _, a := range s.agents {
			a.stop()
		}
	})
}

// start runs the agent of a node, perhaps after an earlier run; every host has
// eth1 and eth2, which are down.
func (s *stage) start(name string) *agent {
	a := s.agents[name]
	if a == nil {
		a = &agent{kube: s.cluster, host: &host{up: map[string]bool{"eth1": false, "eth2": false}, lost: make(chan error)}}
		a.links = a.host
		s.agents[name] = a
		_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: device(name)})
		a.fetched(types.ConfigGetSuccess)
	}
	log, hook := logtest.NewNullLogger()
	a.log = hook
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Operations: types.NoOperations{}, Configs: &a.configs, Info: &a.info, Agent: &a.word,
		Nodes: &s.nodes, API: &s.api, Kube: a.kube, Links: a.links,
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	a.stop = func() { cancel(); <-done }
	synctest.Wait()
	return a
}

// told runs the agent of a node whose zedagent has parsed its configuration.
func (s *stage) told(name string) *agent {
	a := s.start(name)
	s.after(10 * time.Minute)
	return a
}

// fetched says how zedagent's last fetch of the configuration went.
func (a *agent) fetched(how types.ConfigGetStatus) {
	_ = a.word.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: how})
}

// app configures a native container with these ports, or none at all.
func (a *agent) app(name string, ports ...string) {
	if len(ports) == 0 {
		_ = a.configs.Unpublish(name)
		return
	}
	_ = a.configs.Publish(name, container(ports...))
}

func (s *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// needed is who is noted to need the port, "-" where there is no attachment.
func (s *stage) needed(port string) string {
	nad, ok := s.cluster.NAD(port)
	if !ok {
		return "-"
	}
	return strings.Join(slices.Sorted(maps.Keys(nad.Owners)), " ")
}

func (s *stage) want(port, needed string) {
	s.Helper()
	synctest.Wait()
	if got := s.needed(port); got != needed {
		s.Errorf("%s is needed by %q, not %q", port, got, needed)
	}
}

// said counts the log lines that hold text.
func (a *agent) said(text string) (n int) {
	for _, e := range a.log.AllEntries() {
		line, _ := e.String()
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
