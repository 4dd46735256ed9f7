package main

import (
	"context"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/apps"
	"github.com/zedkube/zedkube/pkg/clusterinfo"
	"github.com/zedkube/zedkube/pkg/clusterstatus"
	"github.com/zedkube/zedkube/pkg/drain"
	"github.com/zedkube/zedkube/pkg/leader"
	"github.com/zedkube/zedkube/pkg/loglevel"
	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pkg/membership"
	"github.com/zedkube/zedkube/pkg/statusserver"
	"github.com/zedkube/zedkube/pkg/updatestatus"
	"github.com/zedkube/zedkube/pkg/watchdog"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// component is one behaviour of the agent. Run returns when ctx is done.
type component interface{ Run(ctx context.Context) }

// self is the name of this agent in pubsub.
const self = "zedkube"

// wire is the map of the daemon: each topic is made once, and each component
// shows in its fields what it reads and what it writes.
func wire(p paths, log *logrus.Logger) (*pubsub.Bus, map[string]component) {
	bus := pubsub.NewBus(p.root, log)

	// What other agents say.
	clusterConfig := pubsub.NewSubscription[types.EdgeNodeClusterConfig](bus, "zedagent")
	appConfigs := pubsub.NewSubscription[types.AppInstanceConfig](bus, "zedagent")
	settings := pubsub.NewSubscription[types.ConfigItemValueMap](bus, "zedagent")
	deviceOp := pubsub.NewSubscription[types.NodeDrainRequest](bus, "zedagent")
	update := pubsub.NewSubscription[types.NodeDrainRequest](bus, "baseosmgr")
	ports := pubsub.NewSubscription[types.DeviceNetworkStatus](bus, "nim")
	info := pubsub.NewSubscription[types.EdgeNodeInfo](bus, "zedagent")
	zedagent := pubsub.NewSubscription[types.ZedAgentStatus](bus, "zedagent")
	echo := pubsub.NewSubscription[types.WatchdogBeat](bus, self, pubsub.SocketOnly())

	// What commands at the device ask for.
	reported := pubsub.NewSubscription[types.KubeClusterUpdateStatus](bus, commandAgent)
	operator := pubsub.NewSubscription[types.NodeDrainRequest](bus, commandAgent)
	leaveRequest := pubsub.NewSubscription[types.ClusterLeaveRequest](bus, commandAgent)

	// What this agent says. The topics without a component have their sockets
	// all the same: consumers connect to them at boot.
	clusterStatus := pubsub.NewPublication[types.EdgeNodeClusterStatus](bus, self)
	appStatus := pubsub.NewPublication[types.ENClusterAppStatus](bus, self)
	memberOf := pubsub.NewPublication[types.ClusterMembership](bus, self, pubsub.Persistent())
	drainStatus := pubsub.NewPublication[types.NodeDrainStatus](bus, self)
	drainProgress := pubsub.NewPublication[types.NodeDrainProgress](bus, self)
	drainJournal := pubsub.NewPublication[types.NodeDrainJournal](bus, self, pubsub.Persistent())
	clusterInfo := pubsub.NewPublication[types.KubeClusterInfo](bus, self)
	leaderInfo := pubsub.NewPublication[types.KubeLeaderElectInfo](bus, self)
	beat := pubsub.NewPublication[types.WatchdogBeat](bus, self)
	updateStatus := pubsub.NewPublication[types.KubeClusterUpdateStatus](bus, "zedagent", pubsub.Persistent())
	pubsub.NewPublication[types.KubeUserServices](bus, self)
	pubsub.NewPublication[types.KubeConfig](bus, self, pubsub.Persistent())
	pubsub.NewPublication[types.CipherBlockStatus](bus, self)
	pubsub.NewPublication[types.CipherMetrics](bus, self)

	// What the cluster looks like.
	nodes, api := &pubsub.Table[types.Node]{}, &pubsub.Table[types.APIStatus]{}
	appPods, nodePods, allPods := &pubsub.Table[types.Pod]{}, &pubsub.Table[types.Pod]{}, &pubsub.Table[types.Pod]{}

	pulses := map[string]*loop.Pulse{
		"clusterstatus": {}, "statusserver": {}, "drain": {}, "leader": {}, "apps": {}, "clusterinfo": {}, "loglevel": {},
		"updatestatus": {}, "membership": {},
	}
	as := func(name string) logrus.FieldLogger { return log.WithField("component", name) }

	kube := &kubeapi.Client{
		Log: as("kubeapi"), Kubeconfig: p.kubeconfig,
		Info: info, Leader: leaderInfo,
		Nodes: nodes, AppPods: appPods, NodePods: nodePods, AllPods: allPods, API: api,
	}
	return bus, map[string]component{
		"kubeapi": kube,
		"clusterstatus": &clusterstatus.Component{
			Log: as("clusterstatus"), Pulse: pulses["clusterstatus"],
			Config: clusterConfig, Membership: memberOf, Ports: ports,
			Status: clusterStatus,
		},
		"membership": &membership.Component{
			Log: as("membership"), Pulse: pulses["membership"],
			Config: clusterConfig, Agent: zedagent, Settings: settings, Info: info, Nodes: nodes, API: api,
			Leave: leaveRequest, Progress: drainProgress, Journal: drainJournal,
			Kube: kube, Version: version, Hour: p.hour, Uptime: uptime,
			Membership: memberOf,
		},
		"statusserver": &statusserver.Component{
			Log: as("statusserver"), Pulse: pulses["statusserver"],
			Status: clusterStatus, Nodes: nodes, API: api, Info: info,
		},
		"drain": &drain.Component{
			Log: as("drain"), Pulse: pulses["drain"],
			DeviceOp: deviceOp, Update: update, Operator: operator,
			Config: clusterConfig, Membership: memberOf, Settings: settings, Info: info,
			Nodes: nodes, NodePods: nodePods, API: api,
			ForceFiles: p.forceDrain, FaultMarker: p.faultInjection,
			Kube: kube, BootID: p.boot, Uptime: uptime, Hour: p.hour,
			Status: drainStatus, Progress: drainProgress, Journal: drainJournal,
		},
		"leader": &leader.Component{
			Log: as("leader"), Pulse: pulses["leader"],
			Agent: zedagent, Info: info, Nodes: nodes, API: api,
			Leader: leaderInfo,
			Kube:   kube,
		},
		"apps": &apps.Component{
			Log: as("apps"), Pulse: pulses["apps"],
			Configs: appConfigs, Nodes: nodes, AppPods: appPods, API: api, Info: info,
			Status: appStatus,
		},
		"clusterinfo": &clusterinfo.Component{
			Log: as("clusterinfo"), Pulse: pulses["clusterinfo"],
			Leader: leaderInfo, Nodes: nodes, AppPods: appPods, AllPods: allPods, API: api,
			Report: clusterInfo,
		},
		"loglevel": &loglevel.Component{
			Log: as("loglevel"), Pulse: pulses["loglevel"],
			Settings: settings,
			Logger:   log,
		},
		"updatestatus": &updatestatus.Component{
			Log: as("updatestatus"), Pulse: pulses["updatestatus"],
			Reported: reported,
			Status:   updateStatus,
		},
		"watchdog": &watchdog.Component{
			Log:  as("watchdog"),
			Echo: echo, Pulses: pulses,
			Beat:      beat,
			TouchFile: p.touch,
		},
	}
}
