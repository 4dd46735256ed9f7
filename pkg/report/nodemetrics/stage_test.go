package nodemetrics

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func u(n uint64) *uint64 { return &n }

// stage is the node n1 with its kubelet, in fake time.
type stage struct {
	*testing.T
	info    pubsub.Table[types.EdgeNodeInfo]
	nodes   pubsub.Table[types.Node]
	looks   pubsub.Table[types.MetricsLook]
	metrics pubsub.Table[types.KubeNodeMetrics]
	kept    pubsub.Table[types.KubeNodeMetrics]
	cluster *kubetest.Cluster
	logs    *logtest.Hook
	began   time.Time
	stop    func()
}

func play(t *testing.T, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, cluster: &kubetest.Cluster{API: &pubsub.Table[types.APIStatus]{}}, began: time.Now()}
		_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
		_ = s.nodes.Publish("n1", types.Node{Name: "n1", InternalIP: "10.0.0.1", Cores: 4})
		s.start()
		tell(s)
		s.stop()
	})
}

func (s *stage) start() {
	log, hook := logtest.NewNullLogger()
	s.logs = hook
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Info: &s.info, Nodes: &s.nodes, Looks: &s.looks, Kube: s.cluster,
		Uptime: func() time.Duration { return time.Hour + time.Since(s.began) }, Metrics: &s.metrics, Kept: &s.kept,
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	synctest.Wait()
}

func (s *stage) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// watch renews the command's row every five seconds for d.
func (s *stage) watch(d time.Duration) {
	for ; d > 0; d -= 5 * time.Second {
		_ = s.looks.Publish("top", types.MetricsLook{At: time.Now()})
		s.sleep(5 * time.Second)
	}
}

// measure is what the kubelet says from now on: one pod of an application, with
// one container, and one other pod.
func (s *stage) measure(cpu uint64, change ...func(*types.KubeletStats)) {
	now := time.Now().UTC()
	stats := types.KubeletStats{Node: types.NodeMetrics{CPU: u(cpu)}}
	for _, namespace := range []string{"a-system", types.NamespaceApps} {
		stats.Pods = append(stats.Pods, types.PodStats{
			Namespace: namespace, Name: "web", UID: "uid-" + namespace,
			Sample:     types.PodSample{At: now, CPU: u(cpu), CPUSeconds: u(cpu * 1000), NetworkReceived: u(cpu)},
			Containers: []types.ContainerStats{{Name: "c", Started: s.began.UTC(), Sample: types.ContainerSample{At: now, CPUSeconds: u(cpu * 1_000_000_000), MemoryUsage: u(cpu)}}},
		})
	}
	for _, c := range change {
		c(&stats)
	}
	s.cluster.Measure("n1", stats, map[types.ContainerID]types.ContainerSample{
		{Namespace: types.NamespaceApps, Pod: "web", Container: "c"}: {
			At: now, ReadBytes: u(cpu), WrittenBytes: u(cpu), Reads: u(1), Writes: u(2), FileSystems: []types.DeviceUsage{{Device: "/dev/sda", Used: cpu}},
		},
	})
}

// looked returns how many looks there were since the last call.
func (s *stage) looked() func() int {
	before := 0
	return func() int {
		n := len(s.cluster.Calls("kubeletstats"))
		defer func() { before = n }()
		return n - before
	}
}

func (s *stage) says() types.KubeNodeMetrics {
	s.Helper()
	m, ok := s.metrics.Get(types.Global)
	if !ok {
		s.Fatal("nothing is published")
	}
	return m
}

func (s *stage) keeps() types.KubeNodeMetrics {
	s.Helper()
	m, ok := s.kept.Get(types.Global)
	if !ok {
		s.Fatal("nothing is kept")
	}
	return m
}

// app is the pod of the application.
func (s *stage) app() types.PodMetrics {
	s.Helper()
	m := s.says()
	if len(m.Pods) == 0 || m.Pods[0].Namespace != types.NamespaceApps {
		s.Fatalf("applications are not first: %+v", m.Pods)
	}
	return m.Pods[0]
}

func (s *stage) warnings() (n int) {
	for _, e := range s.logs.AllEntries() {
		if e.Level <= logrus.WarnLevel {
			n++
		}
	}
	return n
}
