package membership

import (
	"context"
	"errors"
	"sync/atomic"
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

// source is a table whose publisher may not have spoken yet.
type source[T any] struct {
	pubsub.Table[T]
	silent atomic.Bool
}

func (s *source[T]) Synced() bool { return !s.silent.Load() }

// disk is the persistent topic, on a disk that may be full.
type disk struct {
	pubsub.Table[types.ClusterMembership]
	full atomic.Bool
}

func (d *disk) Publish(key string, v types.ClusterMembership) error {
	if d.full.Load() {
		return errors.New("no space left on device")
	}
	return d.Table.Publish(key, v)
}

// stage is a device n1 with two peers, in fake time.
type stage struct {
	*testing.T
	config   source[types.EdgeNodeClusterConfig]
	status   pubsub.Table[types.EdgeNodeClusterStatus]
	agent    pubsub.Table[types.ZedAgentStatus]
	settings pubsub.Table[types.ConfigItemValueMap]
	info     pubsub.Table[types.EdgeNodeInfo]
	nodes    pubsub.Table[types.Node]
	api      pubsub.Table[types.APIStatus]
	leave    source[types.ClusterLeaveRequest]
	without  pubsub.Table[types.WithoutCluster]
	progress pubsub.Table[types.NodeDrainProgress]
	journal  pubsub.Table[types.NodeDrainJournal]

	membership disk
	record     operations
	requests   requests
	cluster    *kubetest.Cluster
	kube       Kube
	logs       *logtest.Hook

	asleep atomic.Int64 // nanoseconds: by how much the wall clock was set forward
	uptime func() time.Duration
	stop   func()
}

// play runs a member in fake time.
func play(t *testing.T, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t}
		s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &pubsub.Table[types.Pod]{}, API: &s.api}
		s.kube = s.cluster
		_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1", DeviceID: device})
		for name, id := range map[string]uuid.UUID{"n1": device, "n2": second, "n3": third} {
			_ = s.nodes.Publish(name, types.Node{Name: name, UUID: id.String(), Ready: types.ConditionTrue})
		}
		_ = s.journal.Publish(types.Global, types.NodeDrainJournal{Adopted: true})
		s.cluster.SetFault(kubetest.None)
		s.reached(types.ConfigGetSuccess)
		s.start()
		s.setConfig(config())
		s.is(types.MembershipMember)
		tell(s)
		s.stop()
	})
}

// start runs an agent that remembers what is in tables only.
func (s *stage) start() {
	log, hook := logtest.NewNullLogger()
	s.logs = hook
	began := time.Now()
	s.uptime = func() time.Duration { return time.Since(began) - time.Duration(s.asleep.Load()) }
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Config: &s.config, Status: &s.status, Agent: &s.agent, Settings: &s.settings, Info: &s.info, Nodes: &s.nodes,
		API: &s.api, Leave: &s.leave, Without: &s.without, Requests: &s.requests, Operations: &s.record, Progress: &s.progress, Journal: &s.journal, Kube: s.kube,
		Version: "1", Hour: time.Hour, Uptime: s.uptime,
		Membership: &s.membership,
	}
	s.requests.of = &s.leave
	s.asleep.Store(0)
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	synctest.Wait()
}

// restart ends the agent and starts it again.
func (s *stage) restart() {
	s.stop()
	s.start()
}

// reboot takes away what is in /run too, until zedagent speaks again.
func (s *stage) reboot() {
	s.stop()
	for _, gone := range []func(string) error{s.config.Unpublish, s.leave.Unpublish, s.progress.Unpublish} {
		_ = gone(types.Global)
	}
	s.config.silent.Store(true)
	s.leave.silent.Store(true)
	_ = s.agent.Unpublish(types.ZedAgentKey)
	s.start()
}

func (s *stage) setConfig(c types.EdgeNodeClusterConfig) {
	s.config.silent.Store(false)
	_ = s.config.Publish(types.Global, c)
	synctest.Wait()
}

// invalidate is a removal or a parse error: nobody can tell.
func (s *stage) invalidate() {
	s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
	s.is(types.MembershipDoubtful)
}

func (s *stage) reached(status types.ConfigGetStatus) {
	_ = s.agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: status})
	synctest.Wait()
}

// told makes another node's agent stamp its list.
func (s *stage) told(node string, masters ...uuid.UUID) {
	s.cluster.ChangeNode(node, func(n *types.Node) {
		n.Agent, n.StampedAt = &types.AgentStamp{
			Version: "1", Cluster: config().ClusterID.UUID, Masters: masters, Given: time.Now().UTC(),
		}, time.Now()
	})
	synctest.Wait()
}

// ask is an operator's request to leave.
func (s *stage) ask() {
	_ = s.leave.Publish(types.Global, types.ClusterLeaveRequest{RequestedAt: time.Now()})
	synctest.Wait()
}

func (s *stage) drained(yes bool) {
	_ = s.progress.Publish(types.Global, types.NodeDrainProgress{Left: yes})
	synctest.Wait()
}

// sleep lets time pass, with something of everything in it.
func (s *stage) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) membershipNow() types.ClusterMembership {
	m, _ := s.membership.Get(types.Global)
	return m
}

func (s *stage) is(want types.Membership) {
	s.Helper()
	if m := s.membershipNow(); m.State != want {
		s.Fatalf("after it all the device is %s (%s), want %s", m.State, m.Reason, want)
	}
}

// shown are the masters on the own Node.
func (s *stage) shown() []uuid.UUID {
	s.Helper()
	return s.stamp().Masters
}

// stamp is what is on the own Node.
func (s *stage) stamp() types.AgentStamp {
	s.Helper()
	n, ok := s.nodes.Get("n1")
	if !ok || n.Agent == nil {
		s.Fatalf("no stamp on the node: %+v", n)
	}
	return *n.Agent
}
