package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster of three nodes with two applications of EVE and a VirtualMachine.
type world struct {
	*testing.T
	kubetest.Cluster
	nodes    pubsub.Table[types.Node]
	pods     pubsub.Table[types.Pod]
	api      pubsub.Table[types.APIStatus]
	vmis     pubsub.Table[types.VMI]
	sets     pubsub.Table[types.AppSet]
	machines pubsub.Table[types.VirtualMachine]
	tables   pubsub.Table[types.TableStatus]
	disabled pubsub.Table[types.DisabledWorkloads]

	mu      sync.Mutex
	made    int      // versions and UIDs
	writes  []string // what was written, in order
	storage types.Storage
	onWrite func(string)
	agents  map[string]*agent
}

// agent is one node's, with what outlasts its death.
type agent struct {
	request pubsub.Table[types.WorkloadsRequest]
	status  pubsub.Table[types.WorkloadsStatus]
	info    pubsub.Table[types.EdgeNodeInfo]
	kube    Kube
	cancel  context.CancelFunc
	done    chan struct{}
}

func play(t *testing.T, do func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, agents: map[string]*agent{}}
		w.Nodes, w.Pods, w.API, w.VMIs, w.Sets, w.Grace = &w.nodes, &w.pods, &w.api, &w.vmis, &w.sets, 3*time.Second
		w.SetFault(kubetest.None)
		for i := range 3 {
			name := fmt.Sprintf("n%d", i+1)
			_ = w.nodes.Publish(name, types.Node{
				Name: name, UID: name, UUID: id(i).String(), Ready: types.ConditionTrue, Agent: &types.AgentStamp{Version: "1"}, StampedAt: time.Now(),
			})
			a := &agent{kube: w}
			_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: id(i)})
			w.agents[name] = a
		}
		for _, table := range []string{types.TableMachines, types.TableDisabled} {
			_ = w.tables.Publish(table, types.TableStatus{Complete: true})
		}
		w.OnRevival(func(_ types.AppSet, vmi *types.VMI, pod *types.Pod) { // it starts where a node is schedulable
			for _, name := range []string{"n2", "n1", "n3"} {
				if n, _ := w.nodes.Get(name); !n.Unschedulable {
					pod.NodeName, pod.Phase = name, types.PodRunning
					if vmi != nil {
						vmi.NodeName, vmi.Phase = name, types.VMIRunning
					}
					return
				}
			}
		})
		w.storage = types.Storage{Longhorn: true}
		w.Change(func() {
			w.add(types.AppSet{Kind: types.KindVMIReplicaSet, Name: "vm", Wanted: 1, Claims: []string{"vm-data"}})
			w.add(types.AppSet{Kind: types.KindReplicaSet, Name: "web", Wanted: 1})
			w.add(types.AppSet{Kind: types.KindReplicaSet, Name: "helm", Wanted: 2, Owned: true})
			w.add(types.AppSet{Kind: types.KindReplicaSet, Name: "none"})
			yes := true
			w.addMachine(types.VirtualMachine{Namespace: "shop", Name: "till", Run: types.RunState{Running: &yes}, Created: true})
			w.addMachine(types.VirtualMachine{Namespace: "shop", Name: "off", Run: types.RunState{Strategy: types.StrategyHalted}})
			for name, run := range map[string]string{"by-hand": types.StrategyManual, "ended": types.StrategyRerunOnFailure, "done": types.StrategyOnce} {
				w.addMachine(types.VirtualMachine{Namespace: "shop", Name: name, Run: types.RunState{Strategy: run}, Stopped: true, Created: name == "done"})
				w.addMachine(types.VirtualMachine{Namespace: "shop", Name: name + "-runs", Run: types.RunState{Strategy: run}, Created: true})
			}
		})
		w.volume("n2")
		do(w)
		for _, a := range w.agents {
			a.kill()
		}
	})
}

func id(i int) uuid.UUID { return uuid.UUID{15: byte(i + 1)} }

func (w *world) next() string {
	w.made++
	return fmt.Sprint(w.made)
}

func (w *world) add(s types.AppSet) {
	s.UID, s.Version = "set-"+w.next(), w.next()
	_ = w.sets.Publish(s.Key(), s)
}

func (w *world) addMachine(m types.VirtualMachine) {
	m.UID, m.Version = "machine-"+w.next(), w.next()
	_ = w.machines.Publish(m.Key(), m)
}

// volume attaches the volume of the application vm to a node, "" for none.
func (w *world) volume(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := types.Volume{Name: "pvc-1", Claim: types.NamespaceApps + "/vm-data", State: "detached", Engine: node}
	if v.Running = node != ""; v.Running {
		v.State = "attached"
	}
	for _, n := range []string{"n1", "n2"} {
		v.Replicas = append(v.Replicas, types.Replica{Name: "r-" + n, Node: n, Mode: "RW", HealthyAt: time.Now()})
	}
	w.storage.Volumes = []types.Volume{v}
}

func (w *world) Storage(context.Context, string) (types.Storage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.storage, nil
}

// before sets what is called before each write, nil for nothing.
func (w *world) before(hook func(string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onWrite = hook
}

// wrote notes a write, before which the test may end the agent that makes it.
func (w *world) wrote(ctx context.Context, what string) error {
	w.mu.Lock()
	hook := w.onWrite
	w.mu.Unlock()
	if hook != nil {
		hook(what)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, _ := w.api.Get(types.Global); !s.Answers() {
		return types.ErrNoAPI
	}
	w.writes = append(w.writes, what)
	return nil
}

func (w *world) Cordon(ctx context.Context, node string, c types.Cordon) error {
	if err := w.wrote(ctx, "cordon "+node); err != nil {
		return err
	}
	return w.Cluster.Cordon(ctx, node, c)
}

func (w *world) UncordonWorkloads(ctx context.Context, node string) error {
	if err := w.wrote(ctx, "uncordon "+node); err != nil {
		return err
	}
	return w.Cluster.UncordonWorkloads(ctx, node)
}

func (w *world) DisabledWorkloads(context.Context) (types.DisabledWorkloads, error) {
	d, _ := w.disabled.Get("disabled")
	return d, nil
}

func (w *world) DisableWorkloads(ctx context.Context, d types.DisabledWorkloads) error {
	if err := w.wrote(ctx, "disable"); err != nil {
		return err
	}
	if _, there := w.disabled.Get("disabled"); there {
		return nil
	}
	w.Change(func() { d.UID = "disabled-" + w.next() })
	return w.disabled.Publish("disabled", d)
}

func (w *world) EnableWorkloads(ctx context.Context, d types.DisabledWorkloads) error {
	if err := w.wrote(ctx, "enable"); err != nil {
		return err
	}
	if now, _ := w.disabled.Get("disabled"); now.UID == d.UID {
		return w.disabled.Unpublish("disabled")
	}
	return nil
}

// ScaleSet does what the API server and KubeVirt do: a paused set makes and deletes nothing.
func (w *world) ScaleSet(ctx context.Context, set types.AppSet, to types.SetScale) (err error) {
	if err := w.wrote(ctx, fmt.Sprintf("scale %s to %d", set.Name, to.Replicas)); err != nil {
		return err
	}
	w.Change(func() {
		now, ok := w.sets.Get(set.Key())
		if !ok || now.UID != set.UID || now.Version != set.Version {
			err = types.ErrConflict
			return
		}
		now.Wanted, now.Paused, now.Former, now.Version = to.Replicas, to.Paused, to.Former, w.next()
		_ = w.sets.Publish(set.Key(), now)
		if now.Wanted == 0 && !now.Paused {
			w.stop(now)
		}
	})
	return err
}

// stop deletes what a set has; it is gone after Grace where its node is Ready.
func (w *world) stop(s types.AppSet) {
	owners := map[string]bool{s.UID: true}
	for _, v := range w.vmis.All() {
		if v.Owner.UID == s.UID {
			owners[v.UID] = true
			v.Deleted = time.Now()
			_ = w.vmis.Publish(v.Name, v)
		}
	}
	for _, p := range w.pods.All() {
		if owners[p.Owner.UID] {
			p.Deleted = time.Now()
			_ = w.pods.Publish(p.Key(), p)
			if n, _ := w.nodes.Get(p.NodeName); n.Ready == types.ConditionTrue || p.NodeName == "" {
				time.AfterFunc(w.Grace, func() { w.Change(func() { _ = w.pods.Unpublish(p.Key()) }) })
			}
		}
	}
}

func (w *world) RunMachine(ctx context.Context, m types.VirtualMachine, to types.RunState, former *types.FormerRun) (err error) {
	if err := w.wrote(ctx, "run "+m.Name+" "+to.Strategy); err != nil {
		return err
	}
	w.Change(func() {
		now, ok := w.machines.Get(m.Key())
		if !ok || now.UID != m.UID || now.Version != m.Version {
			err = types.ErrConflict
			return
		}
		now.Run, now.Former = to, former
		w.run(now, false)
	})
	return err
}

// run does what KubeVirt makes of a run strategy: an instance takes a while to stop, and some
// strategies start none after that.
func (w *world) run(m types.VirtualMachine, ended bool) {
	always := m.Run.Strategy == types.StrategyAlways || m.Run.Running != nil && *m.Run.Running
	m.Version = w.next()
	switch {
	case m.Run.Halted() && m.Created && !ended:
		time.AfterFunc(w.Grace, func() {
			w.Change(func() {
				if now, ok := w.machines.Get(m.Key()); ok && now.UID == m.UID {
					now.Created = false
					w.run(now, true)
				}
			})
		})
	case always, m.Run.Strategy == types.StrategyOnce, m.Run.Strategy == types.StrategyRerunOnFailure && !ended:
		m.Created = true
	}
	m.Stopped = !m.Created
	_ = w.machines.Publish(m.Key(), m)
}

// start starts the agents of these nodes, all of them for none.
func (w *world) start(names ...string) {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(w.agents))
	}
	began := time.Now().Add(-time.Hour)
	for _, name := range names {
		a := w.agents[name]
		a.kill()
		log, _ := logtest.NewNullLogger()
		log.SetLevel(logrus.DebugLevel)
		ctx, cancel := context.WithCancel(w.Context())
		a.cancel, a.done = cancel, make(chan struct{})
		c := &Component{
			Log: log, Pulse: &loop.Pulse{}, Request: &a.request, Disabled: &w.disabled, Info: &a.info, Nodes: &w.nodes, AppPods: &w.pods,
			VMIs: &w.vmis, Sets: &w.sets, Machines: &w.machines, Tables: &w.tables, API: &w.api, Kube: a.kube,
			Uptime: func() time.Duration { return time.Since(began) }, Status: &a.status,
		}
		go func() { defer close(a.done); c.Run(ctx) }()
	}
	synctest.Wait()
}

func (a *agent) kill() {
	if a.cancel != nil {
		a.cancel()
		<-a.done
		a.cancel = nil
	}
}

// ask has an operator ask on a node.
func (w *world) ask(node string, disable bool) {
	_ = w.agents[node].request.Publish(types.Global, types.WorkloadsRequest{RequestedAt: time.Now().Round(0), Disable: disable, Reason: "new switch"})
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) says(node string) types.WorkloadsStatus {
	s, _ := w.agents[node].status.Get(types.Global)
	return s
}

// is checks the phase that a node publishes, and that it waits for what has these words.
func (w *world) is(node string, phase types.WorkloadsPhase, waits string) {
	w.Helper()
	s := w.says(node)
	if s.Phase != phase || waits == "" && len(s.Waits) > 0 || !strings.Contains(strings.Join(s.Waits, "\n"), waits) {
		w.Errorf("%s says %q, waiting for %q, want %q and %q", node, s.Phase, s.Waits, phase, waits)
	}
}

// snapshot is what the workloads are, without what each write changes.
func (w *world) snapshot() string {
	var lines []string
	for key, s := range w.sets.All() {
		lines = append(lines, fmt.Sprintf("%s %s wanted %d paused %v former %+v", key, s.UID, s.Wanted, s.Paused, s.Former))
	}
	for key, m := range w.machines.All() {
		running := "unset"
		if m.Run.Running != nil {
			running = fmt.Sprint(*m.Run.Running)
		}
		lines = append(lines, fmt.Sprintf("%s %q %s created %v former %v", key, m.Run.Strategy, running, m.Created, m.Former))
	}
	for key, n := range w.nodes.All() {
		lines = append(lines, fmt.Sprintf("%s unschedulable %v %s", key, n.Unschedulable, n.Cordoner()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// running are the pods of EVE's applications that are on a node.
func (w *world) running() (names []string) {
	for key, p := range w.pods.All() {
		if p.Phase == types.PodRunning && !strings.Contains(key, "helm") {
			names = append(names, key)
		}
	}
	return names
}

var errTest = errors.New("the API server says no")
