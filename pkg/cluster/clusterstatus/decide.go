package clusterstatus

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// facts is everything decide may look at.
type facts struct {
	now         time.Time
	configKnown bool // zedagent's table has been complete once
	hasConfig   bool
	config      types.EdgeNodeClusterConfig
	membership  types.ClusterMembership // its zero value while there is none
	portsKnown  bool
	ports       []types.NetworkPortStatus
	token       types.ClusterToken // its zero value while the table is empty
	hasStatus   bool
	status      types.EdgeNodeClusterStatus // what is published, perhaps by a former run of this boot
}

// action is everything decide may ask for. kube-init takes a missing status for
// a departure and resets the node (docs/wire.md, "EdgeNodeClusterStatus"), so
// only a leave that is done withdraws it.
type action struct {
	publish  *types.EdgeNodeClusterStatus
	withdraw bool
	ignore   string // why zedagent's word is not acted on although this device is a member
}

// decide says what to publish, from facts alone. While zedagent's own word is
// no valid configuration, the last one of the membership holds.
func decide(f facts) action {
	why, heard := unusableConfig(f)
	kept := f.membership.Config
	switch {
	case leftWithout(f):
		return action{withdraw: f.hasStatus}
	case heard && why == "":
		return action{publish: build(f, f.config)}
	case f.membership.Belongs() && kept != nil && kept.Lack() == "":
		if f.membership.State == types.MembershipMember && !f.config.Valid {
			why = "" // not doubted yet: zedagent may just not have read a configuration since the boot
		}
		return action{publish: build(f, *kept), ignore: why}
	case heard && !f.config.Valid && f.membership.State == types.MembershipLeft:
		return action{withdraw: f.hasStatus}
	case !f.hasStatus && !f.config.Valid:
		return action{} // never clustered: nothing stands that could be kept
	}
	return action{ignore: why}
}

// leftWithout reports that this device has left a cluster without it. A
// configuration of that cluster does not call it back (docs/wire.md,
// "ClusterMembership").
func leftWithout(f facts) bool {
	m := f.membership
	return m.State == types.MembershipLeft && m.Without != nil && (!f.config.Valid || m.WithoutIt(f.config.ClusterID.UUID))
}

// unusableConfig says whether zedagent's word is known, and why no status can be made of
// it: "" where one can.
func unusableConfig(f facts) (why string, heard bool) {
	switch {
	case !f.hasConfig && !f.configKnown, f.hasConfig && !f.config.Initialized:
		return "", false
	case !f.hasConfig:
		return "the cluster configuration was withdrawn", true
	case !f.config.Valid:
		return "the cluster configuration is no longer valid", true
	}
	return f.config.Lack(), true
}

// build makes the status of a valid configuration.
func build(f facts, c types.EdgeNodeClusterConfig) *types.EdgeNodeClusterStatus {
	s := &types.EdgeNodeClusterStatus{
		ClusterName:     c.ClusterName,
		ClusterID:       c.ClusterID,
		ClusterIPPrefix: c.ClusterIPPrefix,
		IsWorkerNode:    c.IsWorkerNode,
		JoinServerIP:    c.JoinServerIP,
		BootstrapNode:   c.BootstrapNode,
		LBIPPrefixes:    prefixes(c.LBInterfaces),
	}
	sameCluster := f.hasStatus && f.status.ClusterID.UUID == c.ClusterID.UUID
	s.EncryptedClusterToken, s.Error = secret(f, c.ClusterID.UUID, sameCluster)
	if !f.portsKnown {
		// Before nim has spoken, what a former run learned from it still holds:
		// publishing "not ready" for a moment would take the address away.
		if sameCluster && f.status.ClusterIPPrefix.String() == c.ClusterIPPrefix.String() {
			s.ClusterInterface = f.status.ClusterInterface
			s.ClusterIPIsReady = f.status.ClusterIPIsReady
			if s.BootstrapNode == f.status.BootstrapNode && slices.Equal(s.LBIPPrefixes, f.status.LBIPPrefixes) {
				s.LBInterfaces, s.LBConfigError = f.status.LBInterfaces, f.status.LBConfigError
			}
		}
		return s
	}
	if port, ok := portOf(f.ports, c.ClusterInterface); ok {
		s.ClusterInterface = port.IfName
		s.ClusterIPIsReady = !port.InvalidConfig && port.IfName != "" &&
			c.ClusterIPPrefix.IP.Equal(net.ParseIP(port.ClusterIPAddr))
	}
	var problem string
	s.LBInterfaces, problem = loadBalancer(c, f.ports)
	s.LBConfigError = types.Dated(problem, f.status.LBConfigError, f.now)
	return s
}

// secret is the token of a cluster and why the current one cannot be obtained.
// What is published of the same cluster stays until there is a newer token:
// before the table speaks, and where all it has is an error.
func secret(f facts, cluster uuid.UUID, sameCluster bool) (token string, problem types.ErrorDescription) {
	if sameCluster {
		token, problem = f.status.EncryptedClusterToken, f.status.Error
	}
	if f.token.ClusterID != cluster {
		return token, problem
	}
	if f.token.Error.Error != problem.Error { // else the time at which it first stood
		problem = f.token.Error
	}
	return cmp.Or(f.token.Token, token), problem
}

// portOf finds the port with a logical label.
func portOf(ports []types.NetworkPortStatus, label string) (types.NetworkPortStatus, bool) {
	for _, p := range ports {
		if label != "" && p.Logicallabel == label {
			return p, true
		}
	}
	return types.NetworkPortStatus{}, false
}

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
