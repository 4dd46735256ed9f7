package kubeapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// withServices is a cluster in which users have a service and an ingress, and
// kube-vip is deployed.
func withServices() *fakeAPI {
	api := someCluster()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "5"}
	}
	api.services = map[string][]any{
		"services":  {corev1.Service{ObjectMeta: meta("shop", "web"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}},
		"ingresses": {networkingv1.Ingress{ObjectMeta: meta("shop", "front")}},
		"deployments": {appsv1.Deployment{ObjectMeta: meta("cdi", "cdi-deployment"), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "quay.io/kubevirt/cdi-controller:v1.57.1"}}},
		}}}},
		"configmaps": {corev1.ConfigMap{ObjectMeta: meta("kube-system", "kubevip"), Data: map[string]string{"cidr-global": "172.28.40.64/28"}}},
	}
	return api
}

func (tb *tables) served() []string {
	return append(append(kubetest.Keys(tb.services.All()), kubetest.Keys(tb.ingresses.All())...), kubetest.Keys(tb.vip.All())...)
}

func TestServicesIngressesAndKubeVIPHaveTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := withServices()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(time.Second)
		check(t, "rows", tb.served(), []string{"shop/web", "shop/front", types.Global})
		if vip, _ := tb.vip.Get(types.Global); vip.CIDR != "172.28.40.64/28" {
			t.Errorf("kube-vip is %+v", vip)
		}
		if cdi, _ := tb.cdi.Get(types.CDIDeployment); cdi.Version != "v1.57.1" {
			t.Errorf("CDI is %+v", cdi)
		}
		for _, name := range []string{types.TableServices, types.TableIngresses, types.TableKubeVIP} {
			if s, _ := tb.tables.Get(name); !s.Complete || s.Absent {
				t.Errorf("table of %s is %+v", name, s)
			}
		}
	})
}

func TestAClusterWithoutServicesHasNoRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: someCluster()})
		defer end()
		time.Sleep(time.Second)
		check(t, "rows", tb.served(), nil)
		if s, _ := tb.tables.Get(types.TableKubeVIP); !s.Complete {
			t.Errorf("table of kube-vip is %+v", s)
		}
	})
}

func TestAServerWithoutIngressesHasAnEmptyTableOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := withServices()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, pathNetworking) {
				notFound(w, r)
				return
			}
			api.ServeHTTP(w, r)
		})})
		defer end()
		time.Sleep(time.Second)
		check(t, "rows", tb.served(), []string{"shop/web", types.Global})
		if s, _ := tb.tables.Get(types.TableIngresses); !s.Complete || !s.Absent {
			t.Errorf("the table is %+v", s)
		}
	})
}

func TestAKindThatFailsKeepsItsRowsAndSpoilsNoOther(t *testing.T) {
	for path, name := range map[string]string{
		"/services": types.TableServices, "/ingresses": types.TableIngresses, "/configmaps": types.TableKubeVIP,
	} {
		for fault, lie := range map[string]http.HandlerFunc{
			"500": status500, "hangs": hang,
			"forbidden": func(w http.ResponseWriter, _ *http.Request) {
				reply(w, 403, failure(403, metav1.StatusReasonForbidden))
			},
			"another answer": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, jsonObject{"kind": "Namespace"}) },
		} {
			synctest.Test(t, func(t *testing.T) {
				c, tb := newTestClient(t)
				c.Log = kubetest.Quiet()
				api := withServices()
				var failing, healed atomic.Bool
				breaks := make(chan struct{})
				end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case !strings.HasSuffix(r.URL.Path, path):
						api.ServeHTTP(w, r)
					case failing.Load():
						lie(w, r)
					case isWatch(r) && r.URL.Query().Get("sendInitialEvents") != "true" && !healed.Load():
						w.WriteHeader(http.StatusOK)
						select {
						case <-breaks:
						case <-r.Context().Done():
						}
					default:
						api.ServeHTTP(w, r)
					}
				})})
				defer end()
				time.Sleep(time.Minute)
				before := tb.served()
				failing.Store(true)
				close(breaks)
				time.Sleep(5 * time.Minute)
				check(t, path+" "+fault+": rows", tb.served(), before)
				for _, other := range []string{types.TableServices, types.TableIngresses, types.TableKubeVIP, types.TableNodes} {
					if s, _ := tb.tables.Get(other); s.Complete != (other != name) {
						t.Errorf("%s %s: table of %s is %+v", path, fault, other, s)
					}
				}
				if s := tb.status(); !s.Synced || !s.Answers() {
					t.Errorf("%s %s: status is %+v", path, fault, s)
				}
				healed.Store(true)
				failing.Store(false)
				time.Sleep(2 * time.Minute)
				if s, _ := tb.tables.Get(name); !s.Complete {
					t.Errorf("%s %s: healed the table is %+v", path, fault, s)
				}
			})
		}
	}
}

func TestRowOfAService(t *testing.T) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", ResourceVersion: "7",
			Annotations: map[string]string{"kube-vip.io/loadbalancerIPs": "172.28.40.66", "other": "x"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: "172.28.40.67", ExternalIPs: []string{"172.28.40.68"}, ClusterIP: "10.43.0.9",
			Selector: map[string]string{"a": "b"},
			Ports:    []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolUDP, Port: 80, NodePort: 30080}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "172.28.40.69"}}}},
	}
	want := types.Service{
		Namespace: "shop", Name: "web", Type: "LoadBalancer", LoadBalancerIP: "172.28.40.67", ExternalIPs: []string{"172.28.40.68"},
		VIPs: "172.28.40.66", Ports: []types.ServicePort{{Name: "http", Protocol: "UDP", Port: 80, NodePort: 30080}},
	}
	if d := cmp.Diff(want, serviceOf(s)); d != "" {
		t.Errorf("want -, got +\n%s", d)
	}
}

func TestRowOfAnIngress(t *testing.T) {
	prefix := networkingv1.PathTypePrefix
	to := func(port networkingv1.ServiceBackendPort) networkingv1.IngressBackend {
		return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: port}}
	}
	i := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", ResourceVersion: "7", Annotations: map[string]string{"a": "b"}},
		Spec: networkingv1.IngressSpec{
			TLS: []networkingv1.IngressTLS{{Hosts: []string{"a", "b"}}, {SecretName: "of any host"}},
			Rules: []networkingv1.IngressRule{
				{Host: "without paths"},
				{Host: "a", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{
					{Path: "/1", PathType: &prefix, Backend: to(networkingv1.ServiceBackendPort{Number: 80})},
					{Path: "/2", Backend: to(networkingv1.ServiceBackendPort{Name: "http"})},
					{Path: "/3", Backend: networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket"}}},
				}}}},
			},
		},
		Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{
			{IP: "192.168.7.5", Hostname: "both"}, {Hostname: "lb.works"}, {},
		}}},
	}
	want := types.Ingress{
		Namespace: "shop", Name: "front", TLSHosts: []string{"a", "b", ""}, Addresses: []string{"192.168.7.5", "lb.works"},
		Rules: []types.IngressPath{
			{Host: "a", Path: "/1", PathType: "Prefix", Service: "web", Port: 80},
			{Host: "a", Path: "/2", Service: "web", PortName: "http"},
		},
	}
	if d := cmp.Diff(want, ingressOf(i)); d != "" {
		t.Errorf("want -, got +\n%s", d)
	}
}

func TestRowOfKubeVIP(t *testing.T) {
	m := &corev1.ConfigMap{Data: map[string]string{"cidr-global": "172.28.40.64/28", "interface-global": "eth3", "range-global": "x"}}
	want := types.KubeVIP{CIDR: "172.28.40.64/28", Interface: "eth3"}
	if d := cmp.Diff(want, kubeVIPOf(m)); d != "" {
		t.Errorf("want -, got +\n%s", d)
	}
}
