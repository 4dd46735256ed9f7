package turns

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// began is when all data was written.
var began = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// versions are those that k3s may be asked to change to, one after the other: patches and minor versions in turn.
var versions = []string{"v1.34.2+k3s1", "v1.34.3+k3s1", "v1.35.1+k3s1", "v1.35.2+k3s1", "v1.36.0+k3s1", "v1.36.1+k3s1", "v1.37.0+k3s1", "v1.37.1+k3s1", "v1.38.0+k3s1"}

// world is a cluster of three servers in which anything happens at any time.
type world struct {
	t       *testing.T
	r       *rand.Rand // of the play alone
	mounts  *rand.Rand // likewise, of kubelets that do not mount
	dir     string
	devices string
	start   time.Time
	cluster *kubetest.Cluster
	rows    shared[types.Node]
	pods    shared[types.Pod]
	leases  shared[types.Lease]
	names   []string
	nodes   map[string]*node
	volumes []*volume
	storage types.Storage
	version int // of versions, that is wanted
	made    int // pods

	member    pubsub.Table[types.ClusterMembership]
	settings  pubsub.Table[types.ConfigItemValueMap]
	clocks    pubsub.Table[types.NodeClock]
	nodeagent pubsub.Table[types.NodeAgentStatus]
	override  pubsub.Table[types.K3sOverrideStatus]
	retry     pubsub.Table[types.K3sRetryRequest]
	rollback  pubsub.Table[types.K3sRollbackRequest]
	joined    pubsub.Table[types.EdgeNodeClusterStatus]
	parts     pubsub.Table[types.KubeClusterUpdateStatus]

	locking sync.Mutex // while the lock is written
	written string     // version of the lock that was written down last
	mu      sync.Mutex // guards the devices' k3s, and what follows
	history []event
}

func (w *world) note(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted(e)
}

// noted is note with mu held.
func (w *world) noted(e event) {
	e.At = time.Since(w.start)
	w.history = append(w.history, e)
}

func (w *world) happens(node, text string) { w.note(event{Kind: happens, Node: node, Text: text}) }

// lockMay writes down what the lock is, if it is another one. Called with locking held.
func (w *world) lockMay(node string) {
	if is := w.cluster.Lock(); is.Version != w.written {
		w.written = is.Version
		w.note(event{Kind: lockIs, Node: node, Lock: is})
	}
}

// line is a hook of the log: what is logged is part of the history.
type line struct {
	node *node
	of   string
}

func (l line) Levels() []logrus.Level { return logrus.AllLevels }

func (l line) Fire(e *logrus.Entry) error {
	l.node.note(event{Kind: says, Node: l.node.name, Text: fmt.Sprint(l.of, ": ", e.Message, " ", e.Data)})
	return nil
}

func (n *node) log(of string) logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.AddHook(line{n, of})
	return log
}

func (w *world) isUp(name string) bool { return w.nodes[name] != nil && w.nodes[name].up }

func newWorld(t *testing.T, seed uint64, dir string) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 15)), mounts: rand.New(rand.NewPCG(seed, 16)), dir: dir, devices: filepath.Join(dir, "longhorn"), start: time.Now(), names: []string{"n1", "n2", "n3"}, nodes: map[string]*node{}}
	w.cluster = &kubetest.Cluster{Nodes: &w.rows, Pods: &w.pods, API: &pubsub.Table[types.APIStatus]{}, Leases: &w.leases, Grace: 5 * time.Second, Gate: gate}
	for i, name := range w.names {
		n := &node{world: w, name: name, i: i, id: uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)), up: true, booted: w.start.Add(-time.Hour), started: w.start.Add(-time.Hour), runs: true}
		n.running, n.disk, n.wanted, n.expires, n.progress.node = versions[0], versions[0], versions[0], w.start.Add(200*day), n
		w.nodes[name] = n
		n.rows, n.pods, n.leases = w.rows.open(n, nil), w.pods.open(n, nil), w.leases.open(n, nil)
		n.own = w.pods.open(n, func(p types.Pod) bool { return p.NodeName == name })
		_ = w.rows.Publish(name, types.Node{
			Name: name, UID: name, UUID: n.id.String(), Ready: types.ConditionTrue, BootID: n.boot(), KubeletVersion: versions[0],
			ControlPlane: true, Etcd: true, EtcdVoter: types.ConditionTrue, Agent: &types.AgentStamp{Version: "test"},
		})
		_ = n.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: n.id})
		_ = n.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true})
		var states types.KubeNodeConditions
		for _, s := range []types.NodeStateType{types.StateServerCertificate, types.StateClientCertificate, types.StateCACertificate, types.StateClock} {
			states.Conditions = append(states.Conditions, types.NodeStateCondition{Type: s, Status: types.ConditionTrue})
		}
		_ = n.conditions.Publish(types.Global, states)
		for _, table := range []string{types.TableOwnAttachments, types.TableOwnVolumes} {
			_ = n.tables.Publish(table, types.TableStatus{Complete: true})
		}
		n.agentAt = w.start
	}
	for _, on := range []string{"12", "23", "13", "123"} {
		v := &volume{name: "pv-" + on, wanted: len(on), replicas: map[string]*replica{}}
		for _, i := range on {
			v.replicas["n"+string(i)] = &replica{whole: true}
		}
		w.volumes = append(w.volumes, v)
	}
	return w
}

// longhorn places pods and volumes.
func (w *world) longhorn() {
	now := time.Now()
	for _, v := range w.volumes {
		key := types.NamespaceApps + "/" + v.name
		pod, there := w.pods.Get(key)
		if n := w.nodes[pod.NodeName]; there && (n == nil || !n.up && now.Sub(n.stopped) > 5*time.Minute) {
			_ = w.pods.Unpublish(key)
			there = false
		}
		if !there {
			v.engine = ""
			v.settle(w.isUp, now)
			w.places(v)
		}
		v.settle(w.isUp, now)
		maps.DeleteFunc(v.replicas, func(name string, _ *replica) bool { return w.nodes[name] == nil }) // another node is to have it
		for _, name := range w.names {
			r := v.replicas[name]
			switch {
			case r == nil && len(v.replicas) < v.wanted:
				v.replicas[name] = &replica{failed: now}
			case r != nil && !r.whole && r.rebuilt.IsZero() && v.runs(w.isUp) && w.isUp(name) && w.nodes[name].k3sRuns():
				r.rebuilt = now.Add(time.Duration(1+w.r.IntN(40)) * time.Minute)
			}
		}
	}
	storage := types.Storage{Longhorn: true}
	for _, v := range w.volumes {
		storage.Volumes = append(storage.Volumes, v.shown(w.names, w.isUp))
	}
	if reflect.DeepEqual(storage, w.storage) {
		return
	}
	w.storage = storage
	w.cluster.SetStorage(storage)
	w.note(event{Kind: volumesAre, Volumes: storage.Volumes})
	for name, n := range w.nodes {
		volumes, attachments := map[string]types.Volume{}, map[string]types.Attachment{}
		for _, v := range storage.Volumes {
			if v.Engine == name {
				volumes[v.Name], attachments["csi-"+v.Name] = v, types.Attachment{Name: "csi-" + v.Name, Node: name, Volume: v.Name}
			}
		}
		_, _ = n.volumesHere.Replace(volumes), n.attachments.Replace(attachments)
	}
}

// places makes the pod of a volume on a node that takes one, if the volume has a whole replica.
func (w *world) places(v *volume) {
	var free []string
	for _, name := range w.names {
		if row, there := w.rows.Get(name); there && row.Ready == types.ConditionTrue && !row.Unschedulable && w.isUp(name) {
			free = append(free, name)
		}
	}
	if len(free) == 0 || v.healthy(w.isUp) == 0 {
		return
	}
	w.made++
	v.engine = free[w.r.IntN(len(free))]
	p := types.Pod{Namespace: types.NamespaceApps, Name: v.name, UID: fmt.Sprint("uid-", w.made), NodeName: v.engine, Phase: types.PodRunning, Created: time.Now(), App: v.name, Claims: []string{v.name}}
	_ = w.pods.Publish(p.Key(), p)
}

// passes lets time pass, in which everything takes its course.
func (w *world) passes(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(2 * time.Second) {
		synctest.Wait()
		for _, name := range w.names {
			if n := w.nodes[name]; n != nil {
				n.lives()
			}
		}
		w.longhorn()
	}
	synctest.Wait()
}

// chances are what may happen, each as often as the seed wants it.
func (w *world) chances() (all []func(*node)) {
	for _, one := range []func(*node){
		func(n *node) { n.asks(&n.device, types.DrainRequesterDeviceOp) },
		func(n *node) { n.asks(&n.update, types.DrainRequesterUpdate) },
		func(n *node) { n.asks(&n.operator, types.DrainRequesterNone); n.given = time.Now().Add(w.minutes(40)) },
		func(n *node) {
			w.happens(n.name, "its requests are withdrawn")
			_, _ = n.device.Unpublish(types.Global), n.update.Unpublish(types.Global)
		},
		func(*node) { w.wish() },
		func(*node) { w.wish() },
		func(n *node) {
			n.expires = time.Now().Add([]time.Duration{10 * day, 50 * day, 100 * day}[w.r.IntN(3)])
			w.happens(n.name, "a certificate expires at "+n.expires.String())
			if w.r.IntN(2) == 0 {
				_ = n.reset.Publish(types.Global, types.CertsResetRequest{RequestedAt: time.Now()})
			}
		},
		w.sticks,
		func(n *node) {
			if n.stop != nil {
				w.happens(n.name, "its agent is killed")
				n.stop()
				n.agentAt = time.Now().Add(w.minutes(1))
			}
		},
		func(n *node) {
			if n.up {
				n.loses("loses its power", w.minutes(10))
			}
		},
		func(n *node) {
			n.mutes = time.Now().Add(w.minutes(8))
			w.happens(n.name, "its API server is silent until "+n.mutes.String())
		},
		func(n *node) { n.lag.Store(int64(w.r.IntN(5000)) * int64(time.Millisecond)) },
		func(n *node) {
			v := w.volumes[w.r.IntN(len(w.volumes))]
			if r := v.replicas[n.name]; r != nil && r.whole && v.healthy(w.isUp) > 1 {
				r.whole, r.failed = false, time.Now()
				w.happens(n.name, "its replica of "+v.name+" fails")
			}
		},
		func(*node) { w.cluster.LoseAnswer([]string{"setlock", "freelock", "cordon", "uncordon"}[w.r.IntN(4)]) },
		func(*node) {},
	} {
		for range w.r.IntN(4) {
			all = append(all, one)
		}
	}
	return append(all, func(*node) {})
}

func (w *world) minutes(most int) time.Duration {
	return time.Duration(1+w.r.IntN(60*most)) * time.Second
}

func (n *node) asks(topic *pubsub.Table[types.NodeDrainRequest], by types.DrainRequester) {
	n.world.happens(n.name, "its drain is requested by "+by.String())
	_ = topic.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Now(), RequestedBy: by, Context: "test"})
}

// one is a node, rather the one that has the lock.
func (w *world) one() *node {
	if n := w.nodes[w.cluster.Lock().Holder]; n != nil && w.r.IntN(3) == 0 {
		return n
	}
	return w.nodes[w.names[w.r.IntN(len(w.names))]]
}

// wish is another version that is wanted on every node, and an operator who has looked at what zedkube cannot.
func (w *world) wish() {
	for _, n := range w.nodes {
		if n.running != versions[w.version] {
			return // one after the other
		}
	}
	w.version = min(w.version+1, len(versions)-1)
	for _, name := range w.names {
		if n := w.nodes[name]; n != nil {
			n.wanted = versions[w.version]
			_ = n.release.Publish(types.Global, types.K3sReleaseRequest{
				Version: n.wanted, RequestedAt: time.Now(), Without: []string{"Snapshot", "EtcdHealthy", "EtcdVersion", "Compatible", "RemovedAPIs"},
			})
		}
	}
	w.happens("", "k3s "+versions[w.version]+" is wanted")
}

// sticks is a pod whose volume the kubelet does not mount.
func (w *world) sticks(n *node) {
	for _, v := range w.volumes {
		if p, there := w.pods.Get(types.NamespaceApps + "/" + v.name); there && p.NodeName == n.name && !p.Terminating() {
			w.happens(n.name, "the volume of "+v.name+" is not mounted")
			p.Phase, p.Containers = types.PodPending, []types.Container{{Name: "compute", Waiting: "ContainerCreating"}}
			_ = w.pods.Publish(p.Key(), p)
			return
		}
	}
}

// cures is an operator who deletes the pods for which zedkube restarts k3s no more, and the volumes whose data are lost.
func (w *world) cures() {
	w.volumes = slices.DeleteFunc(w.volumes, func(v *volume) bool {
		lost := v.healthy(w.isUp) == 0
		if lost {
			w.happens("", v.name+" is deleted")
			_ = w.pods.Unpublish(types.NamespaceApps + "/" + v.name)
		}
		return lost
	})
	for key, p := range w.pods.All() {
		if n := w.nodes[p.NodeName]; p.Phase == types.PodPending && n != nil {
			if m, _ := n.recovery.Get(types.Global); m.Phase == types.RepairGaveUp {
				w.happens(p.NodeName, "its pod "+p.Name+" is deleted")
				_ = w.pods.Unpublish(key)
			}
		}
	}
}

// dies is a device that is lost for ever; an operator deletes its Node.
func (w *world) dies() {
	n := w.nodes[w.names[w.r.IntN(len(w.names))]]
	n.loses("dies", 1000*time.Hour)
	w.passes(time.Duration(10+w.r.IntN(50)) * time.Minute)
	w.note(event{Kind: isGone, Node: n.name})
	_ = w.rows.Unpublish(n.name)
	delete(w.nodes, n.name)
	w.names = slices.DeleteFunc(w.names, func(name string) bool { return name == n.name })
}

// calms is how many hours may pass until everything is done: a drain that fails takes 24.
const calms = 30

// play plays a history of that many hours, and calm ones.
func play(t *testing.T, seed uint64, busy int, dir string) (all []event) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, dir)
		w.passes(10 * time.Minute)
		chances, pause, lost := w.chances(), 60+w.r.IntN(600), -1
		if w.r.IntN(20) == 0 {
			lost = w.r.IntN(busy)
		}
		for hour := range busy {
			if hour == lost {
				w.dies()
			}
			for end := time.Now().Add(time.Hour); time.Now().Before(end); {
				chances[w.r.IntN(len(chances))](w.one())
				w.passes(time.Duration(1+w.r.IntN(pause)) * time.Second)
			}
		}
		w.happens("", "is calm")
		for _, n := range w.nodes {
			n.given = time.Now()
			n.lag.Store(0)
		}
		for hour := range calms {
			if hour == calms/2 {
				w.cures()
			}
			if w.passes(time.Hour); w.left() == "" {
				break
			}
		}
		w.note(event{Kind: settled, Text: w.left()})
		for _, n := range w.nodes {
			if n.stop != nil {
				n.stop()
			}
		}
		all = w.history
	})
	return all
}

// left is what is left in the end.
func (w *world) left() string {
	var all []string
	if l := w.cluster.Lock(); l.Holder != "" && len(l.Degraded(w.storage)) == 0 { // a volume may be lost for ever
		all = append(all, fmt.Sprintf("the lock is %+v", l))
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		all = append(all, w.nodes[name].left()...)
	}
	for _, p := range w.pods.All() {
		if p.Phase == types.PodPending {
			all = append(all, p.Name+" on "+p.NodeName+" does not run")
		}
	}
	return strings.Join(all, "; ")
}

func TestNoTwoComponentsTakeAReplicaOrAQuorum(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "longhorn"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, volume := range []string{"pv-12", "pv-23", "pv-13", "pv-123"} {
		kubetest.WriteFile(t, filepath.Join(dir, "longhorn", volume), "")
	}
	counts, played := map[string]int{}, 0
	for seed := range seeds.Each(t, 3) {
		history := play(t, seed, 6, dir)
		played++
		task := ""
		for _, e := range history {
			counts[string(e.Kind)+" "+firstWord(e)]++
			if e.Kind == lockIs {
				task = e.Lock.Task
			}
			if e.Kind == endsK3s && e.Text == byMounts && task == types.TaskK3sChange {
				counts["ends k3s mounts, under the lock of a change"]++
			}
			if e.Kind == endsK3s && e.Text == byMounts && task == "" {
				counts["ends k3s mounts, under the lock of a drain for a change"]++
			}
		}
		if wrong := judge([]string{"n1", "n2", "n3"}, history); len(wrong) > 0 {
			t.Errorf("seed %d: %s\n%s", seed, strings.Join(wrong, "; "), written(history))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%d %s", counts[key], key)
	}
	if nothing := counts["complete no"] == 0 || counts["ends k3s patch"] == 0 || counts["goes down reboots"] == 0; nothing && played > 2 {
		t.Error("next to nothing happens in these histories")
	}
}

// written is a history to read, with what the agents log where the test is verbose.
func written(history []event) string {
	var text strings.Builder
	for _, e := range history {
		if e.Kind != says || testing.Verbose() {
			fmt.Fprintln(&text, e)
		}
	}
	return text.String()
}

// firstWord is what an event is counted as.
func firstWord(e event) string {
	switch e.Kind {
	case lockIs:
		return e.Lock.Task
	case says, happens, volumesAre, mutes, hears:
		return ""
	}
	word, _, _ := strings.Cut(e.Text, " ")
	return word
}
