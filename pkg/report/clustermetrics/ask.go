package clustermetrics

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// atOnce and perSecond bound the requests, which the API server hands on.
	atOnce    = 4
	perSecond = 4
	// askTimeout is for one of them.
	askTimeout = 10 * time.Second
	// roundTimeout is for a whole round of which every kubelet hangs.
	roundTimeout = (batch/atOnce + 1) * askTimeout

	// launcher begins the names of the pods that virtual machines run in.
	launcher = "virt-launcher-"
)

// answer is what came of asking one node.
type answer struct {
	node string
	at   time.Time // the wall clock
	cpu  *uint64
	mem  *uint64
	apps []app
	err  error
}

// app is a pod of an application, or a virtual machine.
type app struct {
	name string
	of   string // the name of the application, "" for unknown
	vmi  bool
	cpu  *uint64
	mem  *uint64
}

// ask asks the nodes in turn, and leaves out those whose turn did not come.
func (c *Component) ask(ctx context.Context, nodes []string) []answer {
	if c.pace == nil {
		c.pace = rate.NewLimiter(perSecond, 1)
	}
	owners := types.NewAppOwners(c.Configs.All())
	answers := make([]answer, len(nodes))
	var all errgroup.Group
	all.SetLimit(atOnce)
	asked := 0
	for ; asked < len(nodes) && c.pace.Wait(ctx) == nil; asked++ {
		i := asked
		all.Go(func() error {
			answers[i] = c.askNode(ctx, nodes[i], owners)
			return nil
		})
	}
	_ = all.Wait() // nobody fails
	return answers[:asked]
}

func (c *Component) askNode(ctx context.Context, node string, owners types.AppOwners) answer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	stats, err := c.Kube.NodeStats(ctx, node)
	a := answer{node: node, at: time.Now().UTC(), cpu: stats.Node.CPU, mem: stats.Node.MemoryWorking, err: err}
	for _, p := range stats.Pods {
		if p.Namespace == types.NamespaceApps {
			a.apps = append(a.apps, c.app(p.Name, p.Sample, owners))
		}
	}
	return a
}

// ownApps are those of the own node.
func (c *Component) ownApps(metrics types.KubeNodeMetrics) (apps []app) {
	owners := types.NewAppOwners(c.Configs.All())
	for _, p := range metrics.Pods {
		if last := len(p.Samples) - 1; last >= 0 && p.Namespace == types.NamespaceApps {
			apps = append(apps, c.app(p.Name, p.Samples[last], owners))
		}
	}
	return apps
}

// app says whether a pod runs a virtual machine: by its label, or by its name
// where the pod is not in the table yet or any more.
func (c *Component) app(pod string, s types.PodSample, owners types.AppOwners) app {
	a := app{name: pod, cpu: s.CPU, mem: s.MemoryWorking}
	known, _ := c.AppPods.Get(types.NamespaceApps + "/" + pod)
	if config, ok := owners.Of(known); ok {
		a.of = config.DisplayName
	}
	if known.VMI != "" {
		a.name, a.vmi = known.VMI, true
		return a
	}
	machine, ok := strings.CutPrefix(pod, launcher)
	if end := strings.LastIndexByte(machine, '-'); ok && end > 0 {
		a.name, a.vmi = machine[:end], true
	}
	return a
}

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
