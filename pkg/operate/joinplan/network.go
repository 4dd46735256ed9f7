package joinplan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/types"
)

// The ports that the nodes of a cluster need of each other (docs/wire.md,
// "Firewall"), and what for.
var portNames = map[int]string{
	types.PortAPI: "the API server", types.PortEtcdClient: "etcd's clients", types.PortEtcdPeer: "etcd's members", types.PortKubelet: "the kubelet", types.PortStatus: "the status server",
}

// needed reports whether a node needs a port of another: of a worker's etcd
// there is none.
func (f Facts) needed(port int, atCandidate bool) bool {
	switch {
	case !f.Own.Worker || f.Role == Member:
		return true
	case atCandidate:
		return port == types.PortKubelet || port == types.PortStatus
	}
	return port == types.PortAPI || port == types.PortKubelet || port == types.PortStatus
}

// portsThere is the way from here to a peer.
func (f Facts) portsThere(all *findings, p Peer) {
	var fine, young []int
	for _, try := range p.Tries {
		if !f.needed(try.Port, f.Role == Member) {
			continue
		}
		switch v, remedy, what := f.there(p, try); {
		case v == OK && try.Outcome == types.ReachRefused:
			young = append(young, try.Port)
		case v == OK:
			fine = append(fine, try.Port)
		default:
			all.add("ports", v, remedy, "%s", what)
		}
	}
	if len(young) > 0 {
		all.add("ports", OK, "", "From here to %s: %s refused, as long as k3s is not running there.", p.Address, ports(young))
	}
	if len(fine) > 0 {
		all.add("ports", OK, "", "From here to %s: %s reached.", p.Address, ports(fine))
	}
}

func (f Facts) there(p Peer, try types.ReachPort) (v Verdict, remedy, what string) {
	at := fmt.Sprintf("Port %d of %s (%s)", try.Port, p.Address, portNames[try.Port])
	switch {
	case try.Outcome == types.ReachOpen && slices.Contains(p.NoTLS, try.Port):
		return Blocks, "see what listens there: ss -ltnp", at + " is open, but does not speak TLS: it is another service."
	case try.Outcome == types.ReachOpen:
		return OK, "", ""
	case try.Outcome == types.ReachRefused && f.Role == Member:
		return OK, "", "" // the machine answers; what is to run there does not run yet
	case try.Outcome == types.ReachRefused:
		return Blocks, "is k3s running there, and is it a server? A firewall may also refuse", at + " refuses connections from here."
	case try.Outcome == types.ReachSilent:
		return Blocks, "look for a firewall in between, at the cable and at the address", at + " does not answer from here: something drops the packets on the way, or there is no host."
	}
	return Blocks, "look at the routes and at the address of this device", "There is no route from here to " + at + "."
}

// portsBack is the way from a peer to here, as the peer found it.
func (f Facts) portsBack(all *findings, p Peer) {
	if p.Reach == nil {
		all.add("ports", Unknown, "ask there: zedkube join plan --candidate "+f.ownAddress(), "Whether %s reaches this device is unknown: %s", p.Address, p.NoReach)
		return
	}
	if from, err := netip.ParseAddr(p.Reach.From); f.Own.Address.IsValid() && (err != nil || from.WithZone("") != f.Own.Address.WithZone("")) {
		all.add("ports", Warn, "remove the address translation in between", "%s sees this device as %q, not as %s.", p.Address, p.Reach.From, f.Own.Address)
	}
	var fine, idle []int
	for port := range portNames {
		if !f.needed(port, f.Role == Candidate) {
			continue
		}
		switch v, remedy, what := f.back(p, port); {
		case v == OK && what == "":
			fine = append(fine, port)
		case v == Unknown && what == "":
			idle = append(idle, port)
		default:
			all.add("ports", v, remedy, "%s", what)
		}
	}
	slices.Sort(fine)
	slices.Sort(idle)
	if len(fine) > 0 {
		all.add("ports", OK, "", "From %s to here: %s reached.", p.Address, ports(fine))
	}
	if len(idle) > 0 {
		all.add("ports", Unknown, "try again when k3s is running here", "From %s to here: %s refused, and nothing was listening: %s", p.Address, ports(idle), cmp.Or(f.Own.Silent, f.Own.Closed[idle[0]]))
	}
}

// back is one port of ours; an Unknown without a sentence is one at which
// nobody listened.
func (f Facts) back(p Peer, port int) (v Verdict, remedy, what string) {
	outcome, tried := of(p.Reach.Ports, port)
	at := fmt.Sprintf("Port %d of this device (%s)", port, portNames[port])
	served := f.served(port)
	listened := served || f.Own.Silent == "" && f.Own.Closed[port] == ""
	heard := slices.Contains(p.Heard, port)
	switch {
	case !tried:
		return Unknown, "", fmt.Sprintf("%s has not tried %s.", p.Address, at)
	case outcome == types.ReachOpen && listened && !served && !heard:
		return Blocks, "look for a second device with this address: arping -D", fmt.Sprintf("Another host answers %s at %s, not this device: another one has the address, or the peer is wrong.", p.Address, at)
	case outcome == types.ReachOpen:
		return OK, "", ""
	case outcome == types.ReachRefused && !listened:
		return Unknown, "", ""
	case outcome == types.ReachRefused:
		return Blocks, "look for a firewall on this device: iptables -S", fmt.Sprintf("%s is refused at %s, although something listens there.", p.Address, at)
	case outcome == types.ReachSilent:
		return Blocks, "look for a firewall on this device (nim opens these ports once the cluster address is up) and in between", fmt.Sprintf("%s does not get through to %s: something drops it.", p.Address, at)
	}
	return Blocks, "check the routes and the address there", fmt.Sprintf("%s has no route to %s.", p.Address, at)
}

// served reports whether a service of this device has the port.
func (f Facts) served(port int) bool {
	why, closed := f.Own.Closed[port]
	return closed && why == ""
}

func (f Facts) ownAddress() string {
	if f.Own.Address.IsValid() {
		return f.Own.Address.String()
	}
	return "ADDRESS"
}

func ports(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("port %d is", list[0])
	}
	return "ports " + and(list) + " are"
}

// address is whether this device has the address that it is to join with.
func (f Facts) address(all *findings) {
	o := f.Own
	if !o.Address.IsValid() {
		all.add("address", Unknown, "name it: --address ADDRESS", "It is not known which address this device is to have in the cluster's network.")
		return
	}
	for _, p := range f.Peers {
		if p.Address == o.Address {
			all.add("address", Blocks, "give one of them another address at the controller", "This device and the member to join through have the same address, %s.", o.Address)
		} else if o.Network.IsValid() && !o.Network.Contains(p.Address.WithZone("")) {
			all.add("address", Warn, "correct the prefix or the join server at the controller", "%s is not in this device's network %s: it is reached through a router, and does not report on the reverse direction to other networks.", p.Address, o.Network.Masked())
		}
	}
	v, remedy, what := f.where()
	all.add("address", v, remedy, "%s", what)
}

// where is where the own address is.
func (f Facts) where() (v Verdict, remedy, what string) {
	o := f.Own
	if o.Kernel == nil {
		return Unknown, "", fmt.Sprintf("Whether this device has the address %s is unknown: its interfaces cannot be read.", o.Address)
	}
	on, has := holder(o.Kernel, o.Address)
	switch {
	case has && o.Interface != "" && on.Name != o.Interface:
		return Blocks, "remove it there, or correct the interface at the controller", fmt.Sprintf("The address %s is on interface %s, not on the cluster interface %s.", o.Address, on.Name, o.Interface)
	case has && o.Network.IsValid() && on.Prefix.Bits() < on.Prefix.Addr().BitLen() && on.Prefix.Bits() != o.Network.Bits():
		return Warn, "correct the prefix at the controller", fmt.Sprintf("The address %s is on interface %s as a /%d, and configured as a /%d.", o.Address, on.Name, on.Prefix.Bits(), o.Network.Bits())
	case has:
		return OK, "", fmt.Sprintf("The address %s is on interface %s.", o.Address, on.Name)
	}
	return f.missing()
}

// missing is why the own address is not there.
func (f Facts) missing() (v Verdict, remedy, what string) {
	o := f.Own
	what = fmt.Sprintf("No interface of this device has the address %s", o.Address)
	port, known := portOf(o)
	switch {
	case !o.HasStatus:
		return Blocks, "is zedkube running, and does the controller configure a cluster for the device?", what + ", and zedkube has not published EdgeNodeClusterStatus, without which nim does not assign it."
	case o.Ports == nil:
		return Blocks, "is nim running?", what + ", and DeviceNetworkStatus, which would say why, cannot be read."
	case !known && o.Label != "":
		return Blocks, "correct the interface of the cluster, or the labels of the ports, at the controller", what + fmt.Sprintf(": no port has the label %q.", o.Label)
	case known && port.InvalidConfig:
		return Blocks, "correct the port at the controller", what + fmt.Sprintf(": the configuration of port %s (%s) is not valid.", port.Logicallabel, port.IfName)
	case known && port.IfName == "":
		return Blocks, "is the hardware present?", what + fmt.Sprintf(": port %s has no interface.", port.Logicallabel)
	}
	return Blocks, "look at DeviceNetworkStatus and at nim's log", what + ": nim has not assigned it to the port yet."
}

func holder(kernel []Interface, ip netip.Addr) (Interface, bool) {
	for _, i := range kernel {
		if i.Prefix.Addr().Unmap().WithZone("") == ip.WithZone("") {
			return i, true
		}
	}
	return Interface{}, false
}

func portOf(o Own) (types.NetworkPortStatus, bool) {
	for _, p := range o.Ports {
		if o.Label != "" && p.Logicallabel == o.Label || o.Label == "" && o.Interface != "" && p.IfName == o.Interface {
			return p, true
		}
	}
	return types.NetworkPortStatus{}, false
}

// protocol is by which protocol the status server of a peer answers, whose joiner asks
// by the one that its EVE knows.
func (f Facts) protocol(all *findings, p Peer) {
	switch {
	case p.ByTLS:
		all.add("protocol", OK, "", "The status server of %s answers by TLS, with the certificate of this cluster's token.", p.Address)
	case p.ByHTTP:
		all.add("protocol", OK, "", "The status server of %s answers by plain HTTP: an EVE with cluster-status-probe, which asks by TLS alone, cannot join through it.", p.Address)
	}
}

// date is whether the certificate of status servers is valid by the clock of this
// device, at which EVE's cluster-status-probe looks (docs/wire.md, "TLS and bearer").
func (f Facts) date(all *findings) {
	if begins := clusterauth.ValidFrom(); f.Now.Before(begins) {
		all.add("clock", Blocks, "set the clock: is NTP configured, and does it answer?", "The clock of this device shows %s, and the certificate of the status servers is valid from %s: EVE's cluster-status-probe rejects it.", f.Now.UTC().Format(time.DateOnly), begins.Format(time.DateOnly))
	}
}

const (
	// etcd complains in its log about peers that are further apart.
	clockFine = time.Second
	// Beyond this a node that lives looks dead to others, by the times that it
	// writes.
	clockBad = 20 * time.Second
	// Two clocks of one machine cannot differ; what they tell may, by the
	// seconds they are rounded to.
	clockDoubt = 3 * time.Second
)

// clock is how far apart the clocks are.
func clock(all *findings, p Peer) {
	if len(p.Clocks) == 0 {
		all.add("clock", Unknown, "", "The clock of %s could not be read.", p.Address)
		return
	}
	best := slices.MinFunc(p.Clocks, func(a, b Clock) int { return cmp.Compare(a.Within, b.Within) })
	for _, c := range p.Clocks {
		if apart := (c.Ahead - best.Ahead).Abs() - c.Within - best.Within; apart > clockDoubt {
			all.add("clock", Warn, "check the clock there", "%s and %s of %s show times that are %s apart: one of them is wrong.", upper(best.Source), c.Source, p.Address, apart.Round(time.Second))
			return
		}
	}
	side := "behind"
	if best.Ahead < 0 {
		side = "ahead of"
	}
	skew := best.Ahead.Abs()
	sure := skew - best.Within // at least so much
	const remedy = "set the clocks: is NTP configured, and does it answer?"
	switch {
	case sure > clockBad:
		all.add("clock", Blocks, remedy, "The clock of this device is %s %s that of %s: certificates may not be valid yet, proofs may be refused, and nodes may seem unreachable to each other.", length(skew), side, p.Address)
	case sure > clockFine:
		all.add("clock", Warn, remedy, "The clock of this device is %s %s that of %s: etcd warns above 1s.", length(skew), side, p.Address)
	default:
		all.add("clock", OK, "", "The clocks of this device and %s agree within %s.", p.Address, (max(skew, best.Within) + 99*time.Millisecond).Truncate(100*time.Millisecond))
	}
}

// length is a time for people.
func length(d time.Duration) string {
	switch {
	case d > 10*365*24*time.Hour:
		return "over 10 years"
	case d > 10*time.Second:
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
