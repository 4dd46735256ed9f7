// Package clustermetrics tells what the kubelets of all nodes measure, on the
// node that reports for the cluster (docs/wire.md, "KubeClusterMetrics").
//
//	reads:  KubeLeaderElectInfo, EdgeNodeInfo, AppInstanceConfig, nodes, app pods, the API's health, KubeNodeMetrics
//	writes: KubeClusterMetrics
//	acts:   asks the kubelets of the other nodes
package clustermetrics

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is in case an event was missed; what is due earlier is asked for.
const period = time.Minute

// Kube is what the component asks of the cluster. The verb ends when its
// context does.
type Kube interface {
	// NodeStats asks another node's kubelet, for CPU and memory only.
	NodeStats(ctx context.Context, node types.Node) (types.KubeletStats, error)
}

// Component tells what is measured. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Leader  pubsub.Reader[types.KubeLeaderElectInfo]
	Info    pubsub.Reader[types.EdgeNodeInfo]
	Nodes   pubsub.Reader[types.Node]
	AppPods pubsub.Reader[types.Pod]
	API     pubsub.Reader[types.APIStatus]
	Own     pubsub.Reader[types.KubeNodeMetrics]
	Configs pubsub.Reader[types.AppInstanceConfig]
	Kube    Kube

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Metrics pubsub.Writer[types.KubeClusterMetrics]

	// What this process remembers while it leads.
	entries map[string]entry // by node
	began   time.Duration    // the last round
	dry     int              // rounds in a row since any kubelet answered
	told    time.Duration    // when something was published last
	pace    *rate.Limiter    // nil before the first round
	round   loop.Call[[]answer]
}

// Run steps until ctx is done and returns after what is under way has ended. The
// metrics end with it: the Lease is given up then, and another node publishes them.
func (c *Component) Run(ctx context.Context) {
	defer c.round.End()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Leader, &c.round)
	if err := c.Metrics.Unpublish(types.Global); err != nil {
		c.Log.WithError(err).Error("could not withdraw the cluster's metrics on shutdown")
	}
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	return c.apply(ctx, decide(c.look()))
}

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{now: time.Now(), uptime: c.Uptime(), entries: c.entries, began: c.began, dry: c.dry, told: c.told}
	f.answers, f.ended = c.round.Take()
	f.asking = c.round.Busy()
	leader, _ := c.Leader.Get(types.Global)
	if f.leads = leader.IsStatsLeader; !f.leads {
		return f
	}
	api, ok := c.API.Get(types.Global)
	f.seen = ok && api.Answers() && api.Synced
	f.nodes = c.Nodes.All()
	info, _ := c.Info.Get(types.Global)
	own, known := types.OwnNode(f.nodes, info)
	if metrics, ok := c.Own.Get(types.Global); ok && known && metrics.Node == own.Name {
		f.metrics = metrics
	}
	f.own = own.Name
	f.apps = c.ownApps(f.metrics)
	return f
}

func (c *Component) apply(ctx context.Context, a action) error {
	if a.cancel {
		c.round.Cancel()
	}
	c.entries, c.dry = a.entries, a.dry
	if len(a.ask) > 0 {
		c.began = a.began
		c.round.Begin(ctx, roundTimeout, func(ctx context.Context) []answer { return c.ask(ctx, a.ask) })
	}
	var err error
	switch {
	case a.withdraw:
		c.told = 0
		err = c.Metrics.Unpublish(types.Global)
	case a.publish != nil:
		c.told = a.began
		err = c.Metrics.Publish(types.Global, *a.publish)
	}
	return errors.Join(err, loop.After(a.again))
}

const (
	// atOnce and perSecond bound the requests.
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
	metrics types.ClusterNodeMetrics // without Cores and Total
	apps    []app
	err     error
}

// app is a pod of an application, or a virtual machine.
type app struct {
	types.ClusterAppMetrics // without Node
	vmi                     bool
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
	row, _ := c.Nodes.Get(node) // one that has left has no address
	stats, err := c.Kube.NodeStats(ctx, row)
	a := answer{err: err}
	a.metrics = types.ClusterNodeMetrics{Name: node, At: time.Now().UTC(), CPU: stats.Node.CPU, Memory: stats.Node.MemoryWorking}
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
	a := app{ClusterAppMetrics: types.ClusterAppMetrics{Name: pod, CPU: s.CPU, Memory: s.MemoryWorking}}
	known, _ := c.AppPods.Get(types.NamespaceApps + "/" + pod)
	if config, ok := owners.Of(known); ok {
		a.App = config.DisplayName
	}
	if known.VMI != "" {
		a.Name, a.vmi = known.VMI, true
		return a
	}
	machine, ok := strings.CutPrefix(pod, launcher)
	if end := strings.LastIndexByte(machine, '-'); ok && end > 0 {
		a.Name, a.vmi = machine[:end], true
	}
	return a
}

// value is what is published of what is known.
func value(f facts, entries map[string]entry) types.KubeClusterMetrics {
	var out types.KubeClusterMetrics
	var ran []measured
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
		ran = append(ran, measured{name, e.metrics.At, e.apps})
	}
	if f.own != "" {
		m := types.ClusterNodeMetrics{Name: f.own, At: f.metrics.At, Stale: short(f.metrics.Stale), CPU: f.metrics.Metrics.CPU, Memory: f.metrics.Metrics.MemoryWorking}
		if m.At.IsZero() && m.Stale == "" {
			m.Stale = "not requested yet"
		}
		out.Nodes = append(out.Nodes, sized(m, f.nodes[f.own]))
		ran = append(ran, measured{f.own, f.metrics.At, f.apps})
	}
	addApps(&out, f.now, ran)
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

// measured is what ran on a node when it was measured last.
type measured struct {
	node string
	at   time.Time
	apps []app
}

// addApps adds what ran. What ran on a node that is lost may run on another one by now: of each
// the newest counts, and none that is old.
func addApps(out *types.KubeClusterMetrics, now time.Time, nodes []measured) {
	nodes = slices.DeleteFunc(nodes, func(m measured) bool { return now.Sub(m.at).Abs() > maxAge }) // clocks are set
	type key struct {
		name string
		vmi  bool
	}
	newest := map[key]time.Time{}
	for _, m := range nodes {
		for _, a := range m.apps {
			if k := (key{a.Name, a.vmi}); m.at.After(newest[k]) {
				newest[k] = m.at
			}
		}
	}
	for _, m := range nodes {
		for _, a := range m.apps {
			a.Node = m.node
			switch {
			case m.at.Before(newest[key{a.Name, a.vmi}]):
			case a.vmi:
				out.VMIs = append(out.VMIs, a.ClusterAppMetrics)
			default:
				out.Apps = append(out.Apps, a.ClusterAppMetrics)
			}
		}
	}
}

func byName(a, b types.ClusterAppMetrics) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node))
}
