package joinplan

import (
	"fmt"
	"net/netip"
	"slices"

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
		all.add("ports", OK, "", "From here to %s: %s refused, as long as k3s does not run there.", p.Address, ports(young))
	}
	if len(fine) > 0 {
		all.add("ports", OK, "", "From here to %s: %s reached.", p.Address, ports(fine))
	}
}

func (f Facts) there(p Peer, try types.ReachPort) (v Verdict, remedy, what string) {
	at := fmt.Sprintf("%s of %s (%s)", portText(try.Port), p.Address, portNames[try.Port])
	switch {
	case try.Outcome == types.ReachOpen && slices.Contains(p.NoTLS, try.Port):
		return Blocks, "see who listens there: ss -ltnp", at + " is open, but does not speak TLS: it is another service."
	case try.Outcome == types.ReachOpen:
		return OK, "", ""
	case try.Outcome == types.ReachRefused && f.Role == Member:
		return OK, "", "" // the machine answers; what is to run there does not run yet
	case try.Outcome == types.ReachRefused:
		return Blocks, "is k3s alive there, and is it a server? A firewall may also refuse", at + " refuses connections from here."
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
		all.add("ports", Unknown, "ask again when k3s runs here", "From %s to here: %s refused, and nothing was listening: %s", p.Address, ports(idle), f.idleWhy(idle[0]))
	}
}

// back is one port of ours; an Unknown without a sentence is one at which
// nobody listened.
func (f Facts) back(p Peer, port int) (v Verdict, remedy, what string) {
	outcome, tried := of(p.Reach.Ports, port)
	at := fmt.Sprintf("%s of this device (%s)", portText(port), portNames[port])
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
	return Blocks, "look at the routes and at the address over there", fmt.Sprintf("%s has no route to %s.", p.Address, at)
}

// served reports whether a service of this device has the port.
func (f Facts) served(port int) bool {
	why, closed := f.Own.Closed[port]
	return closed && why == ""
}

func (f Facts) idleWhy(port int) string {
	if f.Own.Silent != "" {
		return f.Own.Silent
	}
	return f.Own.Closed[port]
}

func (f Facts) ownAddress() string {
	if f.Own.Address.IsValid() {
		return f.Own.Address.String()
	}
	return "ADDRESS"
}

func portText(port int) string { return fmt.Sprintf("Port %d", port) }

func ports(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("port %d is", list[0])
	}
	return "ports " + and(list) + " are"
}
