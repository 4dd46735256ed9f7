package clusterstatus

import (
	"net"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// facts is everything decide may look at.
type facts struct {
	now         time.Time
	configKnown bool // zedagent's table has been whole once
	hasConfig   bool
	config      types.EdgeNodeClusterConfig
	portsKnown  bool
	ports       []types.NetworkPortStatus
	hasStatus   bool
	status      types.EdgeNodeClusterStatus // what is published, perhaps by a former run of this boot
}

// action is everything decide may ask for. Nothing here ever withdraws the
// status: kube-init takes a missing status for a departure and resets the node
// (docs/wire.md, "EdgeNodeClusterStatus"), so only a real leave may do that.
type action struct {
	publish *types.EdgeNodeClusterStatus
	ignore  string // why the configuration is not acted on although a status stands
}

// decide says what to publish, from facts alone.
func decide(f facts) action {
	why := ""
	switch {
	case !f.hasConfig && !f.configKnown:
		return action{} // not known yet: the status of a former run stands
	case !f.hasConfig:
		why = "the cluster configuration is gone"
	case !f.config.Initialized:
		return action{}
	case !f.config.Valid:
		why = "the cluster configuration is not valid any more"
	case f.config.ClusterID.UUID == uuid.Nil:
		// A status without a cluster id would be taken for a departure.
		why = "the cluster configuration names no cluster"
	case f.config.ClusterIPPrefix == nil || len(f.config.ClusterIPPrefix.IP) == 0:
		why = "the cluster configuration holds no cluster address"
	default:
		return action{publish: build(f)}
	}
	if !f.hasStatus && !f.config.Valid {
		why = "" // never clustered: nothing stands that could be kept
	}
	return action{ignore: why}
}

// build makes the status of a valid configuration.
func build(f facts) *types.EdgeNodeClusterStatus {
	s := &types.EdgeNodeClusterStatus{
		ClusterName:     f.config.ClusterName,
		ClusterID:       f.config.ClusterID,
		ClusterIPPrefix: f.config.ClusterIPPrefix,
		IsWorkerNode:    f.config.IsWorkerNode,
		JoinServerIP:    f.config.JoinServerIP,
		BootstrapNode:   f.config.BootstrapNode,
		LBIPPrefixes:    prefixes(f.config.LBInterfaces),
	}
	sameCluster := f.hasStatus && f.status.ClusterID.UUID == f.config.ClusterID.UUID
	if sameCluster {
		s.EncryptedClusterToken = f.status.EncryptedClusterToken
	}
	if !f.portsKnown {
		// Before nim has spoken, what a former run learned from it still holds:
		// publishing "not ready" for a moment would take the address away.
		if sameCluster && f.status.ClusterIPPrefix.String() == f.config.ClusterIPPrefix.String() {
			s.ClusterInterface = f.status.ClusterInterface
			s.ClusterIPIsReady = f.status.ClusterIPIsReady
			s.LBInterfaces = f.status.LBInterfaces
			s.LBConfigError = f.status.LBConfigError
		}
		return s
	}
	if port, ok := portOf(f.ports, f.config.ClusterInterface); ok {
		s.ClusterInterface = port.IfName
		s.ClusterIPIsReady = !port.InvalidConfig && port.IfName != "" &&
			f.config.ClusterIPPrefix.IP.Equal(net.ParseIP(port.ClusterIPAddr))
	}
	var problem string
	s.LBInterfaces, problem = loadBalancer(f.config, f.ports)
	s.LBConfigError = since(problem, f)
	return s
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

// since dates a problem: it keeps the time at which the same text first stood.
func since(problem string, f facts) types.ErrorDescription {
	switch {
	case problem == "":
		return types.ErrorDescription{}
	case f.hasStatus && f.status.LBConfigError.Error == problem:
		return f.status.LBConfigError
	}
	return types.ErrorDescription{Error: problem, ErrorTime: f.now, ErrorSeverity: types.ErrorSeverityError}
}
