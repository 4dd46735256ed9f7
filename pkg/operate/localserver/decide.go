package localserver

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/zedkube/zedkube/types"
)

// place is one of those where we may listen.
type place string

const (
	onSocket   place = "socket"
	onLoopback place = "loopback"
	onCluster  place = "cluster"
)

// facts is what it depends on where we listen.
type facts struct {
	socket, loopback string
	pageToo          bool
	clusterPort      int
	status           types.EdgeNodeClusterStatus
}

// action is what a step does.
type action struct {
	listen map[place]string // the address of each place where we listen
	token  bool             // there is to be a reading token
}

func decide(f facts) action {
	a := action{listen: map[place]string{onSocket: f.socket}, token: f.loopback != "" && f.pageToo}
	if f.loopback != "" {
		a.listen[onLoopback] = f.loopback
	}
	if address := clusterAddress(f.status, f.clusterPort); address != "" {
		a.listen[onCluster] = address
	}
	return a
}

// clusterAddress is where members are answered, "" for nowhere: on the cluster
// address alone, and only while this node has it.
func clusterAddress(s types.EdgeNodeClusterStatus, port int) string {
	if port == 0 || s.ClusterIPPrefix == nil || !s.ClusterIPIsReady {
		return ""
	}
	ip, ok := netip.AddrFromSlice(s.ClusterIPPrefix.IP)
	if !ok {
		return ""
	}
	ip = ip.Unmap()
	if ip.IsLinkLocalUnicast() && ip.Is6() {
		ip = ip.WithZone(s.ClusterInterface) // without it the address is of no interface
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(port))
}
