package drain

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// stage is a three-node cluster around the drain of n1.
type stage struct {
	t        *testing.T
	zedagent source
	baseos   source
	operator source
	k3s      pubsub.Table[types.KubeLifecycle]
	member   pubsub.Table[types.ClusterMembership]
	progress explained
	journal  journal
	bootID   string
	booted   time.Time
	hour     time.Duration // 0 for one
	config   pubsub.Table[types.EdgeNodeClusterConfig]
	settings pubsub.Table[types.ConfigItemValueMap]
	info     pubsub.Table[types.EdgeNodeInfo]
	nodes    pubsub.Table[types.Node]
	pods     pubsub.Table[types.Pod]
	api      pubsub.Table[types.APIStatus]
	clocks   pubsub.Table[types.NodeClock]
	leases   pubsub.Table[types.Lease]
	agent    pubsub.Table[types.NodeAgentStatus]
	status   recorder
	kube     *kubetest.Cluster
	log      *test.Hook
	logger   *logrus.Logger
	files    pubsub.Bells // inotify's part
	dead     bool         // the API server is
	silent   time.Time    // since when, but for moments
	answered time.Time    // since when it is no longer
	via      Kube         // nil for kube itself
	force    string
	marker   string
}

// newStage is to be called inside a synctest bubble.
func newStage(t *testing.T, pods int) *stage {
	s := &stage{t: t, force: filepath.Join(t.TempDir(), "force"), marker: filepath.Join(t.TempDir(), "wait")}
	s.bootID, s.booted = "boot-1", time.Now().Add(-time.Hour)
	s.logger, s.log = test.NewNullLogger()
	s.logger.SetOutput(io.Discard)
	s.kube = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api, Leases: &s.leases, Grace: time.Second}
	s.kube.SetFault(kubetest.None)
	_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
	_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true})
	for _, n := range []string{"n1", "n2", "n3"} {
		s.node(n, types.ConditionTrue)
	}
	for i := range pods {
		p := types.Pod{Namespace: "eve-kube-app", Name: fmt.Sprintf("app-%d", i), UID: fmt.Sprint(i), NodeName: "n1", Phase: types.PodRunning}
		_ = s.pods.Publish(p.Key(), p)
	}
	ds := types.Pod{Namespace: "kube-system", Name: "ds", UID: "ds", NodeName: "n1", Owner: types.Owner{Kind: "DaemonSet"}}
	_ = s.pods.Publish(ds.Key(), ds)
	return s
}

// run starts an agent, returns its stop.
func (s *stage) run() func() { return s.start(s.component()) }

// component is an agent that has not been started.
func (s *stage) component() *Component {
	var kube Kube = s.kube
	if s.via != nil {
		kube = s.via
	}
	booted := s.booted
	return &Component{
		Log: s.logger, Pulse: &loop.Pulse{}, Operations: types.NoOperations{}, DeviceOp: &s.zedagent, Update: &s.baseos, Operator: &s.operator, Lifecycle: &s.k3s,
		Config: &s.config, Membership: &s.member,
		Settings: &s.settings, Info: &s.info, Nodes: &s.nodes, NodePods: &s.pods, API: &s.api, Clocks: &s.clocks, Leases: &s.leases, Agent: &s.agent, Kube: kube,
		ForceFiles: []string{s.force, s.otherForce()}, FaultMarker: s.marker, Markers: []string{s.marker + "-reboot"}, Hour: cmp.Or(s.hour, time.Hour),
		BootID: s.bootID, Uptime: func() time.Duration { return time.Since(booted) },
		Status: &s.status, Progress: &s.progress, Journal: &s.journal,
	}
}

// start starts an agent, returns its stop.
func (s *stage) start(c *Component) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.run(ctx, &s.files) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

// interrupted is a drain that a budget held back when its agent was stopped.
func (s *stage) interrupted() {
	s.kube.Block(appZero, true)
	stop := s.run()
	s.request(&s.zedagent, deviceOp)
	time.Sleep(10 * time.Second)
	stop()
}

// node shows a node of the cluster as it is when nothing is going on.
func (s *stage) node(name string, ready types.ConditionStatus) {
	_ = s.nodes.Publish(name, types.Node{
		Name: name, UID: name, Ready: ready, BootID: "boot-1", Etcd: true, Agent: &types.AgentStamp{Version: "test"},
	})
}

// peers shows the other nodes.
func (s *stage) peers(ready types.ConditionStatus) {
	s.node("n2", ready)
	s.node("n3", ready)
}

// acts is how often the cluster was asked for more than who holds the lock.
func (s *stage) acts() int { return len(s.kube.Calls("")) - len(s.kube.Calls("lock")) }

func (s *stage) otherForce() string { return s.force + "-persist" }

func (s *stage) request(from *source, by types.DrainRequester) {
	_ = from.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Now(), RequestedBy: by, Context: "reboot"})
}

func (s *stage) is(v types.DrainStatus, by types.DrainRequester) {
	s.t.Helper()
	synctest.Wait()
	got, _ := s.status.Get(types.Global)
	if want := (types.NodeDrainStatus{Status: v, RequestedBy: by}); got != want {
		s.t.Errorf("status is %v by %v, want %v by %v; history %s", got.Status, got.RequestedBy, v, by, s.status.path())
	}
}

func (s *stage) cordoned(want, ours bool) {
	s.t.Helper()
	synctest.Wait()
	n, _ := s.nodes.Get("n1")
	if n.Unschedulable != want || (n.CordonedBy != nil) != ours {
		s.t.Errorf("node is cordoned: %v, by us: %v; want %v, %v", n.Unschedulable, n.CordonedBy != nil, want, ours)
	}
}

func (s *stage) path(want string) {
	s.t.Helper()
	if got := s.status.path(); got != want {
		s.t.Errorf("published states %s, want %s", got, want)
	}
}

func (s *stage) logged(part string) bool {
	return slices.ContainsFunc(s.log.AllEntries(), func(e *logrus.Entry) bool { return strings.Contains(e.Message, part) })
}

// waited is how often the drain said that it waits for part.
func (s *stage) waited(part string) (n int) {
	for _, e := range s.log.AllEntries() {
		if strings.HasSuffix(e.Message, "the drain waits") && strings.Contains(fmt.Sprint(e.Data["reason"]), part) {
			n++
		}
	}
	return n
}

func (s *stage) failures() (n int) {
	for _, e := range s.log.AllEntries() {
		if e.Level <= logrus.ErrorLevel {
			n++
		}
	}
	return n
}

const (
	nobody   = types.DrainRequesterNone
	deviceOp = types.DrainRequesterDeviceOp
	osUpdate = types.DrainRequesterUpdate
	appZero  = "eve-kube-app/app-0"
)

func story(t *testing.T, pods int, tell func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { tell(newStage(t, pods)) })
}

// write makes the operator's file and tells, as inotify does; remove undoes it.
func (s *stage) write(path, text string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.files.Ring()
}

func (s *stage) remove(path string) {
	s.t.Helper()
	if err := os.Remove(path); err != nil {
		s.t.Fatal(err)
	}
	s.files.Ring()
}
