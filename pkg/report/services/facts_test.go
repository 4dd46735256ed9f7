package services

import (
	"net"
	"time"

	"github.com/zedkube/zedkube/types"
)

var then = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func seen[T any](rows map[string]T) source[T] { return source[T]{rows: rows, known: true} }

func tableOf[T interface{ Key() string }](rows ...T) map[string]T {
	out := map[string]T{}
	for _, r := range rows {
		out[r.Key()] = r
	}
	return out
}

// whole is a cluster that is seen whole, without anything in it.
func whole(change ...func(*facts)) facts {
	f := facts{
		now: then, left: then, services: seen(map[string]types.Service{}), ingresses: seen(map[string]types.Ingress{}),
		vip: seen(map[string]types.KubeVIP{}), portsKnown: true,
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func with(rows ...types.Service) func(*facts) {
	return func(f *facts) { f.services.rows = tableOf(rows...) }
}

func routed(rows ...types.Ingress) func(*facts) {
	return func(f *facts) { f.ingresses.rows = tableOf(rows...) }
}

func deployed(vip types.KubeVIP) func(*facts) {
	return func(f *facts) { f.vip.rows = map[string]types.KubeVIP{types.Global: vip} }
}

func service(namespace, name, typ string, port int32, change ...func(*types.Service)) types.Service {
	s := types.Service{Namespace: namespace, Name: name, Type: typ, Ports: []types.ServicePort{{Protocol: "TCP", Port: port}}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func asks(ip string) func(*types.Service)     { return func(s *types.Service) { s.LoadBalancerIP = ip } }
func given(ip string) func(*types.Service)    { return func(s *types.Service) { s.VIPs = ip } }
func outer(ip ...string) func(*types.Service) { return func(s *types.Service) { s.ExternalIPs = ip } }

func port(ips ...string) types.NetworkPortStatus {
	p := types.NetworkPortStatus{IfName: "eth0", ClusterIPAddr: "10.90.7.21"}
	for _, ip := range ips {
		p.AddrInfoList = append(p.AddrInfoList, types.AddrInfo{Addr: net.ParseIP(ip)})
	}
	return p
}
