package services

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestWhichServicesAreToldAndHow(t *testing.T) {
	entry := func(change ...func(*types.KubeUserService)) []types.KubeUserService {
		e := types.KubeUserService{Namespace: "shop", Name: "web", Protocol: "TCP", Port: 80, Type: loadBalancer}
		for _, c := range change {
			c(&e)
		}
		return []types.KubeUserService{e}
	}
	at := func(ip string) []types.KubeUserService {
		return entry(func(e *types.KubeUserService) { e.LoadBalancerIP = ip })
	}
	lb := func(change ...func(*types.Service)) []types.Service {
		return []types.Service{service("shop", "web", loadBalancer, 80, change...)}
	}
	rows := map[string]struct {
		services []types.Service
		want     []types.KubeUserService
	}{
		"nothing is told of EVE's namespaces, of the API's own service and of the agent of zks": {services: []types.Service{
			service("kube-system", "a", nodePort, 80), service("kubevirt", "a", nodePort, 80), service("longhorn-system", "a", nodePort, 80),
			service("cdi", "a", nodePort, 80), service("eve-kube-app", "a", nodePort, 80),
			service("default", "kubernetes", clusterIP, 443), service("cattle-system", "zks-cluster-agent", nodePort, 443),
		}},
		"a namesake in another namespace is told": {
			services: []types.Service{service("shop", "kubernetes", clusterIP, 80), service("default", "zks-cluster-agent", clusterIP, 80)},
			want: []types.KubeUserService{
				{Namespace: "default", Name: "zks-cluster-agent", Protocol: "TCP", Port: 80, Type: clusterIP},
				{Namespace: "shop", Name: "kubernetes", Protocol: "TCP", Port: 80, Type: clusterIP},
			},
		},
		"each port is an entry, in order": {
			services: []types.Service{{Namespace: "shop", Name: "web", Type: nodePort, Ports: []types.ServicePort{
				{Protocol: "UDP", Port: 53, NodePort: 30053}, {Protocol: "TCP", Port: 53, NodePort: 30053}, {Protocol: "TCP", Port: 9, NodePort: 30009},
			}}},
			want: []types.KubeUserService{
				{Namespace: "shop", Name: "web", Protocol: "TCP", Port: 9, NodePort: 30009, Type: nodePort},
				{Namespace: "shop", Name: "web", Protocol: "TCP", Port: 53, NodePort: 30053, Type: nodePort},
				{Namespace: "shop", Name: "web", Protocol: "UDP", Port: 53, NodePort: 30053, Type: nodePort},
			},
		},
		"port 443 of cattle-system is told as the cluster's API": {
			services: []types.Service{
				{Namespace: "cattle-system", Name: "rancher", Type: clusterIP, Ports: []types.ServicePort{{Protocol: "TCP", Port: 80}, {Protocol: "TCP", Port: 443}}},
				service("shop", "web", clusterIP, 443),
			},
			want: []types.KubeUserService{
				{Namespace: "cattle-system", Name: "rancher", Protocol: "TCP", Port: 80, Type: clusterIP},
				{Namespace: "cattle-system", Name: "rancher", Protocol: "TCP", Port: 6443, Type: nodePort, ACEenabled: true},
				{Namespace: "shop", Name: "web", Protocol: "TCP", Port: 443, Type: clusterIP},
			},
		},
		"the address asked for goes before all":                                {services: lb(asks("172.28.40.66"), outer("172.28.40.67"), given("172.28.40.68")), want: at("172.28.40.66")},
		"then the first external one":                                          {services: lb(outer("172.28.40.67", "172.28.40.69"), given("172.28.40.68")), want: at("172.28.40.67")},
		"then the one of kube-vip":                                             {services: lb(given("172.28.40.68")), want: at("172.28.40.68")},
		"or those of kube-vip":                                                 {services: lb(given("172.28.40.68, fd00::8")), want: at("172.28.40.68,fd00::8")},
		"one that asks for any is told as such":                                {services: lb(asks("0.0.0.0")), want: at("0.0.0.0")},
		"a load balancer without address is left out":                          {services: lb()},
		"so is one inside the cluster":                                         {services: lb(asks("10.43.7.7"), given("172.28.40.68"))},
		"so is one with one of two inside the cluster":                         {services: lb(given("172.28.40.68,10.43.0.1"))},
		"what is no address is none":                                           {services: lb(asks("-j ACCEPT"), given("172.28.40.68")), want: at("172.28.40.68")},
		"an address of an interface is none":                                   {services: lb(asks("fe80::1%eth0"))},
		"just beside the cluster's network is outside":                         {services: lb(asks("10.44.0.1")), want: at("10.44.0.1")},
		"the address of a service that is no load balancer is not told":        {services: []types.Service{service("shop", "web", clusterIP, 80, outer("172.28.40.67"))}, want: entry(func(e *types.KubeUserService) { e.Type = clusterIP })},
		"a service without ports has nothing to tell":                          {services: []types.Service{{Namespace: "shop", Name: "web", Type: "ExternalName"}}},
		"a load balancer of cattle-system without address is left out as well": {services: []types.Service{service("cattle-system", "rancher", loadBalancer, 443)}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(r.want, decide(whole(with(r.services...))).publish.UserService); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

func TestWhichIngressesAreToldAndHow(t *testing.T) {
	path := types.IngressPath{Host: "panel.works", Path: "/", PathType: "Prefix", Service: "web", Port: 80}
	ingress := func(change ...func(*types.Ingress)) types.Ingress {
		i := types.Ingress{Namespace: "shop", Name: "front", Rules: []types.IngressPath{path}}
		for _, c := range change {
			c(&i)
		}
		return i
	}
	tls := func(hosts ...string) types.Ingress { return ingress(func(i *types.Ingress) { i.TLSHosts = hosts }) }
	at := func(a ...string) types.Ingress { return ingress(func(i *types.Ingress) { i.Addresses = a }) }
	to := func(p types.IngressPath) types.Ingress {
		return ingress(func(i *types.Ingress) { i.Rules = []types.IngressPath{p} })
	}
	rows := map[string]struct {
		ingress  types.Ingress
		services []types.Service
		want     func(*types.KubeUserIngress) // of one entry
		none     bool
	}{
		"one without TLS is http":               {ingress: ingress()},
		"one with TLS for its host is https":    {ingress: tls("other", "panel.works"), want: func(e *types.KubeUserIngress) { e.Protocol = "https" }},
		"one with TLS for any host is https":    {ingress: tls(""), want: func(e *types.KubeUserIngress) { e.Protocol = "https" }},
		"one with TLS for other hosts is http":  {ingress: tls("other")},
		"EVE's namespaces are left out":         {ingress: ingress(func(i *types.Ingress) { i.Namespace = "kube-system" }), none: true},
		"addresses of other nodes are left out": {ingress: at("192.168.7.9", "192.168.7.6")},
		"addresses of this node and host names stay, sorted": {
			ingress: at("lb.works", "192.168.7.9", "192.168.7.5", "fd00::5", "192.168.7.5", "a.works"),
			want: func(e *types.KubeUserIngress) {
				e.IngressIP = []string{"192.168.7.5", "a.works", "fd00::5", "lb.works"}
			},
		},
		"the cluster address of a port is none that it has":               {ingress: at("10.90.7.21")},
		"a service that is not there is taken for one inside the cluster": {ingress: ingress()},
		"the type is that of the service": {
			ingress: ingress(), services: []types.Service{service("shop", "web", nodePort, 80)},
			want: func(e *types.KubeUserIngress) { e.ServiceType = nodePort },
		},
		"a namesake of another namespace is another service": {ingress: ingress(), services: []types.Service{service("other", "web", nodePort, 80)}},
		"a load balancer without address is one": {
			ingress: ingress(), services: []types.Service{service("shop", "web", loadBalancer, 80)},
			want: func(e *types.KubeUserIngress) { e.ServiceType = loadBalancer },
		},
		"a port that is named has the service's number": {
			ingress:  to(types.IngressPath{Host: "panel.works", Path: "/", PathType: "Prefix", Service: "web", PortName: "http"}),
			services: []types.Service{{Namespace: "shop", Name: "web", Type: clusterIP, Ports: []types.ServicePort{{Name: "x", Port: 1}, {Name: "http", Port: 80}}}},
		},
		"one whose name nobody knows has none": {
			ingress: to(types.IngressPath{Host: "panel.works", Path: "/", PathType: "Prefix", Service: "web", PortName: "http"}),
			want:    func(e *types.KubeUserIngress) { e.ServicePort = 0 },
		},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			want := []types.KubeUserIngress{{
				Namespace: "shop", Name: "front", Hostname: "panel.works", Path: "/", PathType: "Prefix", Protocol: "http",
				Service: "web", ServicePort: 80, ServiceType: clusterIP,
			}}
			if r.want != nil {
				r.want(&want[0])
			}
			if r.none {
				want = nil
			}
			f := whole(with(r.services...), routed(r.ingress), func(f *facts) {
				f.ports = []types.NetworkPortStatus{port("192.168.7.5"), port("fd00::5")}
			})
			if d := cmp.Diff(want, decide(f).publish.UserIngress); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

func TestIngressOfAServiceThatIsToldTakesTheTypeThatIsTold(t *testing.T) {
	f := whole(with(service("cattle-system", "rancher", clusterIP, 443)), routed(types.Ingress{
		Namespace: "cattle-system", Name: "rancher", Rules: []types.IngressPath{{Service: "rancher", Port: 443}},
	}))
	if got := decide(f).publish.UserIngress[0].ServiceType; got != nodePort {
		t.Errorf("its type is %s", got)
	}
}

func TestPathsOfAnIngressAreToldByHostAndPath(t *testing.T) {
	var got []string
	for _, e := range decide(whole(routed(
		types.Ingress{Namespace: "b", Name: "a", Rules: []types.IngressPath{{Host: "y", Path: "/2"}, {Host: "y", Path: "/1"}, {Host: "x", Path: "/3"}}},
		types.Ingress{Namespace: "a", Name: "z", Rules: []types.IngressPath{{Host: "z", Path: "/"}}},
	))).publish.UserIngress {
		got = append(got, e.Namespace+" "+e.Hostname+e.Path)
	}
	if d := cmp.Diff([]string{"a z/", "b x/3", "b y/1", "b y/2"}, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

func TestTheValueIsTheOneOnTheWire(t *testing.T) {
	f := whole(
		with(
			service("weighing", "scales", loadBalancer, 9100, asks("172.28.40.66"), func(s *types.Service) { s.Ports[0].NodePort = 30911 }),
			service("weighing", "panel", clusterIP, 8080),
		),
		routed(types.Ingress{
			Namespace: "weighing", Name: "panel", TLSHosts: []string{"panel.works"}, Addresses: []string{"172.28.40.67"},
			Rules: []types.IngressPath{{Host: "panel.works", Path: "/", PathType: "Prefix", Service: "panel", Port: 8080}},
		}),
		deployed(types.KubeVIP{CIDR: "172.28.40.64/28", Interface: "eth3"}),
		func(f *facts) { f.ports = []types.NetworkPortStatus{port("172.28.40.67")} },
	)
	got, err := json.MarshalIndent(decide(f).publish, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/KubeUserServices.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.TrimSpace(string(want)), string(got)); d != "" {
		t.Error("want -, got +\n" + d)
	}
}
