package members

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/kubeapi/kubetest"
	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	cluster = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")
	other   = uuid.MustParse("77777777-3a0e-4c7e-9f1b-2f6f0c3a9e11")
)

// device is the UUID of the device whose Node is called name.
func device(name string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)) }

func devices(names ...string) []uuid.UUID {
	var ids []uuid.UUID
	for _, n := range names {
		ids = append(ids, device(n))
	}
	return ids
}

// node is a Ready server that was told of the masters n1, n2 and n4, where n4
// replaces n3.
func node(name string, change ...func(*types.Node)) types.Node {
	n := types.Node{
		Name: name, UID: "uid-" + name, UUID: device(name).String(), Ready: types.ConditionTrue, BootID: "boot-" + name,
		ControlPlane: true, Etcd: true, Agent: &types.AgentStamp{Cluster: cluster, Masters: devices("n1", "n2", "n4")},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func down(n *types.Node)      { n.Ready = types.ConditionUnknown }
func cordoned(n *types.Node)  { n.Unschedulable = true }
func unstamped(n *types.Node) { n.Agent = nil }
func worker(n *types.Node)    { n.ControlPlane, n.Etcd = false, false }
func listing(names ...string) func(*types.Node) {
	return func(n *types.Node) { n.Agent = &types.AgentStamp{Cluster: cluster, Masters: devices(names...)} }
}

// scene is a cluster of three whose n3 is dead and replaced by n4.
func scene() facts {
	own := node("n1")
	return facts{
		now: time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC), uptime: time.Hour,
		belongs: true, valid: true, fetched: true, seen: true, known: true, looked: true, own: own,
		told:  told{cluster: cluster, masters: devices("n1", "n2", "n4"), device: device("n1")},
		nodes: []types.Node{own, node("n2"), node("n3", down)},
	}
}

// stage is the cluster of scene() with its agents n1 and n2, in fake time.
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
	membership pubsub.Table[types.ClusterMembership]
	zedagent   pubsub.Table[types.ZedAgentStatus]
	info       pubsub.Table[types.EdgeNodeInfo]
	members    pubsub.Table[types.ClusterMembers]
	kube       Kube // nil for the cluster itself
	stop       func()
}

func play(t *testing.T, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, agents: map[string]*agent{}}
		s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api}
		s.cluster.SetFault(kubetest.None)
		for _, n := range scene().nodes {
			_ = s.nodes.Publish(n.Name, n)
		}
		tell(s)
		for _, a := range s.agents {
			a.stop()
		}
	})
}

// start runs the agent of a node, perhaps after an earlier run.
func (s *stage) start(name string, told ...func(*agent)) *agent {
	a := s.agents[name]
	if a == nil {
		a = &agent{}
		s.agents[name] = a
		_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: device(name)})
		_ = a.zedagent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess})
		a.configure(uuid.Nil, "n1", "n2", "n4")
	}
	for _, t := range told {
		t(a)
	}
	log, _ := logtest.NewNullLogger()
	began := time.Now()
	if a.kube == nil {
		a.kube = s.cluster
	}
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Membership: &a.membership, Agent: &a.zedagent, Info: &a.info,
		Nodes: &s.nodes, AppPods: &s.pods, API: &s.api, Kube: a.kube,
		Uptime: func() time.Duration { return time.Since(began) }, Members: &a.members,
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	a.stop = func() { cancel(); <-done }
	synctest.Wait()
	return a
}

func (a *agent) configure(tie uuid.UUID, masters ...string) {
	_ = a.membership.Publish(types.Global, types.ClusterMembership{
		State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{
			ClusterID: types.UUIDandVersion{UUID: cluster}, MasterNodeIDs: devices(masters...), TieBreakerNodeID: types.UUIDandVersion{UUID: tie},
		},
	})
}

func (s *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) there(name string) bool {
	_, ok := s.nodes.Get(name)
	return ok
}

func (s *stage) says(a *agent) types.ClusterMembers {
	m, _ := a.members.Get(types.Global)
	return m
}
