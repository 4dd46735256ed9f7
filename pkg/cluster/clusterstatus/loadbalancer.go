package clusterstatus

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// prefixes lists what load balancers anywhere in the cluster may announce; nim
// leaves such addresses alone on every node.
func prefixes(lbs []types.LBInterface) []string {
	var out []string
	for _, lb := range lbs {
		if lb.IPPrefix != "" {
			out = append(out, lb.IPPrefix)
		}
	}
	return out
}

// loadBalancer resolves the configured interfaces to Linux names and says what
// is wrong with those that cannot be used. Only the bootstrap node deploys the
// load balancer, so only it needs interfaces; the other nodes check prefixes.
func loadBalancer(cfg types.EdgeNodeClusterConfig, ports []types.NetworkPortStatus) ([]types.LBInterface, string) {
	var out []types.LBInterface
	var problems []string
	own := addresses(ports)
	for _, lb := range cfg.LBInterfaces {
		if problem := prefixProblem(lb, cfg.ClusterIPPrefix.IP, own); problem != "" {
			problems = append(problems, problem)
			continue
		}
		if !cfg.BootstrapNode {
			continue
		}
		port, ok := portOf(ports, lb.Interface)
		switch {
		case !ok && len(ports) == 0:
			// nim has not listed any port yet: nothing is wrong that we know of.
		case !ok:
			problems = append(problems, fmt.Sprintf("load balancer interface %q: no port has this label", lb.Interface))
		case port.IfName == "":
			problems = append(problems, fmt.Sprintf("load balancer interface %q: the port has no Linux name", lb.Interface))
		default:
			out = append(out, types.LBInterface{Interface: port.IfName, IPPrefix: lb.IPPrefix})
		}
	}
	return out, strings.Join(problems, "; ")
}

// prefixProblem says why the addresses of lb cannot be handed out, or "". An
// entry without a prefix has none to hand out.
func prefixProblem(lb types.LBInterface, cluster net.IP, own []address) string {
	_, prefix, err := net.ParseCIDR(lb.IPPrefix)
	if err != nil {
		return fmt.Sprintf("load balancer interface %q: %q is not a CIDR", lb.Interface, lb.IPPrefix)
	}
	if prefix.Contains(cluster) { // whether or not a port has it yet
		return fmt.Sprintf("load balancer prefix %s overlaps the cluster address %s", lb.IPPrefix, cluster)
	}
	for _, a := range own {
		if prefix.Contains(a.ip) {
			return fmt.Sprintf("load balancer prefix %s overlaps address %s of port %s", lb.IPPrefix, a.ip, a.port)
		}
	}
	return ""
}

// address is one that a port of this node has.
type address struct {
	ip   net.IP
	port string // its logical label, or its Linux name where it has none
}

// addresses are those of all layer 3 ports, in one order: nim's may change
// from one publication to the next, and the text of a problem must not.
func addresses(ports []types.NetworkPortStatus) []address {
	var out []address
	for _, p := range ports {
		if !p.IsL3Port {
			continue
		}
		name := cmp.Or(p.Logicallabel, p.IfName)
		for _, a := range p.AddrInfoList {
			out = append(out, address{a.Addr, name})
		}
		if ip := net.ParseIP(p.ClusterIPAddr); ip != nil { // nim may name it here alone
			out = append(out, address{ip, name})
		}
	}
	slices.SortFunc(out, func(a, b address) int {
		return cmp.Or(bytes.Compare(a.ip.To16(), b.ip.To16()), cmp.Compare(a.port, b.port))
	})
	return out
}
