package clustermetrics

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func u(n uint64) *uint64 { return &n }

// stage is the leader n000 and its cluster, in fake time.
type stage struct {
	*testing.T
	leader  pubsub.Table[types.KubeLeaderElectInfo]
	info    pubsub.Table[types.EdgeNodeInfo]
	nodes   pubsub.Table[types.Node]
	pods    pubsub.Table[types.Pod]
	api     pubsub.Table[types.APIStatus]
	own     pubsub.Table[types.KubeNodeMetrics]
	configs pubsub.Table[types.AppInstanceConfig]
	metrics pubsub.Table[types.KubeClusterMetrics]
	cluster *kubetest.Cluster
}

func name(i int) string { return fmt.Sprintf("n%03d", i) }

// play runs the leader of so many nodes, whose kubelets all answer.
func play(t *testing.T, nodes int, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t}
		s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api}
		_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name(0)})
		s.cluster.SetFault(kubetest.None)
		for i := range nodes {
			_ = s.nodes.Publish(name(i), types.Node{Name: name(i), Ready: types.ConditionTrue, Cores: 4, Memory: 1 << 30})
			s.measure(i, 7)
		}
		s.lead(true)
		began := time.Now()
		log, _ := logtest.NewNullLogger()
		c := &Component{
			Log: log, Pulse: &loop.Pulse{}, Leader: &s.leader, Info: &s.info, Nodes: &s.nodes, AppPods: &s.pods, API: &s.api, Own: &s.own, Configs: &s.configs, Kube: s.cluster,
			Uptime: func() time.Duration { return time.Hour + time.Since(began) }, Metrics: &s.metrics,
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx) }()
		tell(s)
		cancel()
		<-done
		if _, ok := s.metrics.Get(types.Global); ok {
			t.Error("the leader has stopped, and its metrics are still published")
		}
	})
}

func (s *stage) lead(leads bool) {
	_ = s.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: leads})
}

// measure is what the kubelet of a node says from now on: of the node, of an
// application and of a virtual machine.
func (s *stage) measure(i int, cpu uint64) {
	sample := types.PodSample{CPU: u(cpu), MemoryWorking: u(2 * cpu)}
	s.cluster.Measure(name(i), types.KubeletStats{
		Node: types.NodeMetrics{CPU: u(cpu), MemoryWorking: u(10 * cpu)},
		Pods: []types.PodStats{
			{Namespace: types.NamespaceApps, Name: "web-" + name(i), Sample: sample},
			{Namespace: types.NamespaceApps, Name: launcher + "vm-" + name(i) + "-x2x4z", Sample: sample},
			{Namespace: "kube-system", Name: "dns", Sample: sample},
		},
	}, nil)
}

func (s *stage) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// asked returns how many questions there were since the last call.
func (s *stage) asked() func() int {
	before := 0
	return func() int {
		n := len(s.cluster.Calls("nodestats"))
		defer func() { before = n }()
		return n - before
	}
}

func (s *stage) says() types.KubeClusterMetrics {
	s.Helper()
	m, ok := s.metrics.Get(types.Global)
	if !ok {
		s.Fatal("nothing is published")
	}
	return m
}

func (s *stage) node(i int) types.ClusterNodeMetrics {
	s.Helper()
	for _, n := range s.says().Nodes {
		if n.Name == name(i) {
			return n
		}
	}
	s.Fatalf("nothing is said of %s", name(i))
	return types.ClusterNodeMetrics{}
}
