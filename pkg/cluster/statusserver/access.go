package statusserver

import (
	"fmt"
	"net/netip"

	"github.com/zedkube/zedkube/types"
)

// access is what someone may do with reports of applications.
type access int

const (
	denied access = iota
	proves        // only with a proof that he knows the cluster token
	free
)

// Reports says who gets reports without a proof, of the Nodes on which no zedkube
// of this kind is known to run. EVE's has no proof to give.
type Reports string

const (
	// ReportsAuto gives them to such a Node until this cluster was seen without
	// one: to take the stamp off a Node later, which its kubelet may do, gives
	// nobody anything.
	ReportsAuto Reports = "auto"
	// ReportsAlways gives them to every such Node.
	ReportsAlways Reports = "always"
	// ReportsNever gives them to none.
	ReportsNever Reports = "never"
)

// String implements pflag.Value.
func (r *Reports) String() string { return string(*r) }

// Set implements pflag.Value.
func (r *Reports) Set(text string) error {
	switch is := Reports(text); is {
	case ReportsAuto, ReportsAlways, ReportsNever:
		*r = is
		return nil
	}
	return fmt.Errorf("%q is not one of auto, always, never", text)
}

// Type implements pflag.Value.
func (r *Reports) Type() string { return "auto|always|never" }

// admit says what the one who asks from the address remote at our address local may do
// (docs/wire.md, "Status server"). trusting says that a foreign Node needs no
// proof.
func admit(remote, local netip.Addr, nodes map[string]types.Node, withoutProof bool) access {
	remote, local = plain(remote), plain(local)
	if !remote.IsValid() {
		return denied
	}
	// Loopback is this machine, unless the cluster itself lives there.
	if remote == local || remote.IsLoopback() && !local.IsLoopback() {
		return free
	}
	found := denied
	for _, n := range nodes {
		if ip, err := netip.ParseAddr(n.InternalIP); err != nil || plain(ip) != remote {
			continue
		}
		if !withoutProof || !n.Foreign() {
			return proves // also where another Node claims the same address
		}
		found = free // EVE's own zedkube has no proof to give
	}
	return found
}

// plain is ip as addresses are compared: IPv4 as such, and without a zone,
// which Nodes do not name.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }
