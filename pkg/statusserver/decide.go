package statusserver

import (
	"net"
	"strconv"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// statusPort is where joining nodes ask; EVE's firewall opens this port only.
const statusPort = 12346

// address says where to listen, "" for nowhere: on the cluster address alone,
// and only while this node has it.
func address(s types.EdgeNodeClusterStatus, port int) string {
	if !s.ClusterIPIsReady || s.ClusterIPPrefix == nil || len(s.ClusterIPPrefix.IP) == 0 {
		return ""
	}
	if port == 0 {
		port = statusPort
	}
	return net.JoinHostPort(s.ClusterIPPrefix.IP.String(), strconv.Itoa(port))
}

// facts is what an answer depends on.
type facts struct {
	status types.EdgeNodeClusterStatus
	nodes  map[string]types.Node
	info   types.EdgeNodeInfo
	api    types.APIStatus // zero: nothing known yet
}

// answer is the body of /status: a joining node goes ahead only when it reads
// the name of its own cluster here, so an unknown is answered with nothing
// (docs/wire.md, "Status server").
func answer(f facts) string {
	if f.status.ClusterID.UUID == uuid.Nil || !f.api.Answers() || !f.api.Synced {
		return ""
	}
	node, ok := types.OwnNode(f.nodes, f.info)
	if !ok || !node.Etcd || !node.ControlPlane && !node.Master {
		return ""
	}
	return "cluster:" + f.status.ClusterID.UUID.String()
}
