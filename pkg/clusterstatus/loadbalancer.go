package clusterstatus

import (
	"fmt"
	"net"
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
	for _, lb := range cfg.LBInterfaces {
		if problem := prefixProblem(lb, ports); problem != "" {
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
func prefixProblem(lb types.LBInterface, ports []types.NetworkPortStatus) string {
	_, prefix, err := net.ParseCIDR(lb.IPPrefix)
	if err != nil {
		return fmt.Sprintf("load balancer interface %q: %q is not a CIDR", lb.Interface, lb.IPPrefix)
	}
	for _, p := range ports {
		if !p.IsL3Port {
			continue
		}
		for _, a := range p.AddrInfoList {
			if prefix.Contains(a.Addr) {
				return fmt.Sprintf("load balancer prefix %s overlaps address %s of port %s", lb.IPPrefix, a.Addr, p.Logicallabel)
			}
		}
	}
	return ""
}
