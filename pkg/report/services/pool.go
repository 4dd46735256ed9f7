package services

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

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
