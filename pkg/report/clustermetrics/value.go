package clustermetrics

import (
	"cmp"
	"slices"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// value is what is published of what is known.
func value(f facts, entries map[string]entry) types.KubeClusterMetrics {
	var out types.KubeClusterMetrics
	for name, e := range entries {
		node := f.nodes[name]
		switch {
		case node.Ready != types.ConditionTrue:
			e.metrics.Stale = "the node is not Ready"
		case !f.seen:
			e.metrics.Stale = "the API server does not answer"
		case e.metrics.At.IsZero() && e.metrics.Stale == "":
			e.metrics.Stale = "not requested yet"
		}
		out.Nodes = append(out.Nodes, sized(e.metrics, node))
		add(&out, name, e.apps)
	}
	if f.own != "" {
		m := types.ClusterNodeMetrics{Name: f.own, At: f.metrics.At, Stale: short(f.metrics.Stale), CPU: f.metrics.Metrics.CPU, Memory: f.metrics.Metrics.MemoryWorking}
		if m.At.IsZero() && m.Stale == "" {
			m.Stale = "not requested yet"
		}
		out.Nodes = append(out.Nodes, sized(m, f.nodes[f.own]))
		add(&out, f.own, f.apps)
	}
	slices.SortFunc(out.Nodes, func(a, b types.ClusterNodeMetrics) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Apps, byName)
	slices.SortFunc(out.VMIs, byName)
	cut := 0
	out.Nodes, cut = pubsub.FitLarge(out.Nodes)
	out.Truncated += cut
	out.Apps, cut = pubsub.FitLarge(out.Apps)
	out.Truncated += cut
	out.VMIs, cut = pubsub.FitLarge(out.VMIs)
	out.Truncated += cut
	return out
}

// sized adds how large the node is.
func sized(m types.ClusterNodeMetrics, node types.Node) types.ClusterNodeMetrics {
	m.Cores = node.Cores
	if node.Memory > 0 {
		total := uint64(node.Memory)
		m.Total = &total
	}
	return m
}

func add(out *types.KubeClusterMetrics, node string, apps []app) {
	for _, a := range apps {
		m := types.ClusterAppMetrics{Name: a.name, App: a.of, Node: node, CPU: a.cpu, Memory: a.mem}
		if a.vmi {
			out.VMIs = append(out.VMIs, m)
		} else {
			out.Apps = append(out.Apps, m)
		}
	}
}

func byName(a, b types.ClusterAppMetrics) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node))
}
