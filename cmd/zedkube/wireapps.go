package main

import (
	"io"
	"net"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/cluster/witness"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
	"github.com/zedkube/zedkube/pkg/workload/apps"
	"github.com/zedkube/zedkube/pkg/workload/console"
	"github.com/zedkube/zedkube/pkg/workload/passthrough"
	"github.com/zedkube/zedkube/pkg/workload/sriov"
	"github.com/zedkube/zedkube/types"
)

// wireApps is the part of the map that cares for applications.
func wireApps(p paths, t topics, log *logrus.Logger, out io.Writer, pulses map[string]*loop.Pulse, kube *kubeapi.Client, record types.OperationLog) map[string]component {
	as := func(name string) logrus.FieldLogger { return log.WithField("component", name) }
	return map[string]component{
		"apps": &apps.Component{
			Log: as("apps"), Pulse: pulses["apps"],
			Configs: t.appConfigs, Settings: t.settings, Requests: t.detach, Info: t.info, Agent: t.zedagent,
			Nodes: kube.Nodes, AppPods: kube.AppPods, VMIs: kube.VMIs, Sets: kube.Sets, API: kube.API,
			Kube: kube, Uptime: uptime,
			Known: t.known, Status: t.appStatus, Repairs: t.appRepair,
		},
		"witness": &witness.Component{
			Log: as("witness"), Pulse: pulses["witness"],
			Info: t.info, Nodes: kube.Nodes, AppPods: kube.AppPods, VMIs: kube.VMIs, API: kube.API, Known: t.known, Journal: t.knownJournal,
			Kube: kube, Dial: (&net.Dialer{}).DialContext, Ports: []int{witness.StatusPort, witness.KubeletPort}, Uptime: uptime,
		},
		"applogs": &applogs.Component{
			Log: as("applogs"), Pulse: pulses["applogs"],
			Configs: t.appConfigs, Info: t.info, Nodes: kube.Nodes, AppPods: kube.AppPods, API: kube.API,
			Kube: kube, Out: out,
			MaxRecord: p.logRecord, Streams: applogs.Streams(p.proc), Rate: applogs.DefaultRate, Burst: applogs.DefaultBurst,
			Journal: p.logJournal, Checkpoints: p.logCheckpoints,
		},
		"console": &console.Component{
			Log: as("console"), Pulse: pulses["console"],
			Configs: t.appConfigs, Apps: t.appStatus, Operations: record, File: p.console, OldFile: p.consoleOld, KubeInit: p.kubeInit, Proc: p.proc,
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
			Kube: kube, Operations: record, Sysfs: p.sysfs,
		},
	}
}
