package apps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// world is a cluster of three with the component on each node, a scheduler, and
// a KubeVirt that behaves as the real one was seen to. The virtual machine runs
// on n2 and has one volume; another application of n2's has one, too.
type world struct {
	*testing.T
	kube    *kubetest.Cluster
	nodes   pubsub.Table[types.Node]
	pods    pubsub.Table[types.Pod]
	api     pubsub.Table[types.APIStatus]
	known   pubsub.Table[types.KnownNode]
	vmis    pubsub.Table[types.VMI]
	sets    pubsub.Table[types.AppSet]
	agents  map[string]*agent
	configs source[types.AppInstanceConfig]
	mine    map[string]types.AppInstanceConfig // of one node, where it is not everybody's
	zero    bool                               // a set was seen to want nothing
	nowhere bool                               // the scheduler finds no node
	alive   string                             // where n2's device answers although its Node is not well
	answers bool                               // n2's device is there after all: the witnesses say what a test says
	wrap    func(node string, k Kube) Kube     // of every agent that starts; nil for none
	made    int
	began   time.Time
}

// agent is the component on one node.
type agent struct {
	node     string
	info     pubsub.Table[types.EdgeNodeInfo]
	settings pubsub.Table[types.ConfigItemValueMap]
	asked    pubsub.Table[types.AppDetachRequest]
	zedagent pubsub.Table[types.ZedAgentStatus]
	configs  *source[types.AppInstanceConfig]
	pods     pubsub.Reader[types.Pod] // the world's, where the watch is not broken
	nodes    pubsub.Reader[types.Node]
	status   pubsub.Table[types.ENClusterAppStatus]
	repairs  pubsub.Table[types.AppRepairStatus]
	log      *logrus.Logger
	logged   *logtest.Hook
	stop     func()
}

const foreign = "eve-kube-app/foreign"

// inWorld plays in fake time.
func inWorld(t *testing.T, play func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, agents: map[string]*agent{}, began: time.Now().Add(-time.Hour)}
		w.kube = &kubetest.Cluster{
			Nodes: &w.nodes, Pods: &w.pods, API: &w.api, VMIs: &w.vmis, Sets: &w.sets, Grace: time.Second,
		}
		w.build()
		for _, n := range []string{"n1", "n2", "n3"} {
			w.start(n)
		}
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { defer close(done); w.turn(ctx) }()
		play(w)
		for _, a := range w.agents {
			a.stop()
		}
		cancel()
		<-done
		if w.zero {
			t.Error("a set was scaled to 0")
		}
	})
}

func (w *world) build() {
	cfg := config(vm)
	cfg.Activate = true
	_ = w.configs.Publish(appID, cfg)
	_ = w.api.Publish(types.Global, types.APIStatus{Synced: true, Apps: true})
	for i, n := range []string{"n1", "n2", "n3"} {
		_ = w.nodes.Publish(n, types.Node{
			Name: n, UID: "uid-" + n, UUID: uuid.NewSHA1(uuid.Nil, []byte(n)).String(), Ready: types.ConditionTrue,
			Agent: &types.AgentStamp{}, BootID: "boot-" + n, ReadySince: time.Now().Add(-time.Hour), InternalIP: fmt.Sprintf("10.0.0.%d", i),
		})
		w.kube.SetRenewed(n, time.Now())
		_ = w.known.Publish(n, types.KnownNode{Name: n, UID: "uid-" + n, InternalIP: fmt.Sprintf("10.0.0.%d", i)})
	}
	domain := appID + ".1.7"
	set := types.AppSet{Kind: types.KindVMIReplicaSet, Name: name, UID: "set", Version: "1", AppDomain: domain, Wanted: 1, Claims: []string{"data"}, Affinity: types.SetAffinity{Node: "n2"}}
	_ = w.sets.Publish(set.Key(), set)
	w.kube.OnRevival(func(_ types.AppSet, vmi *types.VMI, pod *types.Pod) { w.place(vmi, pod) })
	vmi := types.VMI{Name: name + "abcde", UID: "vmi", Phase: types.VMIRunning, NodeName: "n2", Owner: types.Owner{Kind: set.Kind, Name: name, UID: "set"}, AppDomain: domain, Affinity: set.Affinity}
	_ = w.vmis.Publish(vmi.Name, vmi)
	p := launcher(vmi.Name, on("n2"), func(p *types.Pod) { p.Claims, p.Owner.UID = []string{"data"}, "vmi" })
	_ = w.pods.Publish(p.Key(), p)
	other := types.Pod{Namespace: "eve-kube-app", Name: "other", UID: "other", NodeName: "n2", Phase: types.PodRunning, Claims: []string{"foreign"}}
	_ = w.pods.Publish(other.Key(), other)
	v, f := volume("data"), volume("foreign")
	f.Name, f.Claim = "pv-foreign", foreign
	for _, v := range []*types.Volume{&v, &f} {
		for i := range v.Replicas {
			v.Replicas[i].HealthyAt = time.Now()
		}
	}
	w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
	w.kube.SetAttachments(
		types.Attachment{Name: "va-1", UID: "va-1", Node: "n2", Volume: "pv-data"},
		types.Attachment{Name: "va-2", UID: "va-2", Node: "n2", Volume: "pv-foreign"},
	)
}

// start runs the component of a node; wrap may put itself before its verbs.
func (w *world) start(node string, wrap ...func(Kube) Kube) {
	a, ok := w.agents[node]
	if !ok {
		a = &agent{node: node, pods: &w.pods, nodes: &w.nodes}
		a.log, a.logged = logtest.NewNullLogger()
		_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: node, DeviceID: uuid.NewSHA1(uuid.Nil, []byte(node))})
		_ = a.zedagent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess})
		w.agents[node] = a
	}
	var kube Kube = w.kube
	if w.wrap != nil {
		kube = w.wrap(node, kube)
	}
	for _, f := range wrap {
		kube = f(kube)
	}
	configs := &w.configs
	if cfg, ok := w.mine[node]; ok {
		configs = &source[types.AppInstanceConfig]{}
		if cfg.UUIDandVersion.UUID != uuid.Nil { // else it has none yet
			_ = configs.Publish(appID, cfg)
		}
	}
	a.configs = configs
	ctx, cancel := context.WithCancel(w.Context())
	done, began := make(chan struct{}), w.began // a test may change it for those who start later
	c := &Component{
		Log: a.log, Pulse: &loop.Pulse{}, Configs: configs, Settings: &a.settings, Requests: &a.asked, Info: &a.info, Agent: &a.zedagent,
		Nodes: a.nodes, AppPods: a.pods, VMIs: &w.vmis, Sets: &w.sets, API: &w.api, Known: &w.known, Mounts: &pubsub.Table[types.MountRecovery]{}, Off: &pubsub.Table[types.WorkloadsStatus]{}, Kube: kube,
		BootID: "boot-" + node, Uptime: func() time.Duration { return time.Since(began) }, Status: &a.status, Repairs: &a.repairs,
	}
	go func() { defer close(done); c.Run(ctx) }()
	a.stop = func() { cancel(); <-done }
}

// lose makes n2's device die; its pods are evicted after 15 s.
func (w *world) lose() {
	w.agents["n2"].stop()
	w.agents["n2"].stop = func() {}
	w.kube.Change(func() { w.setReady("n2", types.ConditionUnknown) })
	time.AfterFunc(15*time.Second, func() {
		w.kube.Change(func() {
			n, ok := w.nodes.Get("n2")
			if !ok || n.Ready != types.ConditionUnknown {
				return
			}
			for _, p := range w.pods.All() {
				if p.NodeName == "n2" {
					p.Deleted = time.Now()
					_ = w.pods.Publish(p.Key(), p)
				}
			}
		})
	})
}

// set is the application's.
func (w *world) set() types.AppSet { return slices.Collect(maps.Values(w.sets.All()))[0] }

// contain makes the application one of containers, which runs on n2 for a minute by now.
func (w *world) contain() {
	cfg := config(container)
	cfg.Activate = true
	_ = w.configs.Publish(appID, cfg)
	w.kube.Change(func() {
		set := w.set()
		_ = w.sets.Unpublish(set.Key())
		set.Kind, set.AppDomain = types.KindReplicaSet, ""
		_ = w.sets.Publish(set.Key(), set)
		for _, v := range w.vmis.All() {
			_ = w.vmis.Unpublish(v.Name)
		}
		for key, p := range w.pods.All() {
			if p.VMI != "" {
				_ = w.pods.Unpublish(key)
			}
		}
		p := pod("c", on("n2"), func(p *types.Pod) { p.Claims, p.Owner.UID = []string{"data"}, set.UID })
		_ = w.pods.Publish(p.Key(), p)
	})
	time.Sleep(time.Minute)
}

func (w *world) setReady(node string, ready types.ConditionStatus) {
	n, _ := w.nodes.Get(node)
	n.Ready, n.ReadySince = ready, time.Now()
	_ = w.nodes.Publish(node, n)
}

func (w *world) runsOn() []string {
	var nodes []string
	for _, p := range w.pods.All() {
		if p.Name != "other" && p.Phase == types.PodRunning && !p.Terminating() {
			nodes = append(nodes, p.NodeName)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// until waits for something, and returns how long that took.
func (w *world) until(what string, limit time.Duration, so func() bool) time.Duration {
	w.Helper()
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		synctest.Wait()
		if so() {
			return time.Since(begin)
		}
		if time.Since(begin) > limit {
			for _, n := range []string{"n1", "n3"} {
				s, _ := w.agents[n].repairs.Get(appID)
				w.Logf("%s: %+v", n, s)
			}
			w.Logf("calls: %v", w.verbs())
			w.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// verbs counts what was written.
func (w *world) verbs() map[string]int {
	n := map[string]int{}
	for _, verb := range []string{"forcedelete", "forgetvmi", "deletevmi", "deleteattachment", "fence", "unfence", "wanted", "affinity", "noterepair", "evict"} {
		if calls := len(w.kube.Calls(verb)); calls > 0 {
			n[verb] = calls
		}
	}
	return n
}

func (w *world) attachments() []string {
	all, _ := w.kube.NodeAttachments(w.Context(), "n2")
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
	}
	return names
}
