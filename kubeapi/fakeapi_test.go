package kubeapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// fakeAPI is an API server of lists: a watch on it stays open and says
// nothing, and it knows no streamed lists.
type fakeAPI struct {
	mu       sync.Mutex
	nodes    []corev1.Node
	pods     []corev1.Pod
	apps     map[string][]any // by the last part of the path; nil for no KubeVirt
	services map[string][]any // services, ingresses and configmaps, by the last part of the path
	storage  map[string][]any // claims, daemon sets and Longhorn's objects, by the last part of the path; nil for no Longhorn
	fault    http.HandlerFunc // answers instead, if set
	requests map[string]int   // by method and path, "watch " before it for watches
	total    int
	version  string // of the lists, "7" if empty
}

const (
	pathKubeVirt   = "/apis/kubevirt.io/v1"
	pathNetworking = "/apis/networking.k8s.io/v1"
	pathLonghorn   = "/apis/longhorn.io/v1beta2"
)

// appKinds are the kinds of all other objects, by resource.
var appKinds = map[string]string{
	"services": "Service", "ingresses": "Ingress", "configmaps": "ConfigMap",
	"virtualmachines": "VirtualMachine", "virtualmachineinstances": "VirtualMachineInstance", "virtualmachineinstancereplicasets": types.KindVMIReplicaSet, "replicasets": types.KindReplicaSet,
	"persistentvolumeclaims": "PersistentVolumeClaim", "daemonsets": "DaemonSet", "deployments": "Deployment",
	"volumes": "Volume", "engines": "Engine", "replicas": "Replica", "snapshots": "Snapshot", "settings": "Setting", "recurringjobs": "RecurringJob",
	"volumeattachments": "VolumeAttachment", "clusterrolebindings": "ClusterRoleBinding",
}

func (f *fakeAPI) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeAPI) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watches := r.URL.Query().Get("watch") == "true"
	f.mu.Lock()
	f.total++
	if f.requests == nil {
		f.requests = map[string]int{}
	}
	name := r.Method + " " + r.URL.Path
	if watches {
		name = "watch " + name
	}
	f.requests[name]++
	fault, nodes, pods, apps, services, storage := f.fault, f.nodes, f.pods, f.apps, f.services, f.storage
	meta := metav1.ListMeta{ResourceVersion: cmp.Or(f.version, "7")}
	f.mu.Unlock()
	switch {
	case fault != nil:
		fault(w, r)
	case strings.HasPrefix(r.URL.Path, "/apis/kubevirt.io") && apps == nil:
		notFound(w, r)
	case strings.HasPrefix(r.URL.Path, "/apis/longhorn.io") && storage == nil:
		notFound(w, r)
	case r.URL.Path == pathGroups:
		reply(w, 200, groups("storage.k8s.io"))
	case r.URL.Path == pathLonghorn:
		reply(w, 200, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "longhorn.io/v1beta2"})
	case r.URL.Path == pathKubeVirt:
		reply(w, 200, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "kubevirt.io/v1"})
	case r.URL.Path == pathNetworking:
		reply(w, 200, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "networking.k8s.io/v1"})
	case watches && r.URL.Query().Get("sendInitialEvents") == "true":
		reply(w, 422, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: "Invalid", Code: 422})
	case watches:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.URL.Path == pathLonghorn+"/namespaces/longhorn-system/nodes":
		reply(w, 200, map[string]any{"kind": "NodeList", "apiVersion": "longhorn.io/v1beta2", "metadata": meta, "items": selected(r, storage["nodes"])})
	case strings.HasSuffix(r.URL.Path, "/nodes"):
		reply(w, 200, corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: meta, Items: nodes})
	case strings.HasSuffix(r.URL.Path, "/pods"):
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: meta}
		for _, p := range pods {
			if selects(r, p) {
				list.Items = append(list.Items, p)
			}
		}
		reply(w, 200, list)
	case strings.HasSuffix(r.URL.Path, "/leases"):
		reply(w, 200, coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"}, ListMeta: meta})
	case appKinds[path.Base(r.URL.Path)] != "":
		resource := path.Base(r.URL.Path)
		reply(w, 200, map[string]any{
			"kind": appKinds[resource] + "List", "apiVersion": versionOf(r.URL.Path), "metadata": meta,
			"items": selected(r, slices.Concat(apps[resource], services[resource], storage[resource])),
		})
	default:
		reply(w, 200, corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}})
	}
}

func selects(r *http.Request, p corev1.Pod) bool {
	node, byNode := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")
	inNamespace := strings.Contains(r.URL.Path, "/namespaces/")
	return (!byNode || p.Spec.NodeName == node) && (!inNamespace || strings.Contains(r.URL.Path, "/"+p.Namespace+"/"))
}

// selected are those that the field and the label selector of the request name, if it has them.
func selected(r *http.Request, all []any) []any {
	name, byName := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	label := strings.ReplaceAll(r.URL.Query().Get("labelSelector"), "=", `":"`)
	list := []any{}
	for _, o := range all {
		if text, err := json.Marshal(o); err == nil && (!byName || strings.Contains(string(text), `"name":"`+name+`"`)) && strings.Contains(string(text), label) {
			list = append(list, o)
		}
	}
	return list
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func status500(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
func hang(_ http.ResponseWriter, r *http.Request)      { <-r.Context().Done() }

const ownUUID = "b3e2f1a0-0000-4000-8000-000000000001"

// tables are what a Client fills in a test.
type tables struct {
	info     pubsub.Table[types.EdgeNodeInfo]
	leader   pubsub.Table[types.KubeLeaderElectInfo]
	nodes    pubsub.Table[types.Node]
	appPods  pubsub.Table[types.Pod]
	issued   pubsub.Table[types.IssuedKubeconfig]
	own      pubsub.Table[types.Pod]
	leases   pubsub.Table[types.Lease]
	api      pubsub.Table[types.APIStatus]
	vmis     pubsub.Table[types.VMI]
	sets     pubsub.Table[types.AppSet]
	disabled pubsub.Table[types.DisabledWorkloads]
	machines pubsub.Table[types.VirtualMachine]
	tables   pubsub.Table[types.TableStatus]
	disks    pubsub.Table[types.LonghornNode]

	services  pubsub.Table[types.Service]
	ingresses pubsub.Table[types.Ingress]
	vip       pubsub.Table[types.KubeVIP]
	cdi       pubsub.Table[types.DeployedVersion]

	member     pubsub.Table[types.ClusterMembership]
	configMaps pubsub.Table[types.NetworkAllocations]
	dns        pubsub.Table[types.DNSServer]
	rollout    pubsub.Table[types.DNSRollout]
	reported

	mounts      pubsub.Table[types.MountRecovery]
	attachments pubsub.Table[types.Attachment]
	ownVolumes  pubsub.Table[types.Volume]
}

func newTestClient(t *testing.T) (*Client, *tables) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(t.Output())
	tb := &tables{}
	_ = tb.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "N1", DeviceID: uuid.MustParse(ownUUID)})
	began := time.Now()
	c := New(Config{
		Log: log, Uptime: func() time.Duration { return time.Since(began) }, Operations: types.NoOperations{}, Info: &tb.info, Leader: &tb.leader, Nodes: &tb.nodes,
		AppPods: &tb.appPods, NodePods: &tb.own, Leases: &tb.leases, API: &tb.api,
		VMIs: &tb.vmis, Sets: &tb.sets, Machines: &tb.machines, Disabled: &tb.disabled, Tables: &tb.tables,
		Services: &tb.services, Ingresses: &tb.ingresses, KubeVIP: &tb.vip, CDI: &tb.cdi, OwnDisks: &tb.disks,
		Membership: &tb.member, Allocations: &tb.configMaps, DNSServer: &tb.dns, DNSRollout: &tb.rollout, Issued: &tb.issued,
		Mounts: &tb.mounts, OwnAttachments: &tb.attachments, OwnVolumes: &tb.ownVolumes,
	})
	tb.fill(c)
	return c, tb
}

func (tb *tables) status() types.APIStatus {
	s, _ := tb.api.Get(types.Global)
	return s
}

func (tb *tables) lead(leads bool) {
	_ = tb.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: leads})
}

// lively is a silence that nobody hears of.
func lively(ctx context.Context) *access.Liveness {
	return access.NewLiveness(ctx, kubetest.Quiet(), func(time.Time, string) {})
}

// over is a client on that connection, nil for none.
func over(conn *access.Connection, operations types.OperationLog) *Client {
	c := New(Config{Log: kubetest.Quiet(), Operations: operations})
	c.session.Swap(conn)
	return c
}

// startInMemory runs a client over base until the returned function is called.
func startInMemory(t *testing.T, c *Client, base access.RoundTripper) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := newRun(ctx, c)
	if err := r.connect(ctx, &rest.Config{Host: "https://kube"}, base); err != nil {
		t.Fatal(err)
	}
	return func() { cancel(); r.end() }
}

func testNode(name, id string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{access.LabelNodeUUID: id}}}
}
