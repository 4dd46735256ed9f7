package statusserver

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// facts is what an answer depends on.
type facts struct {
	now    time.Time
	port   int // 0 for types.PortStatus
	status types.EdgeNodeClusterStatus
	nodes  map[string]types.Node
	info   types.EdgeNodeInfo
	api    types.APIStatus
	heard  bool // api holds something
	marks  marks

	proved  string    // the cluster that was once seen with a zedkube of this kind on every Node
	stamped time.Time // since when it has looked so; zero for not
}

// action is what a step does.
type action struct {
	listen string // "" for nowhere
	marks  marks
	reason string // why joining nodes are told what they are

	proved  string    // the cluster of this node, if all its Nodes have had proofs; else ""
	stamped time.Time // since when it looks as if they had; zero for not
}

func decide(f facts) action {
	e := explain(f)
	a := action{listen: address(f.status, f.port), marks: f.marks.next(e, f.now), reason: e.reason}
	a.proved, a.stamped = proved(f)
	return a
}

// proved is the cluster of this node, if there was a time at which a zedkube of
// this kind ran on each of its Nodes, else "". A stamp that has outlived its agent
// is known for that only after StampFresh, so it takes as long.
func proved(f facts) (cluster string, stamped time.Time) {
	id := f.status.ClusterID.UUID
	if id == uuid.Nil {
		return "", time.Time{}
	}
	if f.proved == id.String() {
		return f.proved, time.Time{}
	}
	isForeign := func(n types.Node) bool { return n.Foreign() }
	if !f.api.Answers() || !f.api.Synced || len(f.nodes) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(f.nodes)), isForeign) {
		return "", time.Time{}
	}
	if f.stamped.IsZero() {
		f.stamped = f.now
	}
	if f.now.Sub(f.stamped) < types.StampFresh {
		return "", f.stamped
	}
	return id.String(), time.Time{}
}

// address says where to listen, "" for nowhere: on the cluster address alone,
// and only while this node has it.
func address(s types.EdgeNodeClusterStatus, port int) string {
	ip, ok := ownAddress(s)
	if !ok || !s.ClusterIPIsReady {
		return ""
	}
	if ip.IsLinkLocalUnicast() && ip.Is6() {
		ip = ip.WithZone(s.ClusterInterface) // without it the address is of no interface
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(portOr(port)))
}

func portOr(port int) int {
	if port == 0 {
		return types.PortStatus
	}
	return port
}

// ownAddress is the cluster address without a zone.
func ownAddress(s types.EdgeNodeClusterStatus) (netip.Addr, bool) {
	if s.ClusterIPPrefix == nil {
		return netip.Addr{}, false
	}
	ip, ok := netip.AddrFromSlice(s.ClusterIPPrefix.IP)
	return ip.Unmap(), ok
}

// answer is the body of /status: a joining node goes ahead only when it reads
// the name of its own cluster here, so an unknown is answered with nothing
// (docs/wire.md, "Status server").
func answer(f facts) string {
	if !serves(f) {
		return ""
	}
	return "cluster:" + f.status.ClusterID.UUID.String()
}

// serves reports whether this node is known to be a working server of its cluster.
func serves(f facts) bool {
	if f.status.ClusterID.UUID == uuid.Nil || !f.api.Answers() || !f.api.Synced {
		return false
	}
	node, ok := types.OwnNode(f.nodes, f.info)
	return ok && node.Etcd && (node.ControlPlane || node.Master)
}
