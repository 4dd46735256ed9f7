package kubeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/pods"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/workload/podnetworks"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

const networksAnnotation = "k8s.v1.cni.cncf.io/networks"

// deployed is a pod of a Deployment.
func deployed(name, networks string) corev1.Pod {
	p := kubetest.TestPod("shop", "web-7f6c4d84f5-"+name, "n1")
	p.ResourceVersion = "9"
	p.Labels = map[string]string{"pod-template-hash": "7f6c4d84f5"}
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-7f6c4d84f5", UID: "u", Controller: new(true)}}
	p.Annotations = map[string]string{networksAnnotation: networks}
	return p
}

func TestAPodOfThisNodeSaysItsNetworksAndItsDeployment(t *testing.T) {
	p := deployed("abcde", "eve-kube-app/ni-line-1")
	if row := pods.OwnPodOf(&p); row.Networks != "eve-kube-app/ni-line-1" || row.Deployment != "web" || row.Owner.Name != "web-7f6c4d84f5" {
		t.Errorf("it is %+v", row)
	}
	if row := pods.AppPodOf(&p); row.Networks != "" || row.Deployment != "" {
		t.Errorf("in the table of applications it is %+v", row)
	}
	p.Annotations[networksAnnotation] = strings.Repeat("a", 1<<18)
	if row := pods.OwnPodOf(&p); len(row.Networks) > 8<<10 {
		t.Errorf("%d bytes of networks", len(row.Networks))
	}
	for what, change := range map[string]func(){
		"a ReplicaSet of somebody's own": func() { p.OwnerReferences[0].Name = "mine" },
		"one with only the hash":         func() { p.OwnerReferences[0].Name = "7f6c4d84f5" },
		"no hash":                        func() { p.Labels = nil },
		"a Job":                          func() { p = deployed("x", ""); p.OwnerReferences[0].Kind = "Job" },
		"no owner":                       func() { p = deployed("x", ""); p.OwnerReferences = nil },
	} {
		p = deployed("abcde", "")
		change()
		if row := pods.OwnPodOf(&p); row.Deployment != "" {
			t.Errorf("%s: it is of the Deployment %q", what, row.Deployment)
		}
	}
}

// podsCome is the watch of own pods, which brings so many.
func podsCome(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		for i := range n {
			p := deployed(fmt.Sprint("p", i), "eve-kube-app/ni-line-1")
			p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": p})
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

// EVE's own zedkube lists the pods of the node and all ReplicaSets of the cluster
// after each event.
func TestPodsThatComeCostNoList(t *testing.T) {
	const many = 300
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api, come := someCluster(), podsCome(many)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			if r.URL.Path == "/api/v1/pods" && q.Get("watch") == "true" && q.Get("sendInitialEvents") == "" {
				come(w, r)
				return
			}
			api.ServeHTTP(w, r)
		})})
		defer end()
		member, networks := &pubsub.Table[types.ClusterMembership]{}, &pubsub.Table[types.NetworkInstanceStatus]{}
		_ = member.Publish(types.Global, types.ClusterMembership{State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{ClusterType: types.ClusterTypeK3sBase}})
		_ = networks.Publish("6ba7b810-9dad-41d1-80b4-00c04fd430c8", types.NetworkInstanceStatus{DisplayName: "Line_1", Type: types.NetworkInstanceLocal, ClusterWide: true})
		configs := &pubsub.Table[types.AppNetworkConfig]{}
		component := &podnetworks.Component{
			Log: kubetest.Quiet(), Pulse: &loop.Pulse{}, Membership: member, Networks: networks, NodePods: &tb.own, API: &tb.api, Dir: t.TempDir(),
			Configs: configs, Journal: &pubsub.Table[types.PodMarkers]{},
		}
		go component.Run(t.Context())
		time.Sleep(5 * time.Second)
		if files, _ := os.ReadDir(component.Dir); len(files) != many+2 || len(configs.All()) != 1 {
			t.Errorf("%d markers, %d configurations of %d pods", len(files), len(configs.All()), many+2)
		}
		api.set(func() {
			if n := api.requests["GET /api/v1/pods"]; n != 1 {
				t.Errorf("%d lists of own pods", n)
			}
			for request := range api.requests {
				if strings.Contains(request, "replicasets") && !strings.Contains(request, "/namespaces/eve-kube-app/") {
					t.Errorf("ReplicaSets of the whole cluster: %s", request)
				}
			}
		})
	})
}
