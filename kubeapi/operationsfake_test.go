package kubeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubevirt"
	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/kubeapi/network"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// ledger keeps what was recorded.
type ledger struct {
	mu  sync.Mutex
	all []types.Operation
}

func (l *ledger) Begin(o types.Operation) func(types.OperationOutcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, o)
	i := len(l.all) - 1
	return func(outcome types.OperationOutcome, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.all[i].Outcome != "" {
			l.all[i].Op += " (ended twice)"
		}
		l.all[i].Outcome = outcome
		if err != nil {
			l.all[i].Error = err.Error()
		}
	}
}

// lines are the records in short.
func (l *ledger) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := []string{}
	for _, o := range l.all {
		lines = append(lines, fmt.Sprintf("%s %s %s", o.Op, o.Target, o.Outcome))
	}
	return lines
}

// obedient is an API server that does what it is told to objects by path, and
// answers what is made with what lies under the path of its kind.
type obedient struct {
	mu      sync.Mutex
	objects map[string]jsonObject
	refuse  int // code of every write, 0 for none
	stale   int // writes that are too late, before one that is not
	writes  int
}

func (s *obedient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	o, there := s.objects[r.URL.Path]
	if r.Method != http.MethodGet {
		s.writes++
		if s.stale > 0 {
			s.stale--
			reply(w, http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonConflict))
			return
		}
		if s.refuse != 0 {
			reply(w, s.refuse, failure(s.refuse, metav1.StatusReasonForbidden))
			return
		}
	}
	switch {
	case r.Method == http.MethodDelete:
		delete(s.objects, r.URL.Path)
		reply(w, 200, jsonObject{"kind": "Status", "apiVersion": "v1", "status": "Success"})
		return
	case !there:
		reply(w, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound))
		return
	case r.Method == http.MethodPatch:
		var patch map[string]any
		_ = json.Unmarshal(body, &patch)
		merge(o, patch)
	}
	reply(w, 200, o)
}

const appsPath = "/apis/apps/v1/namespaces/" + access.Namespace + "/replicasets/app"

// world is enough of a cluster for every verb to find something to change.
func world() map[string]jsonObject {
	fence, _ := json.Marshal(types.Fence{By: "n2"})
	meta := func(name, namespace string) jsonObject {
		return jsonObject{"name": name, "namespace": namespace, "uid": "u1", "resourceVersion": "5"}
	}
	node := meta("n1", "")
	node["annotations"] = jsonObject{nodes.KeepAnnotation: "true", nodes.FenceAnnotation: string(fence)}
	nad := meta("", access.Namespace)
	name, _ := types.NADName("eth1")
	nad["name"], nad["labels"] = name, jsonObject{network.PassthroughLabel: "true"}
	nad["annotations"] = jsonObject{network.NeededAnnotation: `{"n2":"u2"}`}
	ofNetwork := meta(line.Name, access.Namespace)
	ofNetwork["labels"] = jsonObject{network.NetworkLabel: line.ID.String()}
	lease := jsonObject{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta(leases.DrainLease, access.Namespace), "spec": jsonObject{"holderIdentity": "n1"}}
	job := jsonObject{
		"kind": "RecurringJob", "apiVersion": "longhorn.io/v1beta2", "metadata": meta(types.SnapshotJobName, types.NamespaceLonghorn),
		"spec": jsonObject{"cron": "@hourly", "task": "snapshot", "groups": []any{"default"}},
	}
	longhornPath, pathOfLeases := "/apis/longhorn.io/v1beta2/namespaces/"+types.NamespaceLonghorn, "/apis/coordination.k8s.io/v1/namespaces/"+access.Namespace+"/leases"
	pods, allocations := "/api/v1/namespaces/kube-system/pods/p", meta(floorMap, access.Namespace)
	allocations["labels"] = allocationsMap("").Labels
	disabled, configMaps := meta(kubevirt.DisabledName, access.Namespace), "/api/v1/namespaces/"+access.Namespace+"/configmaps"
	disabled["labels"] = jsonObject{"zedkube.github.io/workloads": "disabled"}
	return map[string]jsonObject{
		configMaps:                               {"kind": "ConfigMap", "apiVersion": "v1", "metadata": disabled},
		configMaps + "/" + kubevirt.DisabledName: {"kind": "ConfigMap", "apiVersion": "v1", "metadata": disabled},
		"/apis/kubevirt.io/v1/namespaces/shop/virtualmachines/till": {"kind": "VirtualMachine", "apiVersion": "kubevirt.io/v1", "metadata": meta("till", "shop")},
		"/api/v1/nodes/n1":        {"kind": "Node", "apiVersion": "v1", "metadata": node, "spec": jsonObject{}, "status": jsonObject{}},
		"/api/v1/nodes/n1/status": {"kind": "Node", "apiVersion": "v1", "metadata": node},
		pathOfLeases:              lease, pathOfLeases + "/" + leases.DrainLease: lease,
		appsPath:                                {"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": meta("app", access.Namespace), "spec": jsonObject{}},
		"/api/v1/namespaces/ns/pods/p/eviction": {"kind": "Status", "apiVersion": "v1", "status": "Success"},
		pods:                                    {"kind": "Pod", "apiVersion": "v1", "metadata": meta("p", "kube-system")},
		"/api/v1/namespaces/kube-system/configmaps/" + network.SRIOVConfigMap:                                 {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta(network.SRIOVConfigMap, "kube-system")},
		"/api/v1/namespaces/kube-system/configmaps/" + types.DNSConfigMap:                                     {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta(types.DNSConfigMap, "kube-system")},
		"/apis/apps/v1/namespaces/kube-system/deployments/" + types.DNSDeployment:                             {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": meta(types.DNSDeployment, "kube-system")},
		"/api/v1/namespaces/" + access.Namespace + "/configmaps/" + floorMap:                                  {"kind": "ConfigMap", "apiVersion": "v1", "metadata": allocations},
		"/apis/k8s.cni.cncf.io/v1/namespaces/" + access.Namespace + "/network-attachment-definitions/" + name: {"kind": network.NadKind, "apiVersion": "k8s.cni.cncf.io/v1", "metadata": nad, "spec": jsonObject{"config": network.NadConfig("eth1")}},
		pathNADs + "/" + line.Name: {"kind": network.NadKind, "apiVersion": "k8s.cni.cncf.io/v1", "metadata": ofNetwork, "spec": jsonObject{"config": "{}"}},
		"/apis/k8s.cni.cncf.io/v1/namespaces/" + access.Namespace + "/network-attachment-definitions/sriov": {"kind": network.NadKind, "apiVersion": "k8s.cni.cncf.io/v1", "metadata": meta("sriov", access.Namespace)},
		longhornPath + "/nodes/n1":                                                            {"kind": "Node", "apiVersion": "longhorn.io/v1beta2", "metadata": meta("n1", types.NamespaceLonghorn), "spec": jsonObject{"disks": jsonObject{"a": jsonObject{"storageReserved": 1}}}},
		longhornPath + "/settings/policy":                                                     {"kind": "Setting", "apiVersion": "longhorn.io/v1beta2", "metadata": meta("policy", types.NamespaceLonghorn), "value": "x"},
		longhornPath + "/recurringjobs/" + types.SnapshotJobName:                              job,
		"/api/v1/namespaces/default/events":                                                   {"kind": "Event", "apiVersion": "v1", "metadata": meta("e", "default")},
		"/apis/kubevirt.io/v1/namespaces/" + access.Namespace + "/virtualmachineinstances/vm": {"kind": "VirtualMachineInstance", "apiVersion": "kubevirt.io/v1", "metadata": meta("vm", access.Namespace)},
	}
}

// serves is a client of that server, with what it records.
func serves(t *testing.T, handler http.Handler) (*Client, *ledger) {
	t.Helper()
	book := &ledger{}
	s := access.NewLiveness(t.Context(), kubetest.Quiet(), func(time.Time, string) {})
	conn, err := newConnection(t.Context(), &rest.Config{Host: "https://kube"}, &access.AuditTransport{RoundTripper: &kubetest.InMemory{Handler: handler}, Log: book}, s)
	if err != nil {
		t.Fatal(err)
	}
	return over(conn, book), book
}

// onlyCode is a way to an API server that says nothing but that.
type onlyCode int

func (a onlyCode) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}

func (onlyCode) CloseAll() {}
