//go:build linux

package kubeapi_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// serves has users make services and ingresses of all kinds.
func serves(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, 2)
	if _, err := c.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	servesServices(t, c, a)
	servesIngresses(t, c, a)
	servesPool(t, c, a)
	servesMany(t, c, a)
}

func servesServices(t *testing.T, c *devcluster.Cluster, a *agent) {
	api := c.Client().CoreV1().Services("shop")
	ports := []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}
	for name, spec := range map[string]corev1.ServiceSpec{
		"inside":   {Ports: ports},
		"headless": {Ports: ports, ClusterIP: corev1.ClusterIPNone},
		"node":     {Ports: ports, Type: corev1.ServiceTypeNodePort},
		"balanced": {Ports: ports, Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: "172.28.40.66"},
		"outer":    {Ports: ports, Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"172.28.40.67", "172.28.40.68"}},
		"given":    {Ports: ports, Type: corev1.ServiceTypeLoadBalancer},
		"alias":    {Type: corev1.ServiceTypeExternalName, ExternalName: "web.works"},
	} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		if name == "given" {
			s.Annotations = map[string]string{"kube-vip.io/loadbalancerIPs": "172.28.40.69"}
		}
		if _, err := api.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "every service has a row", 10*time.Second, func() bool { return len(a.servicesOf("shop")) == 7 })
	rows := a.servicesOf("shop")
	both := []types.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}, {Name: "dns", Protocol: "UDP", Port: 53}}
	want := map[string]types.Service{
		"inside":   {Type: "ClusterIP", Ports: both},
		"headless": {Type: "ClusterIP", Ports: both},
		"node":     {Type: "NodePort", Ports: both},
		"balanced": {Type: "LoadBalancer", Ports: both, LoadBalancerIP: "172.28.40.66"},
		"outer":    {Type: "LoadBalancer", Ports: both, ExternalIPs: []string{"172.28.40.67", "172.28.40.68"}},
		"given":    {Type: "LoadBalancer", Ports: both, VIPs: "172.28.40.69"},
		"alias":    {Type: "ExternalName"},
	}
	for name, w := range want {
		w.Namespace, w.Name = "shop", name
		got := rows[w.Key()]
		for i := range got.Ports { // the API server chooses them
			if (got.Ports[i].NodePort >= 30000) != (w.Type == "NodePort" || w.Type == "LoadBalancer") {
				t.Errorf("%s has port %+v", name, got.Ports[i])
			}
		}
		if d := cmp.Diff(w, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".NodePort" }, cmp.Ignore())); d != "" {
			t.Errorf("%s: want -, got +\n%s", name, d)
		}
	}
	if err := api.Delete(t.Context(), "alias", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted service has none", 10*time.Second, func() bool { return len(a.servicesOf("shop")) == 6 })
}

func (a *agent) servicesOf(namespace string) map[string]types.Service {
	rows := maps.Clone(a.services.All())
	for key, s := range rows {
		if s.Namespace != namespace {
			delete(rows, key)
		}
	}
	return rows
}

func servesIngresses(t *testing.T, c *devcluster.Cluster, a *agent) {
	api := c.Client().NetworkingV1().Ingresses("shop")
	prefix := networkingv1.PathTypePrefix
	to := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "inside", Port: networkingv1.ServiceBackendPort{Name: "http"}}}
	made, err := api.Create(t.Context(), &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: "front"},
		Spec: networkingv1.IngressSpec{
			TLS: []networkingv1.IngressTLS{{Hosts: []string{"panel.works"}}, {SecretName: "any"}},
			Rules: []networkingv1.IngressRule{{Host: "panel.works", IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: to}}},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.168.7.5"}, {Hostname: "lb.works"}}
	if _, err := api.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Create(t.Context(), &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: "default-only"}, Spec: networkingv1.IngressSpec{DefaultBackend: &to},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]types.Ingress{
		"shop/default-only": {Namespace: "shop", Name: "default-only"},
		"shop/front": {
			Namespace: "shop", Name: "front", TLSHosts: []string{"panel.works", ""}, Addresses: []string{"192.168.7.5", "lb.works"},
			Rules: []types.IngressPath{{Host: "panel.works", Path: "/", PathType: "Prefix", Service: "inside", PortName: "http"}},
		},
	}
	eventually(t, "the ingresses have their rows", 10*time.Second, func() bool { return cmp.Equal(want, a.ingresses.All()) })
}

func servesPool(t *testing.T, c *devcluster.Cluster, a *agent) {
	api := c.Client().CoreV1().ConfigMaps("kube-system")
	if n := len(a.vip.All()); n != 0 {
		t.Errorf("%d rows where kube-vip is not deployed", n)
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kubevip"}, Data: map[string]string{"cidr-global": "172.28.40.64/28", "interface-global": "eth3"}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Data: map[string]string{"cidr-global": "10.0.0.0/8"}}
	for _, m := range []*corev1.ConfigMap{m, other} {
		if _, err := api.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	has := func(want map[string]types.KubeVIP) func() bool {
		return func() bool { return cmp.Equal(want, a.vip.All()) }
	}
	eventually(t, "kube-vip is deployed", 10*time.Second, has(map[string]types.KubeVIP{types.Global: {CIDR: "172.28.40.64/28", Interface: "eth3"}}))
	delete(m.Data, "interface-global")
	if _, err := api.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "kube-vip has no interface", 10*time.Second, has(map[string]types.KubeVIP{types.Global: {CIDR: "172.28.40.64/28"}}))
	if err := api.Delete(t.Context(), "kubevip", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "kube-vip is gone", 10*time.Second, func() bool { return len(a.vip.All()) == 0 })
}

// servesMany has an agent start where there are many services.
func servesMany(t *testing.T, c *devcluster.Cluster, a *agent) {
	const many = 300
	var making sync.WaitGroup
	for maker := range 10 {
		making.Go(func() {
			for i := maker; i < many; i += 10 {
				s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("many-", i)}, Spec: corev1.ServiceSpec{
					ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}}, // the service network has room for few
				}}
				if _, err := c.Client().CoreV1().Services("shop").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	making.Wait()
	late := newAgent(t, c, 7)
	for _, each := range []*agent{a, late} {
		eventually(t, "all have rows", 20*time.Second, func() bool { return len(each.servicesOf("shop")) == 6+many })
	}
	for _, name := range []string{types.TableServices, types.TableIngresses, types.TableKubeVIP} {
		// Each table has a list of its own, that comes when it does.
		eventually(t, "the table of "+name+" is whole", 10*time.Second, func() bool {
			s, _ := late.tables.Get(name)
			return s.Complete && !s.Absent && s.Why == ""
		})
	}
}
