package mounts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster of three servers, on each of which a pod waits for its volume.
type stage struct {
	*testing.T
	nodes   pubsub.Table[types.Node]
	pods    pubsub.Table[types.Pod]
	api     pubsub.Table[types.APIStatus]
	leases  pubsub.Table[types.Lease]
	cluster *kubetest.Cluster
	agents  map[string]*agent
	began   time.Time
}

// agent is the component on one node, with a k3s that obeys it.
type agent struct {
	*stage
	name        string
	info        pubsub.Table[types.EdgeNodeInfo]
	attachments pubsub.Table[types.Attachment]
	volumes     pubsub.Table[types.Volume]
	tables      pubsub.Table[types.TableStatus]
	device      requests
	update      requests
	operator    pubsub.Table[types.NodeDrainRequest]
	drain       pubsub.Table[types.NodeDrainProgress]
	member      pubsub.Table[types.ClusterMembership]
	parts       pubsub.Table[types.KubeClusterUpdateStatus]
	version     pubsub.Table[types.K3sVersionStatus]
	lifecycle   pubsub.Table[types.KubeLifecycle]
	recovery    disk
	logs        *logtest.Hook
	devices     string
	file        string
	boot        string
	booted      time.Time
	kube        Kube
	k3s         K3s
	stop        func()

	mu       sync.Mutex // guards what follows while the agent runs
	process  k3sprocess.Process
	missing  error             // why k3s is not found
	fails    error             // why it cannot be restarted
	cures    bool              // a restart mounts the volumes
	hangs    bool              // k3s gets the signal, and lives on
	restarts []time.Time       // that k3s was told
	then     func()            // what a restart does besides
	audit    []types.Operation // of operations that have ended
}

// requests is a topic of requests, heard of from the beginning.
type requests struct {
	pubsub.Table[types.NodeDrainRequest]
	late bool
}

func (r *requests) Synced() bool { return !r.late }

// disk has the topic of the component, and may have no room for it.
type disk struct {
	pubsub.Table[types.MountRecovery]
	full    atomic.Bool
	refused func() // what happens then; set before
}

func (d *disk) Publish(key string, m types.MountRecovery) error {
	if d.full.Load() {
		if d.refused != nil {
			d.refused()
		}
		return syscall.ENOSPC
	}
	return d.Table.Publish(key, m)
}

func play(t *testing.T, names string, tell func(*stage)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, agents: map[string]*agent{}, began: time.Now()}
		s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api, Leases: &s.leases}
		s.cluster.SetFault(kubetest.None)
		var storage types.Storage
		for _, name := range strings.Fields(names) {
			_ = s.nodes.Publish(name, types.Node{Name: name, UUID: device(name).String(), BootID: "boot", Ready: types.ConditionTrue, ControlPlane: true, Etcd: true, Agent: &types.AgentStamp{}})
			a := &agent{stage: s, name: name, devices: filepath.Join(dir, name), file: filepath.Join(dir, name+".json"), cures: true, boot: "boot", booted: s.began.Add(-time.Hour)}
			a.process = k3sprocess.Process{PID: 100, Parent: 10, Start: time.Minute}
			a.kube, a.k3s = s.cluster, a
			s.agents[name] = a
			_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: device(name)})
			_ = os.MkdirAll(a.devices, 0o700)
			_ = os.WriteFile(filepath.Join(a.devices, "pv-"+name), nil, 0o600)
			_ = a.attachments.Publish("csi-"+name, types.Attachment{Name: "csi-" + name, Node: name, Volume: "pv-" + name})
			v := types.Volume{Name: "pv-" + name, Claim: "eve-kube-app/data-" + name, State: "attached", Robustness: "healthy"}
			_ = a.volumes.Publish(v.Name, v)
			storage.Volumes = append(storage.Volumes, v)
			storage.Attachments = append(storage.Attachments, types.Attachment{Volume: v.Name})
			_ = s.pods.Publish("eve-kube-app/app-"+name, wedged(name))
			a.watched(true)
		}
		s.cluster.SetStorage(storage)
		tell(s)
		for _, a := range s.agents {
			if a.stop != nil {
				a.stop()
			}
		}
	})
}

func device(name string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)) }

func wedged(node string) types.Pod {
	return types.Pod{
		Namespace: "eve-kube-app", Name: "app-" + node, UID: "uid-" + node, NodeName: node, Phase: types.PodPending, Claims: []string{"data-" + node},
		Containers: []types.Container{{Name: "guest-console-log", Waiting: "PodInitializing"}, {Name: "compute", Waiting: "ContainerCreating"}},
	}
}

func (a *agent) watched(complete bool) {
	for _, table := range []string{types.TableOwnAttachments, types.TableOwnVolumes} {
		_ = a.tables.Publish(table, types.TableStatus{Complete: complete})
	}
}

// Find, Restart, Begin are the device: its k3s and its audit.
func (a *agent) Find() (k3sprocess.Process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.process, a.missing
}

func (a *agent) Restart(_ context.Context, found k3sprocess.Process) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fails != nil {
		return a.fails
	}
	if found != a.process {
		a.Errorf("%s: %+v is to end, but k3s is %+v", a.name, found, a.process)
	}
	drain, _ := a.drain.Get(types.Global)
	change := types.TaskK3sChange
	if drain.Phase == types.PhaseComplete && slices.Equal(drain.Requesters, []string{types.RequestedByK3s}) {
		change = ""
	}
	if lock := a.cluster.Lock(); lock.Holder != a.name || lock.Task != types.TaskK3s && !(lock.Task == change && a.change().LacksPods()) {
		a.Errorf("%s restarts k3s while the lock is %+v", a.name, lock)
	}
	a.restarts = append(a.restarts, time.Now())
	if !a.hangs {
		a.process.Start = time.Since(a.booted) + time.Second
	}
	if a.hangs {
		return nil
	}
	a.cluster.ChangeNode(a.name, func(n *types.Node) { n.Ready = types.ConditionUnknown })
	time.AfterFunc(3*time.Minute, func() { // it is slow to come back
		if a.cures {
			p := wedged(a.name)
			p.Phase = types.PodRunning
			_ = a.pods.Publish(p.Key(), p)
		}
		a.cluster.ChangeNode(a.name, func(n *types.Node) { n.Ready = types.ConditionTrue })
	})
	if a.then != nil {
		a.then()
	}
	return nil
}

func (a *agent) Begin(o types.Operation) func(types.OperationOutcome, error) {
	return func(outcome types.OperationOutcome, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		o.Outcome = outcome
		a.audit = append(a.audit, o)
	}
}

// component is the one of a node.
func (s *stage) component(name string) *Component {
	a := s.agents[name]
	log, hook := logtest.NewNullLogger()
	a.logs = hook
	return &Component{
		Log: log, Pulse: &loop.Pulse{}, Info: &a.info, Nodes: &s.nodes, AppPods: &s.pods, Attachments: &a.attachments, Volumes: &a.volumes,
		Leases: &s.leases, Tables: &a.tables, API: &s.api, DeviceOp: &a.device, Update: &a.update, Operator: &a.operator, Drain: &a.drain,
		Membership: &a.member, Parts: &a.parts, Version: &a.version, Lifecycle: &a.lifecycle, Kube: a.kube, K3s: a.k3s, Operations: a,
		Devices: a.devices, File: a.file, BootID: a.boot, Uptime: func() time.Duration { return time.Since(a.booted) }, Recovery: &a.recovery,
	}
}

// start runs the agent of a node, perhaps after an earlier run.
func (s *stage) start(name string) *agent {
	return s.runs(s.agents[name], s.component(name))
}

func (s *stage) runs(a *agent, c *Component) *agent {
	ctx, cancel := context.WithCancel(types.ActAs(s.Context(), "mounts"))
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	a.stop = func() { cancel(); <-done; a.stop = nil }
	synctest.Wait()
	return a
}

// told is how often k3s was told to restart.
func (a *agent) told() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.restarts)
}

func (s *stage) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (a *agent) change() types.KubeLifecycle {
	l, _ := a.lifecycle.Get(types.Global)
	return l
}

// stuckChange is one of this node that lacks the pod alone, with its lock.
func (a *agent) stuckChange() types.DrainLock {
	_ = a.lifecycle.Publish(types.Global, types.KubeLifecycle{Phase: types.LifecycleStuck, NotBack: []string{"eve-kube-app/app-" + a.name}})
	a.cluster.SetLock(types.DrainLock{Holder: a.name, BootID: a.boot, Since: a.began, Task: types.TaskK3sChange, Volumes: map[string]int{"pv-" + a.name: 0, "pv-other": 0}})
	return a.cluster.Lock()
}

// stuckDrained is the same of a change for which this node is drained, with the lock of that.
func (a *agent) stuckDrained() types.DrainLock {
	lock := a.stuckChange()
	lock.Task = ""
	a.cluster.SetLock(lock)
	a.drains(types.PhaseComplete, types.RequestedByK3s)
	return a.cluster.Lock()
}

func (a *agent) drains(phase types.DrainPhase, requesters ...string) {
	_ = a.drain.Publish(types.Global, types.NodeDrainProgress{Phase: phase, Requesters: requesters, Lock: types.DrainLockView{Holder: a.name, Mine: true}})
}

// keeps checks that the lock is as it was, but for its version.
func (a *agent) keeps(was types.DrainLock) {
	a.Helper()
	is := a.cluster.Lock()
	if was.Version = is.Version; !reflect.DeepEqual(is, was) {
		a.Errorf("the lock is %+v, and was %+v", is, was)
	}
}

func (a *agent) says() types.MountRecovery {
	m, _ := a.recovery.Get(types.Global)
	return m
}

// is checks how often k3s was restarted, the phase, and words of the reason.
func (a *agent) is(restarts int, phase types.RepairPhase, words string) {
	a.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.says(); len(a.restarts) != restarts || m.Phase != phase || !strings.Contains(m.Reason, words) || words == "" && m.Reason != "" {
		a.Errorf("%s after %s: %d restarts, %s: %s", a.name, time.Since(a.began), len(a.restarts), m.Phase, m.Reason)
	}
}

var errNoK3s = fmt.Errorf("%w: process 100 of /run/k3s.pid is not k3s server", k3sprocess.ErrNothingDone)
