package members

import (
	"context"
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

func down(n *types.Node)       { n.Ready = types.ConditionUnknown }
func cordoned(n *types.Node)   { n.Unschedulable = true }
func unstamped(n *types.Node)  { n.Agent = nil }
func cordonedBy(n *types.Node) { n.Unschedulable, n.CordonedBy = true, &types.Cordon{By: "zedkube"} }
func worker(n *types.Node)     { n.ControlPlane, n.Etcd = false, false }
func listing(names ...string) func(*types.Node) {
	return func(n *types.Node) { n.Agent = &types.AgentStamp{Cluster: cluster, Masters: devices(names...)} }
}

// tied is told of the tie-breaker as well.
func tied(name string) func(*types.Node) {
	return func(n *types.Node) {
		stamp := *n.Agent
		stamp.TieBreaker = device(name)
		n.Agent = &stamp
	}
}

// scene is a cluster of three whose n3 is dead and replaced by n4.
func scene() facts {
	own := node("n1")
	was := trace{holds: true, stamp: markOf(own)} // for an hour
	return facts{
		interval: time.Minute,
		past: past{
			cluster: cluster, named: devices("n1", "n2", "n3", "n4", "n5", "n6"), uptime: time.Hour,
			stale: map[string]trace{"uid-n3": was, "uid-n5": was}, published: map[string]reported{},
		},
		now: time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC), uptime: time.Hour,
		belongs: true, valid: true, fetched: true, seen: true, known: true, own: own,
		configured: configured{cluster: cluster, masters: devices("n1", "n2", "n4"), device: device("n1")},
		nodes:      []types.Node{own, node("n2"), node("n3", down)},
	}
}

// stage is the cluster of scene() with its agents n1 and n2, in fake time.
type stage struct {
	*testing.T
	nodes   pubsub.Table[types.Node]
	pods    pubsub.Table[types.Pod]
	leases  pubsub.Table[types.Lease]
	api     pubsub.Table[types.APIStatus]
	cluster *kubetest.Cluster
	agents  map[string]*agent
	began   bool
}

// agent is the component on one node.
type agent struct {
	membership pubsub.Table[types.ClusterMembership]
	zedagent   pubsub.Table[types.ZedAgentStatus]
	settings   pubsub.Table[types.ConfigItemValueMap]
	journal    pubsub.Table[types.ClusterMembersJournal]
	info       pubsub.Table[types.EdgeNodeInfo]
	members    pubsub.Table[types.ClusterMembers]
	kube       Kube // nil for the cluster itself
	stop       func()
}

func play(t *testing.T, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, agents: map[string]*agent{}}
		s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api, Leases: &s.leases}
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
func (s *stage) start(name string, configured ...func(*agent)) *agent {
	a := s.agents[name]
	if a == nil {
		a = &agent{}
		s.agents[name] = a
		_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: device(name)})
		_ = a.zedagent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess})
		a.every(time.Second)
		_ = a.journal.Publish(types.Global, types.ClusterMembersJournal{Cluster: cluster, Named: devices("n1", "n2", "n3", "n5")})
		a.configure(uuid.Nil, "n1", "n2", "n4")
	}
	for _, t := range configured {
		t(a)
	}
	log, _ := logtest.NewNullLogger()
	began := time.Now()
	if a.kube == nil {
		a.kube = s.cluster
	}
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Membership: &a.membership, Agent: &a.zedagent, Settings: &a.settings, Info: &a.info,
		Nodes: &s.nodes, AppPods: &s.pods, Leases: &s.leases, API: &s.api, Kube: a.kube,
		Uptime: func() time.Duration { return time.Since(began) }, Members: &a.members, Journal: &a.journal,
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	a.stop = func() { cancel(); <-done }
	synctest.Wait()
	return a
}

// every is how often zedagent asks the controller.
func (a *agent) every(d time.Duration) {
	item := types.ConfigItemValue{ItemType: types.ConfigItemInt, IntValue: uint32(d / time.Second)}
	_ = a.settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{types.SettingConfigInterval: item}})
}

func (a *agent) configure(tie uuid.UUID, masters ...string) {
	_ = a.membership.Publish(types.Global, types.ClusterMembership{
		State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{
			ClusterID: types.UUIDandVersion{UUID: cluster}, MasterNodeIDs: devices(masters...), TieBreakerNodeID: types.UUIDandVersion{UUID: tie},
		},
	})
}

// after lets time pass: at first the five seconds as well in which nothing is
// removed yet, because the controller has not been asked often enough.
func (s *stage) after(d time.Duration) {
	if !s.began {
		s.began = true
		d += intervals * time.Second
	}
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
