package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/loglevel"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/watchdog"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/clusterstatus"
	"github.com/zedkube/zedkube/pkg/cluster/clustertoken"
	"github.com/zedkube/zedkube/pkg/cluster/k3scerts"
	"github.com/zedkube/zedkube/pkg/cluster/k3sconfig"
	"github.com/zedkube/zedkube/pkg/cluster/k3supdate"
	"github.com/zedkube/zedkube/pkg/cluster/leader"
	"github.com/zedkube/zedkube/pkg/cluster/members"
	"github.com/zedkube/zedkube/pkg/cluster/membership"
	"github.com/zedkube/zedkube/pkg/cluster/peers"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/cluster/witness"
	"github.com/zedkube/zedkube/pkg/operate/actions"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/clusterobject"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/kubeconfigs"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/operate/metrics"
	"github.com/zedkube/zedkube/pkg/operate/operator"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/operate/page"
	"github.com/zedkube/zedkube/pkg/report/clusterinfo"
	"github.com/zedkube/zedkube/pkg/report/clustermetrics"
	"github.com/zedkube/zedkube/pkg/report/conditions"
	"github.com/zedkube/zedkube/pkg/report/edgemetrics"
	"github.com/zedkube/zedkube/pkg/report/nodemetrics"
	"github.com/zedkube/zedkube/pkg/report/services"
	"github.com/zedkube/zedkube/pkg/report/updatestatus"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
	"github.com/zedkube/zedkube/pkg/workload/apps"
	"github.com/zedkube/zedkube/pkg/workload/console"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/pkg/workload/mounts"
	"github.com/zedkube/zedkube/pkg/workload/names"
	"github.com/zedkube/zedkube/pkg/workload/networks"
	"github.com/zedkube/zedkube/pkg/workload/passthrough"
	"github.com/zedkube/zedkube/pkg/workload/podnetworks"
	"github.com/zedkube/zedkube/pkg/workload/sriov"
	"github.com/zedkube/zedkube/pkg/workload/storage"
	"github.com/zedkube/zedkube/pkg/workload/workloads"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// component is one behaviour of the agent. Run returns when ctx is done.
type component interface{ Run(ctx context.Context) }

// wire is the map of the daemon: each component shows in its fields what it
// reads and what it writes. The lines of applications go to out. What the page has begun ends with ctx.
func wire(ctx context.Context, p device.Paths, log *logrus.Logger, out io.Writer) (*pubsub.Bus, map[string]component) {
	bus := pubsub.NewBus(p.Root, log)

	// Topics of other agents.
	clusterConfig := pubsub.NewSubscription[types.EdgeNodeClusterConfig](bus, "zedagent")
	appConfigs := pubsub.NewSubscription[types.AppInstanceConfig](bus, "zedagent")
	settings := pubsub.NewSubscription[types.ConfigItemValueMap](bus, "zedagent")
	deviceOp := pubsub.NewSubscription[types.NodeDrainRequest](bus, "zedagent")
	update := pubsub.NewSubscription[types.NodeDrainRequest](bus, "baseosmgr")
	ports := pubsub.NewSubscription[types.DeviceNetworkStatus](bus, "nim")
	info := pubsub.NewSubscription[types.EdgeNodeInfo](bus, "zedagent")
	zedagent := pubsub.NewSubscription[types.ZedAgentStatus](bus, "zedagent")
	controllerCerts := pubsub.NewSubscription[types.ControllerCert](bus, "zedagent")
	deviceCerts := pubsub.NewSubscription[types.EdgeNodeCert](bus, "tpmmgr", pubsub.Persistent())
	adapters := pubsub.NewSubscription[types.AssignableAdapters](bus, "domainmgr")
	nodeagent := pubsub.NewSubscription[types.NodeAgentStatus](bus, "nodeagent")
	appNetworkStatus := pubsub.NewSubscription[types.AppNetworkStatus](bus, "zedrouter")
	networkStatus := pubsub.NewSubscription[types.NetworkInstanceStatus](bus, "zedrouter")
	kubeInit := pubsub.NewSubscription[types.KubeInitStatus](bus, "kube-init")
	echo := pubsub.NewSubscription[types.WatchdogBeat](bus, device.Self, pubsub.SocketOnly())

	// Topics in which commands at the device leave requests.
	reported := pubsub.NewSubscription[types.KubeClusterUpdateStatus](bus, device.CommandAgent, pubsub.FilesOnly())
	drainRequest := pubsub.NewSubscription[types.NodeDrainRequest](bus, device.CommandAgent, pubsub.FilesOnly())
	leaveRequest := pubsub.NewSubscription[types.ClusterLeaveRequest](bus, device.CommandAgent, pubsub.FilesOnly())
	detach := pubsub.NewSubscription[types.AppDetachRequest](bus, device.CommandAgent, pubsub.FilesOnly())
	k3sRelease := pubsub.NewSubscription[types.K3sReleaseRequest](bus, device.CommandAgent, pubsub.FilesOnly())
	k3sRetry := pubsub.NewSubscription[types.K3sRetryRequest](bus, device.CommandAgent, pubsub.FilesOnly())
	k3sRollback := pubsub.NewSubscription[types.K3sRollbackRequest](bus, device.CommandAgent, pubsub.FilesOnly())
	workloadsRequest := pubsub.NewSubscription[types.WorkloadsRequest](bus, device.CommandAgent, pubsub.FilesOnly())
	certsReset := pubsub.NewSubscription[types.CertsResetRequest](bus, device.CommandAgent, pubsub.FilesOnly())
	pageLooks := &pubsub.Table[types.MetricsLook]{} // in memory: the page is served by this process
	looks := pubsub.Joined[types.MetricsLook]{Source: pubsub.NewSubscription[types.MetricsLook](bus, device.CommandAgent, pubsub.FilesOnly()), Here: pageLooks, Name: "page.Looks"}

	// Topics of this agent; each is made once, here.
	clusterStatus := pubsub.NewPublication[types.EdgeNodeClusterStatus](bus, device.Self)
	appStatus := pubsub.NewPublication[types.ENClusterAppStatus](bus, device.Self)
	appRepair := pubsub.NewPublication[types.AppRepairStatus](bus, device.Self)
	mountRecovery := pubsub.NewPublication[types.MountRecovery](bus, device.Self, pubsub.Persistent())
	appConsole := pubsub.NewPublication[types.AppConsoleStatus](bus, device.Self)
	memberOf := pubsub.NewPublication[types.ClusterMembership](bus, device.Self, pubsub.Persistent())
	clusterPeers := pubsub.NewPublication[types.ClusterPeers](bus, device.Self, pubsub.Persistent())
	without := pubsub.NewPublication[types.WithoutCluster](bus, device.Self)
	clusterMembers := pubsub.NewPublication[types.ClusterMembers](bus, device.Self)
	membersJournal := pubsub.NewPublication[types.ClusterMembersJournal](bus, device.Self, pubsub.Persistent())
	drainStatus := pubsub.NewPublication[types.NodeDrainStatus](bus, device.Self)
	drainProgress := pubsub.NewPublication[types.NodeDrainProgress](bus, device.Self)
	drainJournal := pubsub.NewPublication[types.NodeDrainJournal](bus, device.Self, pubsub.Persistent())
	known := &pubsub.Table[types.KnownNode]{} // in memory, where renewals are the newest
	knownJournal := pubsub.NewPublication[types.KnownNode](bus, device.Self, pubsub.Persistent())
	clusterInfo := pubsub.NewPacedPublication(bus, device.Self, clusterinfo.Pause)
	reportHealth := pubsub.NewPublication[types.KubeReportHealth](bus, device.Self)
	userServices := pubsub.NewPublication[types.KubeUserServices](bus, device.Self)
	nodeConditions := pubsub.NewPublication[types.KubeNodeConditions](bus, device.Self, pubsub.Persistent())
	nodeStatus := pubsub.NewPublication[types.ClusterNodeStatus](bus, device.Self)
	storageStatus := pubsub.NewPublication[types.KubeStorageStatus](bus, device.Self)
	nodeMetrics := pubsub.NewPublication[types.KubeNodeMetrics](bus, device.Self)
	keptMetrics := &pubsub.Table[types.KubeNodeMetrics]{} // in memory: the samples that the topic leaves out
	edgeMetrics := &pubsub.Table[types.KubeNodeMetrics]{} // in memory: of edge nodes, which no report has
	clusterMetrics := pubsub.NewPublication[types.KubeClusterMetrics](bus, device.Self)
	leaderInfo := pubsub.NewPublication[types.KubeLeaderElectInfo](bus, device.Self)
	beat := pubsub.NewPublication[types.WatchdogBeat](bus, device.Self)
	clusterObject := pubsub.NewPublication[types.ClusterObject](bus, device.Self, pubsub.Persistent())
	updateStatus := pubsub.NewPublication[types.KubeClusterUpdateStatus](bus, "zedagent", pubsub.Persistent())
	kubeConfig := pubsub.NewPublication[types.KubeConfig](bus, device.Self, pubsub.Persistent())
	k3sVersion := pubsub.NewPublication[types.K3sVersionStatus](bus, device.Self)
	k3sCerts := pubsub.NewPublication[types.K3sCertificates](bus, device.Self, pubsub.Persistent())
	lifecycle := pubsub.NewPublication[types.KubeLifecycle](bus, device.Self)
	lifecycleJournal := pubsub.NewPublication[types.KubeLifecycleJournal](bus, device.Self, pubsub.Persistent())
	k3sOverride := pubsub.NewPublication[types.K3sOverrideStatus](bus, device.Self)
	cipherBlocks := pubsub.NewPublication[types.CipherBlockStatus](bus, device.Self)
	cipherMetrics := pubsub.NewPublication[types.CipherMetrics](bus, device.Self)
	appNetworks := pubsub.NewPublication[types.AppNetworkConfig](bus, device.Self)
	podMarkers := pubsub.NewPublication[types.PodMarkers](bus, device.Self, pubsub.Persistent())
	workloadsStatus := pubsub.NewPublication[types.WorkloadsStatus](bus, device.Self, pubsub.Persistent())
	token := &pubsub.Table[types.ClusterToken]{} // in memory: it is a secret

	pulses := map[string]*loop.Pulse{
		"clusterstatus": {}, "statusserver": {}, "drain": {}, "leader": {}, "apps": {}, "clusterinfo": {}, "loglevel": {},
		"kubeapi": {}, "updatestatus": {}, "membership": {}, "members": {}, "peers": {}, "clustertoken": {}, "k3sconfig": {},
		"services": {}, "storage": {}, "conditions": {}, "nodemetrics": {}, "clustermetrics": {}, "edgemetrics": {},
		"applogs": {}, "witness": {}, "console": {}, "passthrough": {}, "sriov": {}, "localserver": {}, "audit": {},
		"networks": {}, "podnetworks": {}, "names": {}, "mounts": {}, "kubeconfigs": {}, "k3scerts": {}, "clusterobject": {}, "k3supdate": {}, "workloads": {},
	}
	as := func(name string) logrus.FieldLogger { return log.WithField("component", name) }

	trail := &audit.Record{Log: as("audit"), Info: info, Dir: p.Audit, Segment: audit.DefaultSegment}
	requests, record := metrics.NewRequests(), metrics.NewOperations(trail)
	nodes := &pubsub.Table[types.Node]{}
	// For those who do not look at Witness, which ten nodes change every five seconds while one is lost.
	nodesButWitness := nodes.Filter("kubeapi.Nodes", types.Node.SameButWitness)
	kube := kubeapi.New(kubeapi.Config{
		Log: as("kubeapi"), Pulse: pulses["kubeapi"], Kubeconfig: p.Kubeconfig, Requests: requests, Operations: record, Uptime: device.Uptime,
		Info: info, Leader: leaderInfo, Membership: memberOf,
		Nodes: nodes, API: &pubsub.Table[types.APIStatus]{}, Leases: &pubsub.Table[types.Lease]{},
		AppPods: &pubsub.Table[types.Pod]{}, NodePods: &pubsub.Table[types.Pod]{}, VMIs: &pubsub.Table[types.VMI]{}, Sets: &pubsub.Table[types.AppSet]{},
		Machines: &pubsub.Table[types.VirtualMachine]{}, Disabled: &pubsub.Table[types.DisabledWorkloads]{},
		Credentials: &pubsub.Table[types.Credentials]{}, Clocks: &pubsub.Table[types.NodeClock]{},
		Tables: &pubsub.Table[types.TableStatus]{}, Services: &pubsub.Table[types.Service]{}, Ingresses: &pubsub.Table[types.Ingress]{},
		KubeVIP: &pubsub.Table[types.KubeVIP]{}, CDI: &pubsub.Table[types.DeployedVersion]{}, OwnDisks: &pubsub.Table[types.LonghornNode]{},
		PodCounts: &pubsub.Table[types.KubePodNameSpaceInfo]{}, Claims: &pubsub.Table[types.Claim]{}, Volumes: &pubsub.Table[types.Volume]{},
		LonghornNodes: &pubsub.Table[types.LonghornNode]{}, Daemons: &pubsub.Table[types.DaemonSet]{},
		OwnAttachments: &pubsub.Table[types.Attachment]{}, OwnVolumes: &pubsub.Table[types.Volume]{}, Mounts: mountRecovery,
		Settings: &pubsub.Table[types.LonghornSetting]{}, SnapshotJobs: &pubsub.Table[types.SnapshotJob]{},
		Allocations: &pubsub.Table[types.NetworkAllocations]{}, DNSServer: &pubsub.Table[types.DNSServer]{}, DNSRollout: &pubsub.Table[types.DNSRollout]{},
		Issued: &pubsub.Table[types.IssuedKubeconfig]{}, EdgeNodes: &pubsub.Table[types.Node]{},
	})

	k3s := k3sprocess.K3s{
		PID: p.In(k3sprocess.DefaultPID), Proc: p.Proc, Socket: p.In(k3sprocess.DefaultSocket), Marker: p.In(k3sprocess.DefaultMarker),
	}

	// What the reports share.
	sections, former := &pubsub.Table[types.ReportSection]{}, device.FormerReports(p)

	// What the local server answers.
	live := overview.Live{Root: p.Root, Node: kube.Nodes, Edge: kube.EdgeNodes, EdgeMetrics: edgeMetrics, Info: info, API: kube.API}
	judged := overview.Shared(health.Judged(live.Overview))
	numbers := &metrics.Metrics{
		Version: p.Version, Lease: kubeapi.StatsLease, Pulses: pulses, Bus: bus, Requests: requests, Operations: record,
		Info: info, Nodes: kube.Nodes, API: kube.API, Leases: kube.Leases,
		Leader: leaderInfo, Progress: drainProgress, Health: reportHealth, Conditions: nodeConditions, Lifecycle: lifecycle,
		Object: clusterObject, Overview: judged(5 * time.Second),
	}
	trails := &page.Trails{Dir: p.Audit}
	shown := &page.Page{
		Log: as("page"), Overview: judged(time.Second / 2),
		Metrics: keptMetrics, Configs: appConfigs, AppPods: kube.AppPods, Kube: kube,
		Audit: trails.Answer, Requests: requests.Total, Looks: pageLooks,
	}
	teller := (&clusterview.Teller{Version: p.Version, Overview: shown.Overview, Operations: trails.Newest, Status: clusterStatus}).Ready()
	joins := &statusserver.Component{
		Log: as("statusserver"), Pulse: pulses["statusserver"],
		Status: clusterStatus, Nodes: nodesButWitness, EdgeNodes: kube.EdgeNodes, API: kube.API, Info: info,
		TopicDirs: []string{p.In(types.PathTopics), p.In(types.PathKeptTopics)}, InstallLog: p.In("/persist/kubelog/k3s-install.log"),
		Overview: teller.Tell,
		Version:  p.Version, Reports: p.Reports, ProversFile: p.In("/persist/zedkube/all-prove"),
		PeersFile: p.In(clusterauth.MemoryFile), Operations: record,
	}
	routes := shown.Routes()
	routes[clusterauth.FormerPath] = localserver.Route{Handler: joins.Former()}
	routes["/metrics"] = localserver.Route{Handler: numbers.Handler(), Access: localserver.Always, Apart: true}
	viewer := (&clusterview.Viewer{Own: teller, Nodes: live.Nodes, Ask: joins.AskOverview, Status: clusterStatus}).Ready()
	routes[clusterview.Path] = localserver.Route{Handler: viewer, Access: localserver.WithToken, Stream: true}
	routes[overview.NodesPath] = localserver.Route{Handler: live, Access: localserver.WithToken}
	requested := &operator.Handler{Root: p.Root, Operations: record, Topics: device.OperatorTopics()}
	routes[nodemetrics.Path] = localserver.Route{Handler: nodemetrics.Handler{Kept: keptMetrics}}
	routes[edgemetrics.Path] = localserver.Route{Handler: edgemetrics.Handler{Kept: edgeMetrics}}
	routes[operator.Path] = localserver.Route{
		Handler: requested,
		Methods: []string{http.MethodPut, http.MethodDelete}, Effect: "a request to the agent is made or withdrawn",
	}
	onPage := &actions.Handler{Agent: ctx, Operations: record, Program: terminal.Program(p.Root), Run: runner(p.Options)}
	routes[actions.Path] = localserver.Route{Handler: http.HandlerFunc(onPage.List), Access: localserver.WithToken}
	routes[actions.Path+"/"] = localserver.Route{
		Handler: onPage,
		Methods: []string{http.MethodGet, http.MethodHead, http.MethodPost}, Effect: "POST: what the command that the action names changes",
	}
	edge := &actions.Edge{Handler: &actions.Handler{Agent: ctx, Operations: record, Program: terminal.Program(p.Root), Run: edgeRunner(p.Options)}}
	routes[actions.EdgePath] = localserver.Route{Handler: http.HandlerFunc(edge.Look), Access: localserver.WithToken}
	routes[actions.EdgePlanPath] = localserver.Route{Handler: http.HandlerFunc(edge.Plan), Methods: []string{http.MethodPost}, Effect: "the plan is remembered, for ten minutes"}
	routes[actions.EdgeDoPath] = localserver.Route{Handler: http.HandlerFunc(edge.Do), Methods: []string{http.MethodPost}, Effect: "what the planned command of zedkube-edge changes"}
	routes[kubeconfigs.Path] = localserver.Route{
		Handler: &kubeconfigs.Handler{Info: info, Nodes: kube.Nodes, Status: clusterStatus, Kube: kube},
		Methods: []string{http.MethodPost}, Effect: "a kubeconfig is issued",
	}
	routes[clusterobject.Path] = localserver.Route{
		Handler: &clusterobject.API{
			Object: clusterObject, Membership: memberOf, Requests: requested, RequestFile: p.TopicFile(device.CommandAgent, "ClusterLeaveRequest"),
			Uptime: device.Uptime,
		},
		Methods: []string{http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodDelete}, Effect: "PATCH and DELETE: a request to leave, or to disable workloads, is made or withdrawn",
	}
	leafFiles := k3supdate.LeafFiles{Dirs: []string{p.In(k3scerts.DefaultDir), p.In(k3scerts.OtherDir)}}
	routes[clusterobject.CertsPath] = localserver.Route{
		Handler: &clusterobject.Certs{Certificates: k3sCerts, Lifecycle: lifecycle, Version: k3sVersion, Requests: requested, Files: leafFiles.Files},
		Methods: []string{http.MethodDelete}, Effect: "a request to renew certificates is made",
	}
	routes[clusterobject.AuditPath] = routes["/api/audit"]
	routes[clusterobject.OpenAPIPath] = localserver.Route{Handler: http.HandlerFunc(clusterobject.ServeOpenAPI)}
	for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace} {
		routes["/debug/pprof/"+path] = localserver.Route{Handler: profile}
	}

	return bus, map[string]component{
		// The window on the cluster, and what watches this process.
		"kubeapi": kube,
		"watchdog": &watchdog.Component{
			Log:  as("watchdog"),
			Echo: echo, Pulses: pulses,
			Beat:      beat,
			TouchFile: p.Touch,
		},
		"loglevel": &loglevel.Component{
			Log: as("loglevel"), Pulse: pulses["loglevel"],
			Settings: settings,
			Logger:   log,
		},

		// The node in its cluster.
		"clustertoken": &clustertoken.Component{
			Log: as("clustertoken"), Pulse: pulses["clustertoken"],
			Membership: memberOf, ControllerCerts: controllerCerts, Operations: record, DeviceCerts: deviceCerts,
			Device: cipher.NewDevice(p.In(cipher.DefaultKeyFile), p.In(cipher.DefaultTPM)), Manifest: p.In(clustertoken.DefaultManifest),
			Token: token, Blocks: cipherBlocks, Metrics: cipherMetrics,
		},
		"clusterstatus": &clusterstatus.Component{
			Log: as("clusterstatus"), Pulse: pulses["clusterstatus"],
			Config: clusterConfig, Membership: memberOf, Token: token, Ports: ports,
			Status: clusterStatus,
		},
		"membership": &membership.Component{
			Log: as("membership"), Pulse: pulses["membership"],
			Config: clusterConfig, Status: clusterStatus, Agent: zedagent, Settings: settings, Info: info, Nodes: nodesButWitness, API: kube.API,
			Leave: leaveRequest, Without: without, Progress: drainProgress, Journal: drainJournal,
			Kube: kube, Requests: requested, Operations: record, Version: p.Version, Hour: p.Hour, Uptime: device.Uptime,
			Membership: memberOf,
		},
		"peers": &peers.Component{
			Log: as("peers"), Pulse: pulses["peers"],
			Request: leaveRequest, Membership: memberOf, Status: clusterStatus, Agent: zedagent, Info: info, Nodes: kube.Nodes, API: kube.API,
			Kube: kube, Dial: (&net.Dialer{}).DialContext, Proc: p.Proc, Sysfs: p.Sysfs, BootID: p.Boot, Uptime: device.Uptime,
			Peers: clusterPeers, Without: without,
		},
		"members": &members.Component{
			Log: as("members"), Pulse: pulses["members"],
			Membership: memberOf, Agent: zedagent, Settings: settings, Info: info, Nodes: nodesButWitness, AppPods: kube.AppPods, Leases: kube.Leases, API: kube.API,
			Kube: kube, Uptime: device.Uptime, Members: clusterMembers, Journal: membersJournal,
		},
		"leader": &leader.Component{
			Log: as("leader"), Pulse: pulses["leader"],
			Agent: zedagent, Info: info, Nodes: nodesButWitness, API: kube.API,
			Leases: kube.Leases, LeaseName: kubeapi.StatsLease,
			Leader: leaderInfo,
			Kube:   kube,
		},
		"witness": &witness.Component{
			Log: as("witness"), Pulse: pulses["witness"],
			Info: info, Membership: memberOf, Nodes: kube.Nodes, AppPods: kube.AppPods, VMIs: kube.VMIs, API: kube.API, Known: known, Journal: knownJournal,
			Kube: kube, Dial: (&net.Dialer{}).DialContext, Ports: []int{types.PortStatus, types.PortKubelet}, Uptime: device.Uptime,
		},
		"k3sconfig": &k3sconfig.Component{
			Log: as("k3sconfig"), Pulse: pulses["k3sconfig"],
			Settings: settings, Lifecycle: lifecycle, Membership: memberOf, Info: info, Nodes: nodesButWitness, BootID: p.Boot,
			OverrideFile: p.In(k3sconfig.DefaultOverrideFile), Operations: record,
			Files:      k3sbinary.Files{VarLib: p.In(k3sbinary.DefaultVarLib), K3s: k3s, Need: k3sbinary.DefaultNeed},
			KubeConfig: kubeConfig, Status: k3sVersion, Override: k3sOverride,
		},
		"k3scerts": &k3scerts.Component{
			Log: as("k3scerts"), Pulse: pulses["k3scerts"],
			Dirs: []string{p.In(k3scerts.DefaultDir), p.In(k3scerts.OtherDir)}, Dial: (&net.Dialer{}).DialContext,
			Info: info, Status: clusterStatus, Agent: zedagent, API: kube.API, Nodes: nodesButWitness, Clocks: kube.Clocks,
			Journal: lifecycleJournal, Operations: record, Certificates: k3sCerts,
		},
		"k3supdate": &k3supdate.Component{
			Log: as("k3supdate"), Pulse: pulses["k3supdate"],
			Version: k3sVersion, Override: k3sOverride, Settings: settings, Release: k3sRelease, Retry: k3sRetry, Rollback: k3sRollback, Info: info, Cluster: clusterStatus, Membership: memberOf,
			Nodes: kube.Nodes, AppPods: kube.AppPods, Leases: kube.Leases, API: kube.API,
			DeviceOp: deviceOp, Update: update, Operator: drainRequest, Drain: drainProgress, Parts: updateStatus, Conditions: nodeConditions, Mounts: mountRecovery,
			Kube: kube, K3s: k3s, Disk: k3supdate.NewDevice(p.In(k3sbinary.DefaultVarLib), k3s, p.Root == ""), Operations: record, Consent: p.Consent, HoldFile: p.In(k3supdate.DefaultHoldFile),
			JournalFile: p.PersistentFile(device.Self, "KubeLifecycleJournal"), BootID: p.Boot, Uptime: device.Uptime, Hour: p.Hour,
			Certificates: k3sCerts, Reset: certsReset, LeafFiles: leafFiles,
			Lifecycle: lifecycle, Journal: lifecycleJournal,
		},
		"statusserver": joins,

		// The workload.
		"drain": &drain.Component{
			Log: as("drain"), Pulse: pulses["drain"],
			DeviceOp: deviceOp, Update: update, Operator: drainRequest, Lifecycle: lifecycle,
			Config: clusterConfig, Membership: memberOf, Settings: settings, Info: info,
			Nodes: kube.Nodes, NodePods: kube.NodePods, Leases: kube.Leases, API: kube.API, Clocks: kube.Clocks, Agent: nodeagent,
			ForceFiles: p.ForceDrain, FaultMarker: p.In(types.PathFaultMarker),
			Markers: []string{p.In(drain.RebootReason), p.In(drain.BootReason), p.In(drain.ScheduledShutdown)},
			Kube:    kube, Operations: record, BootID: p.Boot, Uptime: device.Uptime, Hour: p.Hour,
			Status: drainStatus, Progress: drainProgress, Journal: drainJournal,
		},
		"apps": &apps.Component{
			Log: as("apps"), Pulse: pulses["apps"],
			Configs: appConfigs, Settings: settings, Requests: detach, Info: info, Agent: zedagent,
			Nodes: kube.Nodes, AppPods: kube.AppPods, VMIs: kube.VMIs, Sets: kube.Sets, API: kube.API,
			Kube: kube, BootID: p.Boot, Uptime: device.Uptime,
			Known: known, Mounts: mountRecovery, Off: workloadsStatus, Status: appStatus, Repairs: appRepair,
		},
		"workloads": &workloads.Component{
			Log: as("workloads"), Pulse: pulses["workloads"],
			Request: workloadsRequest, Disabled: kube.Disabled, Info: info, Nodes: nodesButWitness, AppPods: kube.AppPods, VMIs: kube.VMIs,
			Sets: kube.Sets, Machines: kube.Machines, Tables: kube.Tables, API: kube.API,
			Kube: kube, Uptime: device.Uptime,
			Status: workloadsStatus,
		},
		"mounts": &mounts.Component{
			Log: as("mounts"), Pulse: pulses["mounts"],
			Info: info, Nodes: kube.Nodes, AppPods: kube.AppPods, Attachments: kube.OwnAttachments, Volumes: kube.OwnVolumes,
			Leases: kube.Leases, Tables: kube.Tables, API: kube.API,
			DeviceOp: deviceOp, Update: update, Operator: drainRequest, Drain: drainProgress, Membership: memberOf,
			Parts: reported, Version: k3sVersion, Lifecycle: lifecycle,
			K3s:     k3s,
			Devices: p.In(mounts.DefaultDevices), File: p.PersistentFile(device.Self, "MountRecovery"), BootID: p.Boot, Uptime: device.Uptime,
			Kube: kube, Operations: record, Recovery: mountRecovery,
		},
		"applogs": &applogs.Component{
			Log: as("applogs"), Pulse: pulses["applogs"],
			Configs: appConfigs, Info: info, Nodes: nodesButWitness, AppPods: kube.AppPods, API: kube.API,
			Kube: kube, Out: out,
			MaxRecord: p.LogRecord, Streams: applogs.Streams(p.Proc), Rate: applogs.DefaultRate, Burst: applogs.DefaultBurst,
			Journal: p.In(applogs.DefaultJournal), Checkpoints: p.In(applogs.DefaultCheckpoints),
		},
		"console": &console.Component{
			Log: as("console"), Pulse: pulses["console"],
			Configs: appConfigs, Apps: appStatus, Operations: record, Proc: p.Proc,
			File: p.In(console.DefaultFile), OldFile: p.In(console.DefaultOldFile), KubeInit: p.In(console.DefaultKubeInit),
			Status: appConsole,
		},
		"passthrough": &passthrough.Component{
			Log: as("passthrough"), Pulse: pulses["passthrough"],
			Configs: appConfigs, Info: info, Agent: zedagent, Nodes: nodesButWitness, API: kube.API,
			Kube: kube, Links: passthrough.Host{}, Operations: record,
		},
		"networks": &networks.Component{
			Log: as("networks"), Pulse: pulses["networks"],
			Membership: memberOf, Networks: networkStatus, Leader: leaderInfo, API: kube.API,
			Kube: kube,
		},
		"podnetworks": &podnetworks.Component{
			Log: as("podnetworks"), Pulse: pulses["podnetworks"],
			Membership: memberOf, Networks: networkStatus, NodePods: kube.NodePods, API: kube.API, Dir: p.In(podnetworks.DefaultMarkers),
			Configs: appNetworks, Journal: podMarkers,
		},
		"sriov": &sriov.Component{
			Log: as("sriov"), Pulse: pulses["sriov"],
			Adapters: adapters, Info: info, Nodes: nodesButWitness, NodePods: kube.NodePods, API: kube.API,
			Kube: kube, Operations: record, Sysfs: p.Sysfs, BootID: p.Boot,
		},
		"names": &names.Component{
			Log: as("names"), Pulse: pulses["names"],
			Apps: appNetworkStatus, Networks: networkStatus, AppStatus: appStatus,
			Membership: memberOf, Info: info, Leader: leaderInfo, Nodes: nodesButWitness, Tables: kube.Tables,
			Allocations: kube.Allocations, DNSServer: kube.DNSServer, DNSRollout: kube.DNSRollout, Kube: kube,
		},
		"storage": &storage.Component{
			Log: as("storage"), Pulse: pulses["storage"],
			Settings: settings, Info: info, Leader: leaderInfo, Nodes: nodesButWitness, Tables: kube.Tables,
			OwnDisks: kube.OwnDisks, LonghornSettings: kube.Settings, SnapshotJobs: kube.SnapshotJobs,
			Kube: kube, Uptime: device.Uptime,
			Status: storageStatus,
		},

		// The report.
		"clusterinfo": &clusterinfo.Component{
			Log: as("clusterinfo"), Pulse: pulses["clusterinfo"],
			Leader: leaderInfo, Info: info, Membership: memberOf, Members: clusterMembers, Tables: kube.Tables,
			Nodes: nodesButWitness, AppPods: kube.AppPods, VMIs: kube.VMIs, PodCounts: kube.PodCounts, Claims: kube.Claims,
			Volumes: kube.Volumes, Disks: kube.LonghornNodes, Daemons: kube.Daemons, Sections: sections,
			Report: clusterInfo, Health: reportHealth, Former: former,
		},
		"services": &services.Component{
			Log: as("services"), Pulse: pulses["services"],
			Services: kube.Services, Ingresses: kube.Ingresses, KubeVIP: kube.KubeVIP, Tables: kube.Tables, API: kube.API,
			Ports: ports, Cluster: clusterStatus,
			Status: userServices, Sections: sections, Former: former,
		},
		"conditions": &conditions.Component{
			Log: as("conditions"), Pulse: pulses["conditions"],
			Credentials: kube.Credentials, Clocks: kube.Clocks, Nodes: nodesButWitness, NodePods: kube.NodePods, API: kube.API, Tables: kube.Tables,
			Info: info, Membership: memberOf, K3s: k3sVersion, K3sCerts: k3sCerts, Leader: leaderInfo, Health: reportHealth,
			Uptime:     device.Uptime,
			Conditions: nodeConditions, Node: nodeStatus,
		},
		"nodemetrics": &nodemetrics.Component{
			Log: as("nodemetrics"), Pulse: pulses["nodemetrics"],
			Info: info, Nodes: nodesButWitness, Looks: looks,
			Kube: kube, Uptime: device.Uptime,
			Metrics: nodeMetrics, Kept: keptMetrics,
		},
		"clustermetrics": &clustermetrics.Component{
			Log: as("clustermetrics"), Pulse: pulses["clustermetrics"],
			Leader: leaderInfo, Info: info, Nodes: nodesButWitness, AppPods: kube.AppPods, API: kube.API, Own: nodeMetrics,
			Configs: appConfigs, Kube: kube, Uptime: device.Uptime,
			Metrics: clusterMetrics,
		},
		"edgemetrics": &edgemetrics.Component{
			Log: as("edgemetrics"), Pulse: pulses["edgemetrics"],
			Leader: leaderInfo, Nodes: kube.EdgeNodes, Looks: looks, API: kube.API,
			Kube: kube, Uptime: device.Uptime,
			Kept: edgeMetrics,
		},
		"updatestatus": &updatestatus.Component{
			Log: as("updatestatus"), Pulse: pulses["updatestatus"],
			Reported: reported,
			Status:   updateStatus,
		},

		// The people at the device.
		"localserver": &localserver.Component{
			Log: log.WithField("component", "localserver"), Pulse: pulses["localserver"],
			Status: clusterStatus,
			Socket: p.Socket, Address: p.PageAddress(), PageToo: p.PageToo(), TokenFile: p.PageToken, ClusterPort: p.ClusterPort(),
			Routes: routes,
		},
		"kubeconfigs": &kubeconfigs.Component{
			Log: as("kubeconfigs"), Pulse: pulses["kubeconfigs"],
			Issued: kube.Issued, Info: info, Nodes: nodesButWitness, API: kube.API, Kube: kube,
		},
		"clusterobject": &clusterobject.Component{
			Log: as("clusterobject"), Pulse: pulses["clusterobject"],
			Membership: memberOf, Cluster: clusterStatus, Info: info, KubeInit: kubeInit, Update: updateStatus,
			K3s: k3sVersion, Lifecycle: lifecycle, Override: k3sOverride, Conditions: nodeConditions,
			Leave: leaveRequest, Progress: drainProgress, Journal: drainJournal, Peers: clusterPeers, Without: without, Workloads: workloadsStatus,
			Nodes: nodesButWitness, AppPods: kube.AppPods, API: kube.API, CDI: kube.CDI, Dial: (&net.Dialer{}).DialContext, Version: p.Version,
			Object: clusterObject,
		},
		"audit": &audit.Component{
			Log: as("audit"), Pulse: pulses["audit"], Record: trail, Segments: audit.DefaultSegments,
			DeviceOp: deviceOp, Update: update, Operator: drainRequest, Leave: leaveRequest, Detach: detach,
			Lifecycle: lifecycle, Version: k3sVersion, Membership: memberOf, Object: clusterObject, Parts: updateStatus,
		},
	}
}
