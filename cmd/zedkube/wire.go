package main

import (
	"context"
	"io"
	"maps"
	"net"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/pkg/base/loglevel"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/watchdog"
	"github.com/zedkube/zedkube/pkg/cluster/clusterstatus"
	"github.com/zedkube/zedkube/pkg/cluster/clustertoken"
	"github.com/zedkube/zedkube/pkg/cluster/k3sconfig"
	"github.com/zedkube/zedkube/pkg/cluster/leader"
	"github.com/zedkube/zedkube/pkg/cluster/members"
	"github.com/zedkube/zedkube/pkg/cluster/membership"
	"github.com/zedkube/zedkube/pkg/cluster/peers"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/metrics"
	"github.com/zedkube/zedkube/pkg/report/updatestatus"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// component is one behaviour of the agent. Run returns when ctx is done.
type component interface{ Run(ctx context.Context) }

// wire is the map of the daemon: each component shows in its fields what it
// reads and what it writes. The lines of applications go to out.
func wire(p paths, log *logrus.Logger, out io.Writer) (*pubsub.Bus, map[string]component) {
	t := makeTopics(p.root, log)

	// What the cluster looks like, and what only this process knows.
	nodes, api, leases := &pubsub.Table[types.Node]{}, &pubsub.Table[types.APIStatus]{}, &pubsub.Table[types.Lease]{}
	appPods, nodePods := &pubsub.Table[types.Pod]{}, &pubsub.Table[types.Pod]{}
	vmis, sets := &pubsub.Table[types.VMI]{}, &pubsub.Table[types.AppSet]{}
	token := &pubsub.Table[types.ClusterToken]{}

	pulses := map[string]*loop.Pulse{
		"clusterstatus": {}, "statusserver": {}, "drain": {}, "leader": {}, "apps": {}, "clusterinfo": {}, "loglevel": {},
		"kubeapi": {}, "updatestatus": {}, "membership": {}, "members": {}, "peers": {}, "clustertoken": {}, "k3sconfig": {},
		"services": {}, "storage": {}, "conditions": {}, "nodemetrics": {}, "clustermetrics": {},
		"applogs": {}, "witness": {}, "console": {}, "passthrough": {}, "sriov": {}, "localserver": {}, "audit": {},
	}
	as := func(name string) logrus.FieldLogger { return log.WithField("component", name) }

	trail := &audit.Record{Log: as("audit"), Info: t.info, Dir: p.audit, Segment: audit.DefaultSegment}
	requests, record := metrics.NewRequests(), metrics.NewOperations(trail)
	kube := &kubeapi.Client{
		Log: as("kubeapi"), Pulse: pulses["kubeapi"], Kubeconfig: p.kubeconfig, Requests: requests, Operations: record, Uptime: uptime,
		Info: t.info, Leader: t.leaderInfo,
		Nodes: nodes, AppPods: appPods, NodePods: nodePods, Leases: leases, API: api,
		VMIs: vmis, Sets: sets,
		Credentials: &pubsub.Table[types.Credentials]{}, Clocks: &pubsub.Table[types.NodeClock]{},
		Tables: &pubsub.Table[types.TableStatus]{}, Services: &pubsub.Table[types.Service]{}, Ingresses: &pubsub.Table[types.Ingress]{},
		KubeVIP: &pubsub.Table[types.KubeVIP]{}, OwnDisks: &pubsub.Table[types.LonghornNode]{},
		PodCounts: &pubsub.Table[types.PodCount]{}, Claims: &pubsub.Table[types.Claim]{}, Volumes: &pubsub.Table[types.Volume]{},
		LonghornNodes: &pubsub.Table[types.LonghornNode]{}, Daemons: &pubsub.Table[types.DaemonSet]{},
		Settings: &pubsub.Table[types.LonghornSetting]{}, SnapshotJobs: &pubsub.Table[types.SnapshotJob]{},
	}
	components := map[string]component{
		"kubeapi": kube,
		"audit": &audit.Component{
			Log: as("audit"), Pulse: pulses["audit"], Record: trail, Segments: audit.DefaultSegments,
			DeviceOp: t.deviceOp, Update: t.update, Operator: t.operator, Leave: t.leaveRequest, Detach: t.detach,
		},
		"clustertoken": &clustertoken.Component{
			Log: as("clustertoken"), Pulse: pulses["clustertoken"],
			Membership: t.memberOf, ControllerCerts: t.controllerCerts, Operations: record, DeviceCerts: t.deviceCerts,
			Device: cipher.NewDevice(p.deviceKey, p.tpm), Manifest: p.manifest,
			Token: token, Blocks: t.cipherBlocks, Metrics: t.cipherMetrics,
		},
		"clusterstatus": &clusterstatus.Component{
			Log: as("clusterstatus"), Pulse: pulses["clusterstatus"],
			Config: t.clusterConfig, Membership: t.memberOf, Token: token, Ports: t.ports,
			Status: t.clusterStatus,
		},
		"k3sconfig": &k3sconfig.Component{
			Log: as("k3sconfig"), Pulse: pulses["k3sconfig"],
			Settings: t.settings, Release: t.k3sRelease, Membership: t.memberOf, Info: t.info, Nodes: nodes, BootID: p.boot,
			OverrideFile: p.k3sOverride, Binary: p.k3sBinary, PID: p.k3sPID, Proc: p.proc, Operations: record,
			KubeConfig: t.kubeConfig, Status: t.k3sVersion,
		},
		"membership": &membership.Component{
			Log: as("membership"), Pulse: pulses["membership"],
			Config: t.clusterConfig, Agent: t.zedagent, Settings: t.settings, Info: t.info, Nodes: nodes, API: api,
			Leave: t.leaveRequest, Without: t.without, Progress: t.drainProgress, Journal: t.drainJournal,
			Kube: kube, Operations: record, Version: p.version, Hour: p.hour, Uptime: uptime,
			Membership: t.memberOf,
		},
		"peers": &peers.Component{
			Log: as("peers"), Pulse: pulses["peers"],
			Request: t.leaveRequest, Membership: t.memberOf, Status: t.clusterStatus, Agent: t.zedagent, Info: t.info, Nodes: nodes, API: api,
			Kube: kube, Dial: (&net.Dialer{}).DialContext, Proc: p.proc, Sysfs: p.sysfs, BootID: p.boot, Uptime: uptime,
			Peers: t.peers, Without: t.without,
		},
		"members": &members.Component{
			Log: as("members"), Pulse: pulses["members"],
			Membership: t.memberOf, Agent: t.zedagent, Settings: t.settings, Info: t.info, Nodes: nodes, AppPods: appPods, API: api,
			Kube: kube, Uptime: uptime, Members: t.members, Journal: t.membersJournal,
		},
		"statusserver": &statusserver.Component{
			Log: as("statusserver"), Pulse: pulses["statusserver"],
			Status: t.clusterStatus, Nodes: nodes, API: api, Info: t.info,
			TopicDirs: p.topicDirs, InstallLog: p.installLog, Version: p.version, Reports: p.reports, ProversFile: p.provers,
		},
		"drain": &drain.Component{
			Log: as("drain"), Pulse: pulses["drain"],
			DeviceOp: t.deviceOp, Update: t.update, Operator: t.operator,
			Config: t.clusterConfig, Membership: t.memberOf, Settings: t.settings, Info: t.info,
			Nodes: nodes, NodePods: nodePods, Leases: leases, API: api, Clocks: kube.Clocks, Agent: t.nodeagent,
			ForceFiles: p.forceDrain, FaultMarker: p.faultInjection, Markers: p.goingDown,
			Kube: kube, Operations: record, BootID: p.boot, Uptime: uptime, Hour: p.hour,
			Status: t.drainStatus, Progress: t.drainProgress, Journal: t.drainJournal,
		},
		"leader": &leader.Component{
			Log: as("leader"), Pulse: pulses["leader"],
			Agent: t.zedagent, Info: t.info, Nodes: nodes, API: api,
			Leader: t.leaderInfo,
			Kube:   kube,
		},
		"loglevel": &loglevel.Component{
			Log: as("loglevel"), Pulse: pulses["loglevel"],
			Settings: t.settings,
			Logger:   log,
		},
		"updatestatus": &updatestatus.Component{
			Log: as("updatestatus"), Pulse: pulses["updatestatus"],
			Reported: t.reported,
			Status:   t.updateStatus,
		},
		"watchdog": &watchdog.Component{
			Log:  as("watchdog"),
			Echo: t.echo, Pulses: pulses,
			Beat:      t.beat,
			TouchFile: p.touch,
		},
	}
	maps.Copy(components, wireLocal(p, t, log, pulses, kube, requests, record))
	maps.Copy(components, wireReports(p, t, log, pulses, kube))
	maps.Copy(components, wireApps(p, t, log, out, pulses, kube, record))
	return t.bus, components
}
