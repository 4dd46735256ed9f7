package statusserver

import (
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

// admit says what whoever asks from the address remote at our address local
// may do (docs/wire.md, "Status server").
func admit(remote, local netip.Addr, nodes map[string]types.Node) access {
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
		if !n.Foreign() {
			return proves // also where another Node claims the same address
		}
		found = free // EVE's own zedkube has no proof to give
	}
	return found
}

// plain is ip as addresses are compared: IPv4 as such, and without a zone,
// which Nodes do not name.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }
