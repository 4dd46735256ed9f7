package main

import (
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/report/clusterinfo"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

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
		looks:        either[types.MetricsLook]{pubsub.NewSubscription[types.MetricsLook](bus, device.CommandAgent), pageLooks},
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
