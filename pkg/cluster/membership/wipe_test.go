package membership_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/cluster/clusterstatus"
	"github.com/zedkube/zedkube/pkg/cluster/membership"
	"github.com/zedkube/zedkube/pkg/cluster/peers"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

var (
	device  = uuid.MustParse("b3e2f1a0-1111-4222-8333-444455556666")
	cluster = uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
)

// world is n1 with two peers: all components that have a part in a leave, and the
// kube container, which empties n1's replica directory when the status is
// withdrawn (docs/wire.md, "Kube container").
type world struct {
	*testing.T
	zedagent, baseos, operator pubsub.Table[types.NodeDrainRequest]
	config                     pubsub.Table[types.EdgeNodeClusterConfig]
	settings                   pubsub.Table[types.ConfigItemValueMap]
	agent                      pubsub.Table[types.ZedAgentStatus]
	info                       pubsub.Table[types.EdgeNodeInfo]
	ports                      pubsub.Table[types.DeviceNetworkStatus]
	token                      pubsub.Table[types.ClusterToken]
	request                    pubsub.Table[types.ClusterLeaveRequest]
	nodes                      pubsub.Table[types.Node]
	pods                       pubsub.Table[types.Pod]
	api                        pubsub.Table[types.APIStatus]
	kube                       *kubetest.Cluster
	keeps                      atomic.Bool // k3s keeps a Node that is deleted: its member cannot be removed

	member   pubsub.Table[types.ClusterMembership]
	status   pubsub.Table[types.EdgeNodeClusterStatus]
	drained  pubsub.Table[types.NodeDrainStatus]
	progress pubsub.Table[types.NodeDrainProgress]
	journal  pubsub.Table[types.NodeDrainJournal]
	known    pubsub.Table[types.ClusterPeers]
	without  pubsub.Table[types.WithoutCluster]

	storage types.Storage
	given   map[string]bool      // UIDs of the volumes whose loss was consented to
	came    map[string]time.Time // since when those with a replica on n1 have had it
	wiped   bool
	dir     string
	booted  time.Time
	answers string // an address that answers, "" for none
	steps   []func(context.Context) error
}

func newWorld(t *testing.T, dir string) *world {
	w := &world{T: t, dir: dir, given: map[string]bool{}, booted: time.Now().Add(-time.Hour)}
	w.kube = &kubetest.Cluster{Nodes: &w.nodes, Pods: &w.pods, API: &w.api, Grace: time.Second}
	w.kube.SetFault(kubetest.None)
	_ = w.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1", DeviceID: device})
	for i, name := range []string{"n1", "n2", "n3"} {
		n := types.Node{Name: name, UID: name, Ready: types.ConditionTrue, BootID: "boot-1", Etcd: true, InternalIP: fmt.Sprint("10.244.244.", i+2), Agent: &types.AgentStamp{Version: "1"}}
		if name == "n1" {
			n.UUID = device.String()
		}
		_ = w.nodes.Publish(name, n)
	}
	_ = w.pods.Publish("apps/a", types.Pod{Namespace: "apps", Name: "a", UID: "a", NodeName: "n1", Phase: types.PodRunning})
	_ = w.ports.Publish(types.Global, types.DeviceNetworkStatus{Ports: []types.NetworkPortStatus{{IfName: "eth1", Logicallabel: "e1", ClusterIPAddr: "10.244.244.2"}}})
	_ = w.agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess})
	carrier := filepath.Join(dir, "class/net/eth1/carrier")
	if err := os.MkdirAll(filepath.Dir(carrier), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(carrier, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.configured(true)
	w.wire()
	return w
}

func (w *world) configured(valid bool) {
	c := types.EdgeNodeClusterConfig{Initialized: true}
	if valid {
		c = types.EdgeNodeClusterConfig{
			Initialized: true, Valid: true, ClusterID: types.UUIDandVersion{UUID: cluster}, ClusterInterface: "e1",
			ClusterIPPrefix: &net.IPNet{IP: net.IPv4(10, 244, 244, 2), Mask: net.CIDRMask(28, 32)},
			MasterNodeIDs:   []uuid.UUID{device},
		}
	}
	_ = w.config.Publish(types.Global, c)
}

// Fulfilled implements membership.Requests.
func (w *world) Fulfilled(string) error { return w.request.Unpublish(types.Global) }

func (w *world) wire() {
	log, _ := logtest.NewNullLogger()
	up := func() time.Duration { return time.Since(w.booted) }
	p := &peers.Component{
		Log: log, Pulse: &loop.Pulse{}, Request: &w.request, Membership: &w.member, Status: &w.status, Agent: &w.agent, Info: &w.info,
		Nodes: &w.nodes, API: &w.api, Kube: w.kube, Dial: w.dial, Proc: w.dir, Sysfs: w.dir, BootID: "boot-1", Uptime: up, Peers: &w.known, Without: &w.without,
	}
	m := &membership.Component{
		Log: log, Pulse: &loop.Pulse{}, Config: &w.config, Status: &w.status, Agent: &w.agent, Settings: &w.settings, Info: &w.info, Nodes: &w.nodes, API: &w.api,
		Leave: &w.request, Without: &w.without, Progress: &w.progress, Journal: &w.journal, Kube: w.kube, Requests: w, Operations: types.NoOperations{},
		Version: "1", Hour: time.Hour, Uptime: up, Membership: &w.member,
	}
	d := &drain.Component{
		Log: log, Pulse: &loop.Pulse{}, Operations: types.NoOperations{}, DeviceOp: &w.zedagent, Update: &w.baseos, Operator: &w.operator, Lifecycle: &pubsub.Table[types.KubeLifecycle]{},
		Config: &w.config, Membership: &w.member, Settings: &w.settings, Info: &w.info, Nodes: &w.nodes, NodePods: &w.pods, API: &w.api, Kube: finalizing{w.kube, &w.keeps},
		Leases: &pubsub.Table[types.Lease]{}, Clocks: &pubsub.Table[types.NodeClock]{}, Agent: &pubsub.Table[types.NodeAgentStatus]{},
		ForceFiles: []string{filepath.Join(w.dir, "force")}, FaultMarker: filepath.Join(w.dir, "fault"), Hour: time.Hour, BootID: "boot-1", Uptime: up,
		Status: &w.drained, Progress: &w.progress, Journal: &w.journal,
	}
	s := &clusterstatus.Component{
		Log: log, Pulse: &loop.Pulse{}, Config: &w.config, Membership: &w.member, Ports: &w.ports, Token: &w.token, Status: &w.status,
	}
	w.steps = []func(context.Context) error{p.Step, m.Step, d.Step, s.Step}
}

// finalizing is a cluster whose k3s has a finalizer on each Node.
type finalizing struct {
	*kubetest.Cluster
	keeps *atomic.Bool
}

func (f finalizing) DeleteNode(ctx context.Context, node types.Node) error {
	if !f.keeps.Load() {
		return f.Cluster.DeleteNode(ctx, node)
	}
	f.ChangeNode(node.Name, func(n *types.Node) {
		n.Deleted, n.Finalizers = time.Now(), []string{"wrangler.cattle.io/managed-etcd-controller"}
	})
	return nil
}

// deleted reports that n1's Node is deleted, and kept.
func (w *world) deleted() bool {
	n, ok := w.nodes.Get("n1")
	return ok && !n.Deleted.IsZero()
}

// leaving is a leave whose Node k3s keeps.
func (w *world) leaving() {
	w.keeps.Store(true)
	w.volumes("", map[string][]string{"a": {"n1", "n2"}})
	w.configured(false)
	w.live(2 * time.Minute)
	w.ask(false, false)
	w.live(30 * time.Minute)
	if !w.deleted() {
		w.Error("the Node is not deleted")
	}
	w.isWiped(false)
}

func (w *world) dial(ctx context.Context, _, address string) (net.Conn, error) {
	if address == w.answers {
		one, other := net.Pipe()
		_ = other.Close()
		return one, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// live lets time pass. The kube container wipes once the status is withdrawn.
func (w *world) live(d time.Duration) {
	w.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		for _, step := range w.steps {
			_ = step(w.Context())
			synctest.Wait()
		}
		_, lastPeer := w.status.Get(types.Global)
		m, _ := w.member.Get(types.Global)
		if lastPeer || w.wiped || !m.Belongs() && m.State != types.MembershipLeft {
			continue
		}
		w.wiped = true
		for _, lost := range w.lost() {
			if !w.given[lost] && !w.unnamed(m, lost) {
				w.Errorf("volume %s is lost, to which nobody consented", lost)
			}
		}
	}
}

// unnamed reports that the consent to a leave without the cluster covers a volume that
// it does not name: it came after the last list, and a dead cluster gives no other.
func (w *world) unnamed(m types.ClusterMembership, uid string) bool {
	known, ok := w.known.Get(types.Global)
	return ok && m.Without != nil && m.Without.Consent.Unknown && w.came[uid].After(known.VolumesAt)
}

// lost are the volumes without a healthy replica once n1's are gone.
func (w *world) lost() (uids []string) {
	for _, v := range w.storage.Volumes {
		left := slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return r.Node != "n1" && v.Healthy(r) })
		if v.On("n1") && !left {
			uids = append(uids, v.UID)
		}
	}
	return uids
}

// volumes sets what there is: each name with the nodes of its healthy replicas.
func (w *world) volumes(policy string, on map[string][]string) {
	came := map[string]time.Time{}
	w.storage = types.Storage{Longhorn: true, Policy: policy}
	for name, nodes := range on {
		v := types.Volume{UID: "uid-" + name, Name: name, State: "detached", Wanted: 2}
		for _, n := range nodes {
			v.Replicas = append(v.Replicas, types.Replica{Name: name + n, Node: n, HealthyAt: time.Now()})
		}
		w.storage.Volumes = append(w.storage.Volumes, v)
		if v.On("n1") {
			came[v.UID] = cmp.Or(w.came[v.UID], time.Now())
		}
	}
	w.came = came
	w.kube.SetStorage(w.storage)
}

// ask is the operator's request, with a consent to these volumes.
func (w *world) ask(without, unknown bool, names ...string) {
	c := &types.LeaveConsent{BootID: "boot-1", Cluster: cluster, Uptime: time.Since(w.booted), Ends: true, Unknown: unknown}
	for _, name := range names {
		c.Volumes = append(c.Volumes, types.LeaveVolume{UID: "uid-" + name, Name: name})
		w.given["uid-"+name] = true
	}
	r := types.ClusterLeaveRequest{RequestedAt: time.Now(), Consent: c}
	if without {
		r.WithoutCluster = &types.LeaveWithoutCluster{Dead: []string{"n2", "n3"}}
	}
	_ = w.request.Publish(types.Global, r)
}

func (w *world) isWiped(want bool) {
	w.Helper()
	if m, _ := w.member.Get(types.Global); w.wiped != want {
		p, _ := w.progress.Get(types.Global)
		e, _ := w.without.Get(types.Global)
		w.Errorf("the replicas are wiped: %v, want %v; it is %s: %s; the drain %s: %s; the evidence %s: %s", w.wiped, want, m.State, m.Reason, p.Phase, p.Reason, e.State, e.Reason)
	}
}

func TestTheKubeContainerWipesNothingWithoutConsent(t *testing.T) {
	const last, safe = "last", "safe"
	both := map[string][]string{last: {"n1"}, safe: {"n1", "n2"}}
	for name, row := range map[string]struct {
		story func(*world)
		wiped bool
	}{
		"a leave with the last replica": {func(w *world) {
			w.configured(false)
			w.live(2 * time.Minute)
			w.ask(false, false)
			w.live(90 * time.Minute)
		}, false},
		"with a policy that lets it go": {func(w *world) {
			w.volumes("always-allow", both)
			w.configured(false)
			w.live(2 * time.Minute)
			w.ask(false, false)
			w.live(2 * time.Hour)
		}, false},
		"with a consent to it": {func(w *world) {
			w.configured(false)
			w.live(2 * time.Minute)
			w.ask(false, false, last)
			w.live(2 * time.Hour)
		}, true},
		"with a consent to another": {func(w *world) {
			w.configured(false)
			w.live(2 * time.Minute)
			w.ask(false, false, safe)
			w.live(2 * time.Hour)
		}, false},
		"an API that dies on the way": {func(w *world) {
			w.kube.Block("apps/a", true)
			w.configured(false)
			w.live(2 * time.Minute)
			w.ask(false, false)
			w.live(2 * time.Minute)
			w.kube.SetFault(kubetest.Refused)
			w.live(90 * time.Minute)
		}, false},
		"no leave, a dead API and a valid config":  {func(w *world) { w.kube.SetFault(kubetest.Refused); w.live(90 * time.Minute) }, false},
		"a survivor without quorum, nothing asked": {func(w *world) { w.kube.SetFault(kubetest.Refused); w.configured(false); w.live(90 * time.Minute) }, false},
		"a survivor that is asked without consent": {func(w *world) { w.kube.SetFault(kubetest.Refused); w.ask(true, false); w.live(2 * time.Hour) }, false},
		"a survivor with a consent to half of it":  {func(w *world) { w.kube.SetFault(kubetest.Refused); w.ask(true, true, last); w.live(2 * time.Hour) }, false},
		"a survivor with a consent to all": {func(w *world) {
			w.kube.SetFault(kubetest.Refused)
			w.ask(true, true, last, safe)
			w.live(2 * time.Hour)
		}, true},
		"a survivor with a volume that came after the last list": {func(w *world) {
			w.volumes("", map[string][]string{last: {"n1"}, safe: {"n1", "n2"}, "new": {"n1"}})
			w.live(2 * time.Minute)
			w.kube.SetFault(kubetest.Refused)
			w.ask(true, false, last, safe)
			w.live(2 * time.Hour)
		}, false},
		"the same, with a consent to what nobody can name": {func(w *world) {
			w.volumes("", map[string][]string{last: {"n1"}, safe: {"n1", "n2"}, "new": {"n1"}})
			w.live(2 * time.Minute)
			w.kube.SetFault(kubetest.Refused)
			w.ask(true, true, last, safe)
			w.live(2 * time.Hour)
		}, true},
		"one that says the list is unknown": {func(w *world) { w.kube.SetFault(kubetest.Refused); w.ask(true, true); w.live(2 * time.Hour) }, false},
		"a survivor whose peer answers after all": {func(w *world) {
			w.kube.SetFault(kubetest.Refused)
			w.ask(true, true, last, safe)
			w.live(9 * time.Minute)
			w.answers = "10.244.244.4:2380"
			w.live(time.Minute)
			w.answers = ""
			w.live(2 * time.Hour)
		}, false},
		"a Node that is kept, and nothing is lost": {func(w *world) {
			w.leaving()
			_ = w.nodes.Unpublish("n1")
			w.live(10 * time.Minute)
		}, true},
		"a Node that is kept while its replica becomes the last": {func(w *world) {
			w.leaving()
			w.volumes("", map[string][]string{"a": {"n1"}})
			w.live(2 * time.Minute)
			_ = w.nodes.Unpublish("n1")
			w.live(2 * time.Hour)
		}, false},
		"the same, and the API dies": {func(w *world) {
			w.leaving()
			w.volumes("", map[string][]string{"a": {"n1"}})
			w.live(2 * time.Minute)
			w.kube.SetFault(kubetest.Refused)
			w.live(2 * time.Hour)
		}, false},
		"a Node that is kept and goes as its replica becomes the last": {func(w *world) {
			w.leaving()
			w.volumes("", map[string][]string{"a": {"n1"}})
			_ = w.nodes.Unpublish("n1")
			w.live(2 * time.Hour)
		}, false},
		"a cluster whose configuration parses nowhere": {func(w *world) {
			for _, n := range []string{"n2", "n3"} {
				w.kube.ChangeNode(n, func(n *types.Node) { n.Agent = &types.AgentStamp{Version: "1", Given: time.Now()} })
			}
			w.volumes("", map[string][]string{safe: {"n1", "n2"}})
			w.configured(false)
			w.live(90 * time.Minute)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, dir)
				w.volumes("", both)
				w.live(2 * time.Minute)
				row.story(w)
				w.isWiped(row.wiped)
				w.kube.SetFault(kubetest.None)
				time.Sleep(2 * time.Minute) // calls under way end
			})
		})
	}
}

// Whatever happens in whichever order: no replica is lost without consent.
func TestNoOrderOfEventsLosesAReplicaWithoutConsent(t *testing.T) {
	for seed := range seeds.Each(t, 6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w, random := newWorld(t, dir), rand.New(rand.NewPCG(seed, 1))
				names := []string{"a", "b", "c"}
				places := [][]string{{"n1"}, {"n1", "n2"}, {"n2"}, {"n1", "n3"}}
				move := func() {
					on := map[string][]string{}
					for _, name := range names[:1+random.IntN(3)] {
						on[name] = places[random.IntN(len(places))]
					}
					w.volumes([]string{"", "always-allow", "allow-if-replica-is-stopped"}[random.IntN(3)], on)
				}
				move()
				w.live(time.Minute)
				for range 15 {
					if w.wiped {
						break
					}
					switch random.IntN(8) {
					case 0:
						w.kube.SetFault(kubetest.Fault(random.IntN(3)))
					case 1:
						w.configured(random.IntN(2) == 0)
					case 2:
						w.ask(random.IntN(2) == 0, random.IntN(2) == 0, names[:random.IntN(4)]...)
					case 3:
						_ = w.request.Unpublish(types.Global)
					case 4:
						if api, _ := w.api.Get(types.Global); api.Answers() { // nothing moves in a dead cluster
							move()
						}
					case 5:
						w.kube.ChangeNode("n2", func(n *types.Node) {
							n.Agent = &types.AgentStamp{Version: "1", Cluster: cluster, Masters: []uuid.UUID{uuid.New()}, Given: time.Now()}
						})
					case 6:
						w.kube.Block("apps/a", random.IntN(2) == 0)
					case 7:
						w.keeps.Store(random.IntN(2) == 0)
						if api, _ := w.api.Get(types.Global); api.Answers() && w.deleted() {
							_ = w.nodes.Unpublish("n1")
						}
					}
					w.live(time.Duration(1+random.IntN(15)) * time.Minute)
				}
				w.kube.SetFault(kubetest.None)
				time.Sleep(2 * time.Minute)
			})
		})
	}
}
