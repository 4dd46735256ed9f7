package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/pkg/base/loglevel"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/watchdog"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cluster/clusterstatus"
	"github.com/zedkube/zedkube/pkg/cluster/clustertoken"
	"github.com/zedkube/zedkube/pkg/cluster/k3sconfig"
	"github.com/zedkube/zedkube/pkg/cluster/leader"
	"github.com/zedkube/zedkube/pkg/cluster/members"
	"github.com/zedkube/zedkube/pkg/cluster/membership"
	"github.com/zedkube/zedkube/pkg/cluster/peers"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/cluster/witness"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/operate/metrics"
	"github.com/zedkube/zedkube/pkg/operate/operator"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/operate/page"
	"github.com/zedkube/zedkube/pkg/report/clusterinfo"
	"github.com/zedkube/zedkube/pkg/report/clustermetrics"
	"github.com/zedkube/zedkube/pkg/report/conditions"
	"github.com/zedkube/zedkube/pkg/report/nodemetrics"
	"github.com/zedkube/zedkube/pkg/report/services"
	"github.com/zedkube/zedkube/pkg/report/updatestatus"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
	"github.com/zedkube/zedkube/pkg/workload/apps"
	"github.com/zedkube/zedkube/pkg/workload/console"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/pkg/workload/passthrough"
	"github.com/zedkube/zedkube/pkg/workload/sriov"
	"github.com/zedkube/zedkube/pkg/workload/storage"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// component is one behaviour of the agent. Run returns when ctx is done.
type component interface{ Run(ctx context.Context) }

// wire is the map of the daemon: each component shows in its fields what it
// reads and what it writes. The lines of applications go to out.
func wire(p device.Paths, log *logrus.Logger, out io.Writer) (*pubsub.Bus, map[string]component) {
	t := makeTopics(p.Root, log)

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

	trail := &audit.Record{Log: as("audit"), Info: t.info, Dir: p.Audit, Segment: audit.DefaultSegment}
	requests, record := metrics.NewRequests(), metrics.NewOperations(trail)
	kube := kubeapi.New(kubeapi.Config{
		Log: as("kubeapi"), Pulse: pulses["kubeapi"], Kubeconfig: p.Kubeconfig, Requests: requests, Operations: record, Uptime: device.Uptime,
		Info: t.info, Leader: t.leaderInfo,
		Nodes: nodes, AppPods: appPods, NodePods: nodePods, Leases: leases, API: api,
		VMIs: vmis, Sets: sets,
		Credentials: &pubsub.Table[types.Credentials]{}, Clocks: &pubsub.Table[types.NodeClock]{},
		Tables: &pubsub.Table[types.TableStatus]{}, Services: &pubsub.Table[types.Service]{}, Ingresses: &pubsub.Table[types.Ingress]{},
		KubeVIP: &pubsub.Table[types.KubeVIP]{}, OwnDisks: &pubsub.Table[types.LonghornNode]{},
		PodCounts: &pubsub.Table[types.PodCount]{}, Claims: &pubsub.Table[types.Claim]{}, Volumes: &pubsub.Table[types.Volume]{},
		LonghornNodes: &pubsub.Table[types.LonghornNode]{}, Daemons: &pubsub.Table[types.DaemonSet]{},
		Settings: &pubsub.Table[types.LonghornSetting]{}, SnapshotJobs: &pubsub.Table[types.SnapshotJob]{},
	})

	// What the reports share.
	sections, former := &pubsub.Table[types.ReportSection]{}, device.FormerReports(p)

	// What the local server answers.
	numbers := &metrics.Metrics{
		Version: p.Version, Lease: kubeapi.StatsLease, Pulses: pulses, Bus: t.bus, Requests: requests, Operations: record,
		Info: t.info, Nodes: kube.Nodes, API: kube.API, Leases: kube.Leases,
		Leader: t.leaderInfo, Progress: t.drainProgress, Health: t.reportHealth, Conditions: t.nodeConditions,
	}
	live := overview.Live{Root: p.Root, Node: kube.Nodes, Info: t.info, API: kube.API}
	shown := &page.Page{
		Log: as("page"), Overview: health.Judged(live.Overview),
		Metrics: t.nodeMetrics, Configs: t.appConfigs, AppPods: kube.AppPods, Kube: kube,
		Audit: (&page.Trails{Dir: p.Audit}).Answer, Requests: requests.Total, Looks: t.pageLooks,
	}
	routes := shown.Routes()
	routes["/metrics"] = localserver.Route{Handler: numbers.Handler(), Access: localserver.Always, Apart: true}
	routes[overview.NodesPath] = localserver.Route{Handler: live, Access: localserver.WithToken}
	routes[operator.Path] = localserver.Route{
		Handler: &operator.Handler{Root: p.Root, Operations: record, Topics: device.OperatorTopics()},
		Methods: []string{http.MethodPut, http.MethodDelete}, Effect: "a request to the agent is made or withdrawn",
	}
	for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace} {
		routes["/debug/pprof/"+path] = localserver.Route{Handler: profile}
	}

	return t.bus, map[string]component{
		// The window on the cluster, and what watches this process.
		"kubeapi": kube,
		"watchdog": &watchdog.Component{
			Log:  as("watchdog"),
			Echo: t.echo, Pulses: pulses,
			Beat:      t.beat,
			TouchFile: p.Touch,
		},
		"loglevel": &loglevel.Component{
			Log: as("loglevel"), Pulse: pulses["loglevel"],
			Settings: t.settings,
			Logger:   log,
		},

		// The node in its cluster.
		"clustertoken": &clustertoken.Component{
			Log: as("clustertoken"), Pulse: pulses["clustertoken"],
			Membership: t.memberOf, ControllerCerts: t.controllerCerts, Operations: record, DeviceCerts: t.deviceCerts,
			Device: cipher.NewDevice(p.DeviceKey, p.TPM), Manifest: p.Manifest,
			Token: token, Blocks: t.cipherBlocks, Metrics: t.cipherMetrics,
		},
		"clusterstatus": &clusterstatus.Component{
			Log: as("clusterstatus"), Pulse: pulses["clusterstatus"],
			Config: t.clusterConfig, Membership: t.memberOf, Token: token, Ports: t.ports,
			Status: t.clusterStatus,
		},
		"membership": &membership.Component{
			Log: as("membership"), Pulse: pulses["membership"],
			Config: t.clusterConfig, Agent: t.zedagent, Settings: t.settings, Info: t.info, Nodes: nodes, API: api,
			Leave: t.leaveRequest, Without: t.without, Progress: t.drainProgress, Journal: t.drainJournal,
			Kube: kube, Operations: record, Version: p.Version, Hour: p.Hour, Uptime: device.Uptime,
			Membership: t.memberOf,
		},
		"peers": &peers.Component{
			Log: as("peers"), Pulse: pulses["peers"],
			Request: t.leaveRequest, Membership: t.memberOf, Status: t.clusterStatus, Agent: t.zedagent, Info: t.info, Nodes: nodes, API: api,
			Kube: kube, Dial: (&net.Dialer{}).DialContext, Proc: p.Proc, Sysfs: p.Sysfs, BootID: p.Boot, Uptime: device.Uptime,
			Peers: t.peers, Without: t.without,
		},
		"members": &members.Component{
			Log: as("members"), Pulse: pulses["members"],
			Membership: t.memberOf, Agent: t.zedagent, Settings: t.settings, Info: t.info, Nodes: nodes, AppPods: appPods, API: api,
			Kube: kube, Uptime: device.Uptime, Members: t.members, Journal: t.membersJournal,
		},
		"leader": &leader.Component{
			Log: as("leader"), Pulse: pulses["leader"],
			Agent: t.zedagent, Info: t.info, Nodes: nodes, API: api,
			Leader: t.leaderInfo,
			Kube:   kube,
		},
		"witness": &witness.Component{
			Log: as("witness"), Pulse: pulses["witness"],
			Info: t.info, Nodes: kube.Nodes, AppPods: kube.AppPods, VMIs: kube.VMIs, API: kube.API, Known: t.known, Journal: t.knownJournal,
			Kube: kube, Dial: (&net.Dialer{}).DialContext, Ports: []int{types.PortStatus, types.PortKubelet}, Uptime: device.Uptime,
		},
		"k3sconfig": &k3sconfig.Component{
			Log: as("k3sconfig"), Pulse: pulses["k3sconfig"],
			Settings: t.settings, Release: t.k3sRelease, Membership: t.memberOf, Info: t.info, Nodes: nodes, BootID: p.Boot,
			OverrideFile: p.K3sOverride, Binary: p.K3sBinary, PID: p.K3sPID, Proc: p.Proc, Operations: record,
			KubeConfig: t.kubeConfig, Status: t.k3sVersion,
		},
		"statusserver": &statusserver.Component{
			Log: as("statusserver"), Pulse: pulses["statusserver"],
			Status: t.clusterStatus, Nodes: nodes, API: api, Info: t.info,
			TopicDirs: p.TopicDirs, InstallLog: p.InstallLog, Version: p.Version, Reports: p.Reports, ProversFile: p.Provers,
		},

		// The workload.
		"drain": &drain.Component{
			Log: as("drain"), Pulse: pulses["drain"],
			DeviceOp: t.deviceOp, Update: t.update, Operator: t.operator,
			Config: t.clusterConfig, Membership: t.memberOf, Settings: t.settings, Info: t.info,
			Nodes: nodes, NodePods: nodePods, Leases: leases, API: api, Clocks: kube.Clocks, Agent: t.nodeagent,
			ForceFiles: p.ForceDrain, FaultMarker: p.FaultInjection, Markers: p.GoingDown,
			Kube: kube, Operations: record, BootID: p.Boot, Uptime: device.Uptime, Hour: p.Hour,
			Status: t.drainStatus, Progress: t.drainProgress, Journal: t.drainJournal,
		},
		"apps": &apps.Component{
			Log: as("apps"), Pulse: pulses["apps"],
			Configs: t.appConfigs, Settings: t.settings, Requests: t.detach, Info: t.info, Agent: t.zedagent,
			Nodes: kube.Nodes, AppPods: kube.AppPods, VMIs: kube.VMIs, Sets: kube.Sets, API: kube.API,
			Kube: kube, Uptime: device.Uptime,
			Known: t.known, Status: t.appStatus, Repairs: t.appRepair,
		},
		"applogs": &applogs.Component{
			Log: as("applogs"), Pulse: pulses["applogs"],
			Configs: t.appConfigs, Info: t.info, Nodes: kube.Nodes, AppPods: kube.AppPods, API: kube.API,
			Kube: kube, Out: out,
			MaxRecord: p.LogRecord, Streams: applogs.Streams(p.Proc), Rate: applogs.DefaultRate, Burst: applogs.DefaultBurst,
			Journal: p.LogJournal, Checkpoints: p.LogCheckpoints,
		},
		"console": &console.Component{
			Log: as("console"), Pulse: pulses["console"],
			Configs: t.appConfigs, Apps: t.appStatus, Operations: record, File: p.Console, OldFile: p.ConsoleOld, KubeInit: p.KubeInit, Proc: p.Proc,
			Status: t.appConsole,
		},
		"passthrough": &passthrough.Component{
			Log: as("passthrough"), Pulse: pulses["passthrough"],
			Configs: t.appConfigs, Info: t.info, Agent: t.zedagent, Nodes: kube.Nodes, API: kube.API,
			Kube: kube, Links: passthrough.Host{}, Operations: record,
		},
		"sriov": &sriov.Component{
			Log: as("sriov"), Pulse: pulses["sriov"],
			Adapters: t.adapters, Info: t.info, Nodes: kube.Nodes, NodePods: kube.NodePods, API: kube.API,
			Kube: kube, Operations: record, Sysfs: p.Sysfs,
		},
		"storage": &storage.Component{
			Log: as("storage"), Pulse: pulses["storage"],
			Settings: t.settings, Info: t.info, Leader: t.leaderInfo, Nodes: kube.Nodes, Tables: kube.Tables,
			OwnDisks: kube.OwnDisks, LonghornSettings: kube.Settings, SnapshotJobs: kube.SnapshotJobs,
			Kube: kube, Uptime: device.Uptime,
			Status: t.storageStatus,
		},

		// The report.
		"clusterinfo": &clusterinfo.Component{
			Log: as("clusterinfo"), Pulse: pulses["clusterinfo"],
			Leader: t.leaderInfo, Info: t.info, Membership: t.memberOf, Members: t.members, Tables: kube.Tables,
			Nodes: kube.Nodes, AppPods: kube.AppPods, VMIs: kube.VMIs, PodCounts: kube.PodCounts, Claims: kube.Claims,
			Volumes: kube.Volumes, Disks: kube.LonghornNodes, Daemons: kube.Daemons, Sections: sections,
			Report: t.clusterInfo, Health: t.reportHealth, Former: former,
		},
		"services": &services.Component{
			Log: as("services"), Pulse: pulses["services"],
			Services: kube.Services, Ingresses: kube.Ingresses, KubeVIP: kube.KubeVIP, Tables: kube.Tables, API: kube.API,
			Ports: t.ports, Cluster: t.clusterStatus,
			Status: t.userServices, Sections: sections, Former: former,
		},
		"conditions": &conditions.Component{
			Log: as("conditions"), Pulse: pulses["conditions"],
			Credentials: kube.Credentials, Clocks: kube.Clocks, Nodes: kube.Nodes, NodePods: kube.NodePods, API: kube.API, Tables: kube.Tables,
			Info: t.info, Membership: t.memberOf, K3s: t.k3sVersion, Leader: t.leaderInfo, Health: t.reportHealth,
			Uptime:     device.Uptime,
			Conditions: t.nodeConditions,
		},
		"nodemetrics": &nodemetrics.Component{
			Log: as("nodemetrics"), Pulse: pulses["nodemetrics"],
			Info: t.info, Nodes: kube.Nodes, Looks: t.looks,
			Kube: kube, Uptime: device.Uptime,
			Metrics: t.nodeMetrics,
		},
		"clustermetrics": &clustermetrics.Component{
			Log: as("clustermetrics"), Pulse: pulses["clustermetrics"],
			Leader: t.leaderInfo, Info: t.info, Nodes: kube.Nodes, AppPods: kube.AppPods, API: kube.API, Own: t.nodeMetrics,
			Configs: t.appConfigs, Kube: kube, Uptime: device.Uptime,
			Metrics: t.clusterMetrics,
		},
		"updatestatus": &updatestatus.Component{
			Log: as("updatestatus"), Pulse: pulses["updatestatus"],
			Reported: t.reported,
			Status:   t.updateStatus,
		},

		// The people at the device.
		"localserver": &localserver.Component{
			Log: log.WithField("component", "localserver"), Pulse: pulses["localserver"],
			Status: t.clusterStatus,
			Socket: p.Socket, Address: p.PageAddress, PageToo: p.PageToo, TokenFile: p.PageToken, ClusterPort: p.PageOnCluster,
			Routes: routes,
		},
		"audit": &audit.Component{
			Log: as("audit"), Pulse: pulses["audit"], Record: trail, Segments: audit.DefaultSegments,
			DeviceOp: t.deviceOp, Update: t.update, Operator: t.operator, Leave: t.leaveRequest, Detach: t.detach,
		},
	}
}

// topics are all that this agent hears and says; each is made once, here.
type topics struct {
	bus *pubsub.Bus

	// What other agents say.
	clusterConfig   pubsub.Source[types.EdgeNodeClusterConfig]
	appConfigs      pubsub.Source[types.AppInstanceConfig]
	settings        pubsub.Source[types.ConfigItemValueMap]
	deviceOp        pubsub.Source[types.NodeDrainRequest]
	update          pubsub.Source[types.NodeDrainRequest]
	ports           pubsub.Source[types.DeviceNetworkStatus]
	info            pubsub.Source[types.EdgeNodeInfo]
	zedagent        pubsub.Source[types.ZedAgentStatus]
	controllerCerts pubsub.Source[types.ControllerCert]
	deviceCerts     pubsub.Source[types.EdgeNodeCert]
	adapters        pubsub.Source[types.AssignableAdapters]
	nodeagent       pubsub.Source[types.NodeAgentStatus]
	echo            pubsub.Source[types.WatchdogBeat]

	// What commands at the device ask for.
	reported     pubsub.Source[types.KubeClusterUpdateStatus]
	operator     pubsub.Source[types.NodeDrainRequest]
	leaveRequest pubsub.Source[types.ClusterLeaveRequest]
	detach       pubsub.Source[types.AppDetachRequest]
	k3sRelease   pubsub.Source[types.K3sReleaseRequest]
	looks        pubsub.Reader[types.MetricsLook]
	pageLooks    *pubsub.Table[types.MetricsLook] // in memory: the page is served by this process

	// What this agent says.
	clusterStatus  pubsub.Writer[types.EdgeNodeClusterStatus]
	appStatus      pubsub.Writer[types.ENClusterAppStatus]
	appRepair      pubsub.Writer[types.AppRepairStatus]
	appConsole     pubsub.Writer[types.AppConsoleStatus]
	memberOf       pubsub.Writer[types.ClusterMembership]
	peers          pubsub.Writer[types.ClusterPeers]
	without        pubsub.Writer[types.WithoutCluster]
	members        pubsub.Writer[types.ClusterMembers]
	membersJournal pubsub.Writer[types.ClusterMembersJournal]
	drainStatus    pubsub.Writer[types.NodeDrainStatus]
	drainProgress  pubsub.Writer[types.NodeDrainProgress]
	drainJournal   pubsub.Writer[types.NodeDrainJournal]
	known          *pubsub.Table[types.KnownNode] // in memory, where renewals are the newest
	knownJournal   pubsub.Writer[types.KnownNode]
	clusterInfo    pubsub.Writer[types.KubeClusterInfo]
	reportHealth   pubsub.Writer[types.KubeReportHealth]
	userServices   pubsub.Writer[types.KubeUserServices]
	nodeConditions pubsub.Writer[types.KubeNodeConditions]
	storageStatus  pubsub.Writer[types.KubeStorageStatus]
	nodeMetrics    pubsub.Writer[types.KubeNodeMetrics]
	clusterMetrics pubsub.Writer[types.KubeClusterMetrics]
	leaderInfo     pubsub.Writer[types.KubeLeaderElectInfo]
	beat           pubsub.Writer[types.WatchdogBeat]
	updateStatus   pubsub.Writer[types.KubeClusterUpdateStatus]
	kubeConfig     pubsub.Writer[types.KubeConfig]
	k3sVersion     pubsub.Writer[types.K3sVersionStatus]
	cipherBlocks   pubsub.Writer[types.CipherBlockStatus]
	cipherMetrics  pubsub.Writer[types.CipherMetrics]
}

func makeTopics(root string, log logrus.FieldLogger) topics {
	bus, pageLooks := pubsub.NewBus(root, log), &pubsub.Table[types.MetricsLook]{}
	return topics{
		bus: bus,

		clusterConfig:   pubsub.NewSubscription[types.EdgeNodeClusterConfig](bus, "zedagent"),
		appConfigs:      pubsub.NewSubscription[types.AppInstanceConfig](bus, "zedagent"),
		settings:        pubsub.NewSubscription[types.ConfigItemValueMap](bus, "zedagent"),
		deviceOp:        pubsub.NewSubscription[types.NodeDrainRequest](bus, "zedagent"),
		update:          pubsub.NewSubscription[types.NodeDrainRequest](bus, "baseosmgr"),
		ports:           pubsub.NewSubscription[types.DeviceNetworkStatus](bus, "nim"),
		info:            pubsub.NewSubscription[types.EdgeNodeInfo](bus, "zedagent"),
		zedagent:        pubsub.NewSubscription[types.ZedAgentStatus](bus, "zedagent"),
		controllerCerts: pubsub.NewSubscription[types.ControllerCert](bus, "zedagent"),
		deviceCerts:     pubsub.NewSubscription[types.EdgeNodeCert](bus, "tpmmgr", pubsub.Persistent()),
		adapters:        pubsub.NewSubscription[types.AssignableAdapters](bus, "domainmgr"),
		nodeagent:       pubsub.NewSubscription[types.NodeAgentStatus](bus, "nodeagent"),
		echo:            pubsub.NewSubscription[types.WatchdogBeat](bus, device.Self, pubsub.SocketOnly()),

		reported:     pubsub.NewSubscription[types.KubeClusterUpdateStatus](bus, device.CommandAgent),
		operator:     pubsub.NewSubscription[types.NodeDrainRequest](bus, device.CommandAgent),
		leaveRequest: pubsub.NewSubscription[types.ClusterLeaveRequest](bus, device.CommandAgent),
		detach:       pubsub.NewSubscription[types.AppDetachRequest](bus, device.CommandAgent),
		k3sRelease:   pubsub.NewSubscription[types.K3sReleaseRequest](bus, device.CommandAgent),
		looks:        pubsub.Joined[types.MetricsLook]{Source: pubsub.NewSubscription[types.MetricsLook](bus, device.CommandAgent), Here: pageLooks, Name: "page.Looks"},
		pageLooks:    pageLooks,

		clusterStatus:  pubsub.NewPublication[types.EdgeNodeClusterStatus](bus, device.Self),
		appStatus:      pubsub.NewPublication[types.ENClusterAppStatus](bus, device.Self),
		appRepair:      pubsub.NewPublication[types.AppRepairStatus](bus, device.Self),
		appConsole:     pubsub.NewPublication[types.AppConsoleStatus](bus, device.Self),
		memberOf:       pubsub.NewPublication[types.ClusterMembership](bus, device.Self, pubsub.Persistent()),
		peers:          pubsub.NewPublication[types.ClusterPeers](bus, device.Self, pubsub.Persistent()),
		without:        pubsub.NewPublication[types.WithoutCluster](bus, device.Self),
		members:        pubsub.NewPublication[types.ClusterMembers](bus, device.Self),
		membersJournal: pubsub.NewPublication[types.ClusterMembersJournal](bus, device.Self, pubsub.Persistent()),
		drainStatus:    pubsub.NewPublication[types.NodeDrainStatus](bus, device.Self),
		drainProgress:  pubsub.NewPublication[types.NodeDrainProgress](bus, device.Self),
		drainJournal:   pubsub.NewPublication[types.NodeDrainJournal](bus, device.Self, pubsub.Persistent()),
		known:          &pubsub.Table[types.KnownNode]{},
		knownJournal:   pubsub.NewPublication[types.KnownNode](bus, device.Self, pubsub.Persistent()),
		clusterInfo:    pubsub.NewPacedPublication(bus, device.Self, clusterinfo.Pause),
		reportHealth:   pubsub.NewPublication[types.KubeReportHealth](bus, device.Self),
		userServices:   pubsub.NewPublication[types.KubeUserServices](bus, device.Self),
		nodeConditions: pubsub.NewPublication[types.KubeNodeConditions](bus, device.Self, pubsub.Persistent()),
		storageStatus:  pubsub.NewPublication[types.KubeStorageStatus](bus, device.Self),
		nodeMetrics:    pubsub.NewPublication[types.KubeNodeMetrics](bus, device.Self),
		clusterMetrics: pubsub.NewPublication[types.KubeClusterMetrics](bus, device.Self),
		leaderInfo:     pubsub.NewPublication[types.KubeLeaderElectInfo](bus, device.Self),
		beat:           pubsub.NewPublication[types.WatchdogBeat](bus, device.Self),
		updateStatus:   pubsub.NewPublication[types.KubeClusterUpdateStatus](bus, "zedagent", pubsub.Persistent()),
		kubeConfig:     pubsub.NewPublication[types.KubeConfig](bus, device.Self, pubsub.Persistent()),
		k3sVersion:     pubsub.NewPublication[types.K3sVersionStatus](bus, device.Self),
		cipherBlocks:   pubsub.NewPublication[types.CipherBlockStatus](bus, device.Self),
		cipherMetrics:  pubsub.NewPublication[types.CipherMetrics](bus, device.Self),
	}
}
