package services

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// The types of services that are told apart.
const (
	clusterIP    = "ClusterIP"
	nodePort     = "NodePort"
	loadBalancer = "LoadBalancer"
)

// excluded are the namespaces of EVE's own.
func excluded(namespace string) bool {
	switch namespace {
	case types.NamespaceSystem, types.NamespaceKubeVirt, types.NamespaceLonghorn, types.NamespaceCDI, types.NamespaceApps:
		return true
	}
	return false
}

// services are the ports of the users' services, by namespace, name and port
// (docs/wire.md, "Services and ingresses").
func services(table map[string]types.Service) []types.KubeUserService {
	var out []types.KubeUserService
	for key, s := range table {
		if excluded(s.Namespace) || key == "default/kubernetes" || key == "cattle-system/zks-cluster-agent" {
			continue
		}
		ip := ""
		if s.Type == loadBalancer {
			if ip = balancerIP(s); ip == "" {
				continue
			}
		}
		for _, p := range s.Ports {
			e := types.KubeUserService{
				Name: s.Name, Namespace: s.Namespace, Protocol: p.Protocol, Port: p.Port, NodePort: p.NodePort,
				Type: s.Type, LoadBalancerIP: ip,
			}
			if s.Namespace == "cattle-system" && p.Port == 443 { // the cluster's API for people on site
				e.Type, e.Port, e.ACEenabled = nodePort, types.PortAPI, true
			}
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b types.KubeUserService) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.NodePort, b.NodePort))
	})
	return out
}

// serviceNetwork is where k3s has its service addresses, which nobody outside
// the cluster can reach.
func serviceNetwork() netip.Prefix { return netip.MustParsePrefix("10.43.0.0/16") }

// balancerIP is the address that the user asked for a service, or several
// separated by commas; "" for none, or for one inside the cluster. What is no
// address is none: nim would hand it to iptables.
func balancerIP(s types.Service) string {
	wanted := []string{s.LoadBalancerIP, "", s.VIPs}
	if len(s.ExternalIPs) > 0 {
		wanted[1] = s.ExternalIPs[0]
	}
	for _, text := range wanted {
		var ips []string
		for _, ip := range parsed(text) {
			if serviceNetwork().Contains(ip) {
				return ""
			}
			ips = append(ips, ip.String())
		}
		if len(ips) > 0 {
			return strings.Join(ips, ",")
		}
	}
	return ""
}

// parsed are the addresses of a list that is separated by commas.
func parsed(text string) []netip.Addr {
	var out []netip.Addr
	for _, item := range items(text) {
		if ip, err := netip.ParseAddr(item); err == nil && ip.Zone() == "" {
			out = append(out, ip.Unmap())
		}
	}
	return out
}

// items are those of a list that is separated by commas.
func items(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// ingresses are the paths of the users' ingresses that lead to a service, by
// namespace, name, host and path. list are all of the users' services.
func ingresses(f facts, list []types.KubeUserService) []types.KubeUserIngress {
	var out []types.KubeUserIngress
	own, told := ownAddresses(f.ports), typesOf(list)
	for _, i := range f.ingresses.rows {
		if excluded(i.Namespace) {
			continue
		}
		ips := reachable(i.Addresses, own)
		for _, r := range i.Rules {
			e := types.KubeUserIngress{
				Name: i.Name, Namespace: i.Namespace, Hostname: r.Host, Path: r.Path, PathType: r.PathType,
				Protocol: "http", Service: r.Service, ServicePort: r.Port, ServiceType: clusterIP, IngressIP: ips,
			}
			if slices.Contains(i.TLSHosts, r.Host) || slices.Contains(i.TLSHosts, "") {
				e.Protocol = "https"
			}
			service := types.Service{Namespace: i.Namespace, Name: r.Service}
			service, known := f.services.rows[service.Key()]
			if typ, ok := told[i.Namespace+"/"+r.Service]; ok {
				e.ServiceType = typ
			} else if known {
				e.ServiceType = service.Type
			}
			if r.Port == 0 {
				e.ServicePort = portNamed(service, r.PortName)
			}
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b types.KubeUserIngress) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// typesOf is the type of each service as the list tells it, by namespace/name.
func typesOf(list []types.KubeUserService) map[string]string {
	out := make(map[string]string, len(list))
	for _, s := range list {
		if key := s.Namespace + "/" + s.Name; out[key] == "" {
			out[key] = s.Type
		}
	}
	return out
}

// portNamed is 0 if there is none.
func portNamed(s types.Service, name string) int32 {
	for _, p := range s.Ports {
		if name != "" && p.Name == name {
			return p.Port
		}
	}
	return 0
}

func ownAddresses(ports []types.NetworkPortStatus) map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for _, p := range ports {
		for _, a := range p.AddrInfoList {
			if ip, ok := netip.AddrFromSlice(a.Addr); ok {
				out[ip.Unmap()] = true
			}
		}
	}
	return out
}

// reachable are the host names and those of the addresses that this node has,
// sorted; nil for none.
func reachable(addresses []string, own map[netip.Addr]bool) []string {
	var out []string
	for _, a := range addresses {
		ip, err := netip.ParseAddr(a)
		if err != nil || own[ip.Unmap()] {
			out = append(out, a)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// maxText bounds each text of the pool, in bytes: room for some forty prefixes.
const maxText = 2000

// pool is the pool of load-balancer addresses; nil where kube-vip is not
// deployed and its configuration has no error. What is deployed goes before what
// is configured, and of either all prefixes are told.
func pool(f facts, list []types.KubeUserService) *types.LBPoolStatus {
	vip, deployed := f.vip.rows[types.Global]
	p := &types.LBPoolStatus{Error: f.cluster.LBConfigError}
	if p.Error.Error == "" {
		var old types.ErrorDescription
		if f.last.LBPoolStatus != nil {
			old = f.last.LBPoolStatus.Error
		}
		p.Error = types.Dated(flaw(vip.CIDR), old, f.now)
	}
	if !deployed && p.Error.Error == "" {
		return nil
	}
	p.Error.Error = phrase.Cut(p.Error.Error, maxText)
	p.Interface, p.IPPrefix = first(items(vip.Interface)), first(items(vip.CIDR))
	if p.Interface == "" {
		var names []string
		for _, lb := range f.cluster.LBInterfaces {
			names = append(names, lb.Interface)
		}
		p.Interface = first(names)
	}
	if p.IPPrefix == "" {
		p.IPPrefix = first(f.cluster.LBIPPrefixes)
	}
	p.AllocatedIPs = addressesOf(f.last.LBPoolStatus)
	if f.services.known {
		p.AllocatedIPs = nil
		for _, ip := range allocated(list) {
			p.AllocatedIPs = append(p.AllocatedIPs, ip.String())
		}
	}
	return p
}

func addressesOf(p *types.LBPoolStatus) []string {
	if p == nil {
		return nil
	}
	return p.AllocatedIPs
}

// allocated are the load-balancer addresses of the services, sorted. The one
// that asks kube-vip for any is none.
func allocated(list []types.KubeUserService) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		for _, ip := range parsed(s.LoadBalancerIP) {
			if !ip.IsUnspecified() {
				out = append(out, ip)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// prefixes are those of a list, in error if one is none.
func prefixes(cidrs string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, item := range items(cidrs) {
		p, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, fmt.Errorf("%q is not a CIDR", phrase.Cut(item, 50))
		}
		out = append(out, p)
	}
	return out, nil
}

// flaw says what is wrong with the prefixes of kube-vip, "" for nothing.
func flaw(cidrs string) string {
	if _, err := prefixes(cidrs); err != nil {
		return "configuration of kube-vip: " + err.Error()
	}
	return ""
}

// outside reports whether one of the addresses is in none of the prefixes.
// Without prefixes, or with one that cannot be read, nobody can tell.
func outside(ips []netip.Addr, cidrs string) bool {
	in, err := prefixes(cidrs)
	if err != nil || len(in) == 0 {
		return false
	}
	return slices.ContainsFunc(ips, func(ip netip.Addr) bool {
		return !slices.ContainsFunc(in, func(p netip.Prefix) bool { return p.Contains(ip) })
	})
}

// first joins as many first items as have room.
func first(list []string) string {
	size := 0
	for i, item := range list {
		if size += len(item) + 1; size > maxText {
			return strings.Join(list[:i], ",")
		}
	}
	return strings.Join(list, ",")
}
