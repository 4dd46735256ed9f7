package metrics

import (
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

var (
	severities  = []types.Severity{types.SeverityBad, types.SeverityWarn}
	appStates   = []string{"running", "not_running", "disabled", "unknown"}
	volumeState = []string{"healthy", "degraded", "last_replica", "faulted", "unknown"}
	nodeStates  = []string{"ready", "not_ready", "unknown"}
)

// problems are what zedkube status shows, by the same rules.
func problems(s sink, found []types.Finding) {
	type key struct {
		name     string
		severity string
	}
	by, each := map[string]int{}, map[key]int{}
	for _, f := range found {
		severity := oneOf(f.Severity, severities)
		by[severity]++
		each[key{text(f.Rule), severity}]++ // a rule's name is one of the program's own
	}
	for _, severity := range append([]types.Severity{other}, severities...) {
		s.gauge("zedkube_problems", "Problems that zedkube status shows on this node.", float64(by[string(severity)]), "severity", string(severity))
	}
	for k, n := range each {
		s.gauge("zedkube_problem", "Problems that zedkube status shows on this node, by name, up to a bound of each.", float64(n), "name", k.name, "severity", k.severity)
	}
}

// cluster counts what there is in the cluster. Only the node that reports does, so that
// nothing is counted twice in a sum over all nodes.
func cluster(s sink, o overview.Overview) {
	if !o.Report.Reports {
		return
	}
	apps, volumes, nodes := map[string]int{}, map[string]int{}, map[string]int{}
	for _, a := range o.Apps.List {
		apps[appState(a, o.Workloads.Off())]++
	}
	for _, v := range o.Storage.Volumes {
		volumes[stateOf(v)]++
	}
	for _, n := range o.Nodes.List {
		nodes[nodeState(n)]++
	}
	for _, state := range appStates {
		s.gauge("zedkube_apps", "Applications of the cluster, by whether they run; disabled ones are not to run.", float64(apps[state]), "state", state)
	}
	for _, state := range volumeState {
		s.gauge("zedkube_volumes", "Replicated volumes of the cluster; last_replica are those with one healthy replica of several.", float64(volumes[state]), "state", state)
	}
	for _, state := range nodeStates {
		s.gauge("zedkube_nodes", "Nodes of the cluster, by their condition Ready.", float64(nodes[state]), "state", state)
	}
}

func appState(a overview.App, off bool) string {
	switch {
	case !a.Activate || off:
		return "disabled"
	case a.Down():
		return "not_running"
	case a.State == types.AppKubeRunning.String():
		return "running"
	}
	return "unknown"
}

func stateOf(v overview.Volume) string {
	switch {
	case v.Robustness == types.StorageVolumeRobustnessFaulted.String():
		return "faulted"
	case v.Last():
		return "last_replica"
	case v.Robustness == types.StorageVolumeRobustnessHealthy.String():
		return "healthy"
	case v.Robustness == types.StorageVolumeRobustnessDegraded.String():
		return "degraded"
	}
	return "unknown"
}

func nodeState(n overview.ClusterNode) string {
	switch n.Status {
	case types.KubeNodeReady.String():
		return "ready"
	case types.KubeNodeNotReady.String(), types.KubeNodeNotReachable.String():
		return "not_ready"
	}
	return "unknown"
}

// ready is whether this node is, as far as the API server says.
func (c collector) ready(s sink) {
	info, _ := c.Info.Get(types.Global)
	node, ok := types.OwnNode(c.Nodes.All(), info)
	if !ok {
		return
	}
	if api, known := c.API.Get(types.Global); known && !api.Answers() {
		return // what was last seen is not so for certain
	}
	s.gauge("zedkube_node_ready", "1 while the Node of this device is Ready; not there while the API server is silent.", boolValue(node.Ready == types.ConditionTrue))
}
