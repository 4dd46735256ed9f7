package main

import (
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/report/clusterinfo"
	"github.com/zedkube/zedkube/pkg/report/clustermetrics"
	"github.com/zedkube/zedkube/pkg/report/conditions"
	"github.com/zedkube/zedkube/pkg/report/nodemetrics"
	"github.com/zedkube/zedkube/pkg/report/services"
	"github.com/zedkube/zedkube/pkg/workload/storage"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// wireReports is the part of the map that reports, and keeps what is reported of
// storage as it is configured.
func wireReports(p paths, t topics, log *logrus.Logger, pulses map[string]*loop.Pulse, kube *kubeapi.Client) map[string]component {
	as := func(name string) logrus.FieldLogger { return log.WithField("component", name) }
	sections := &pubsub.Table[types.ReportSection]{}
	former := formerReports(p)
	return map[string]component{
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
		"storage": &storage.Component{
			Log: as("storage"), Pulse: pulses["storage"],
			Settings: t.settings, Info: t.info, Leader: t.leaderInfo, Nodes: kube.Nodes, Tables: kube.Tables,
			OwnDisks: kube.OwnDisks, LonghornSettings: kube.Settings, SnapshotJobs: kube.SnapshotJobs,
			Kube: kube, Uptime: uptime,
			Status: t.storageStatus,
		},
		"conditions": &conditions.Component{
			Log: as("conditions"), Pulse: pulses["conditions"],
			Credentials: kube.Credentials, Clocks: kube.Clocks, Nodes: kube.Nodes, NodePods: kube.NodePods, API: kube.API, Tables: kube.Tables,
			Info: t.info, Membership: t.memberOf, K3s: t.k3sVersion, Leader: t.leaderInfo, Health: t.reportHealth,
			Uptime:     uptime,
			Conditions: t.nodeConditions,
		},
		"nodemetrics": &nodemetrics.Component{
			Log: as("nodemetrics"), Pulse: pulses["nodemetrics"],
			Info: t.info, Nodes: kube.Nodes, Looks: t.looks,
			Kube: kube, Uptime: uptime,
			Metrics: t.nodeMetrics,
		},
		"clustermetrics": &clustermetrics.Component{
			Log: as("clustermetrics"), Pulse: pulses["clustermetrics"],
			Leader: t.leaderInfo, Info: t.info, Nodes: kube.Nodes, AppPods: kube.AppPods, API: kube.API, Own: t.nodeMetrics,
			Configs: t.appConfigs, Kube: kube, Uptime: uptime,
			Metrics: t.clusterMetrics,
		},
	}
}
