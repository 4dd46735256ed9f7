package sriov

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster and the agents of its nodes.
type stage struct {
	t       *testing.T
	log     *logrus.Logger
	nodes   pubsub.Table[types.Node]
	pods    pubsub.Table[types.Pod]
	api     pubsub.Table[types.APIStatus]
	cluster *kubetest.Cluster
	agents  map[string]*agent
	loaded  map[string]map[string][]string // what each plug-in, by container, offers since it started
	marks   map[string]string              // of plug-ins, by UID
}

// agent is one node's: its devices, what domainmgr says of them, the component
// while it runs.
type agent struct {
	stage    *stage
	name     string
	host     host
	has      []vf
	boots    int
	adapters pubsub.Table[types.AssignableAdapters]
	info     pubsub.Table[types.EdgeNodeInfo]
	kube     Kube
	stop     func()
}

func newStage(t *testing.T, names ...string) *stage {
	s := &stage{t: t, log: logrus.New(), agents: map[string]*agent{}, loaded: map[string]map[string][]string{}, marks: map[string]string{}}
	s.log.SetOutput(t.Output())
	s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api}
	s.cluster.SetFault(kubetest.None)
	for _, name := range names {
		s.join(name)
	}
	return s
}

// join adds a node with a plug-in and without functions.
func (s *stage) join(name string) *agent {
	a := &agent{stage: s, name: name, host: newHost(s.t), kube: s.cluster}
	s.agents[name] = a
	id := uuid.New()
	_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: id})
	_ = s.nodes.Publish(name, types.Node{Name: name, UID: id.String(), UUID: id.String()})
	s.cluster.StartPlugin(name)
	return a
}

// give has domainmgr name these functions, each bound unless it is not Bound.
func (a *agent) give(vfs ...vf) {
	a.has = vfs
	port := func(v vf) string { return v.Address[:7] + ":00.0" }
	for _, v := range vfs { // every port has a first function
		a.host.add(port(v), vf{PF: v.PF, Vendor: v.Vendor, Device: v.Device, Address: v.Address[:7] + ":1f.7"}, "iavf")
	}
	for _, v := range vfs {
		driver := "iavf"
		if v.Bound {
			driver = vfioDriver
		}
		a.host.add(port(v), v, driver)
	}
	_ = a.adapters.Publish(types.Global, types.AssignableAdapters{Initialized: true, IoBundleList: bundles(vfs)})
}

// start runs the agent as a new process does.
func (a *agent) start() {
	c := &Component{
		Log: a.stage.log.WithField("agent", a.name), Pulse: &loop.Pulse{}, Operations: types.NoOperations{},
		Adapters: &a.adapters, Info: &a.info, Nodes: &a.stage.nodes, NodePods: &a.stage.pods, API: &a.stage.api,
		Kube: a.kube, Sysfs: a.host.dir, BootID: fmt.Sprint("boot-", a.boots),
	}
	ctx, cancel := context.WithCancel(a.stage.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	a.stop = func() { cancel(); <-done; a.stop = nil }
}

func (s *stage) start() {
	for _, name := range slices.Sorted(maps.Keys(s.agents)) {
		s.agents[name].start()
	}
}

func (s *stage) end() {
	for _, a := range s.agents {
		if a.stop != nil {
			a.stop()
		}
	}
}

// pace is how often something is looked at that lasts for d.
func pace(d time.Duration) time.Duration {
	return min(max(d/200, 500*time.Millisecond), 5*time.Second).Truncate(500 * time.Millisecond)
}

// pass lets d pass, and has plug-ins read the configuration a moment after they start.
func (s *stage) pass(d time.Duration) {
	s.t.Helper()
	for step := pace(d); d > 0; d -= step {
		time.Sleep(step)
		synctest.Wait()
		s.watch()
	}
}

func (s *stage) watch() {
	s.t.Helper()
	config := s.cluster.SRIOV()
	for name, a := range s.agents {
		pod, ok := s.cluster.Plugin(name)
		if !ok {
			continue
		}
		s.marks[pod.UID] = pod.Part
		if _, ran := s.loaded[a.container(pod)]; ran || config.Version == "" {
			continue
		}
		offers, err := started(config.Data[configKey], devicesOf(a.has))
		if err != nil {
			s.t.Fatalf("the plug-in of %s ends: %v\n%s", name, err, config.Data[configKey])
		}
		s.loaded[a.container(pod)] = offers
	}
}

// offers is what the plug-in of the node offers.
func (a *agent) offers() map[string][]string {
	pod, _ := a.stage.cluster.Plugin(a.name)
	return a.stage.loaded[a.container(pod)]
}

// container is the one that runs in the pod: a pod of a DaemonSet survives a reboot,
// and its container starts again.
func (a *agent) container(pod types.SRIOVPlugin) string {
	return fmt.Sprint(pod.UID, " in boot ", a.boots)
}

// reboot ends the agent and has the node start again. sysfs shows no function, and
// domainmgr names none, until it is told to.
func (a *agent) reboot() {
	if a.stop != nil {
		a.stop()
	}
	a.boots++
	a.host = newHost(a.stage.t)
	a.give()
}

// settled checks that every plug-in offers what its node has, under its name.
func (s *stage) settled(names ...string) {
	s.t.Helper()
	for _, name := range names {
		a := s.agents[name]
		if d := cmp.Diff(should(a.has), a.offers()); d != "" {
			s.t.Errorf("the plug-in of %s: %s\n%v", name, d, s.cluster.SRIOV().Data)
		}
	}
}

// restarts are those of the plug-ins by node; StartPlugin does not count.
func (s *stage) restarts() int { return len(s.cluster.Calls("restartplugin")) }

// quiet checks that for an hour nothing is written, and next to nothing asked.
func (s *stage) quiet() {
	s.t.Helper()
	before, asked := s.cluster.SRIOV(), len(s.cluster.Calls(""))
	writes := func() int {
		return len(s.cluster.Calls("setsriovconfig")) + s.restarts() + len(s.cluster.Calls("markplugin")) + len(s.cluster.Calls("deletenetwork"))
	}
	wrote := writes()
	s.pass(time.Hour)
	if n := writes() - wrote; n > 0 || s.cluster.SRIOV().Version != before.Version {
		s.t.Errorf("%d writes within a quiet hour", n)
	}
	if n := len(s.cluster.Calls("")) - asked; n > len(s.agents)*3*7 {
		s.t.Errorf("%d calls within a quiet hour", n)
	}
}
