// Package edgemetrics tells what the kubelets of KubeEdge's nodes measure (docs/wire.md, "Measurements of edge nodes").
// They are no members, and no report has them.
//
//	reads:  KubeLeaderElectInfo, edge nodes, MetricsLook, the API's health
//	writes: measurements of each edge node, in memory
//	serves: these on the socket
//	acts:   asks their kubelets, often only while someone watches, else in a turn on the node that reports
package edgemetrics

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/samples"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// period is in case an event was missed; what is due earlier is asked for.
	period = time.Minute
	// askWithin is for one of them: one whose tunnel is cut never answers.
	askWithin = 5 * time.Second
	// atOnce bounds the requests under way, and roundWithin a round in which nobody answers.
	atOnce      = 8
	roundWithin = (batch/atOnce + 1) * askWithin
)

// Kube is what the component asks of the cluster. The verb ends when its context does.
type Kube interface {
	// EdgeStats asks the kubelet of a node of KubeEdge.
	EdgeStats(ctx context.Context, node types.Node) (types.KubeletStats, error)
}

// Component tells what is measured at the edge. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Leader pubsub.Reader[types.KubeLeaderElectInfo]
	Nodes  pubsub.Reader[types.Node] // those of KubeEdge
	Looks  pubsub.Reader[types.MetricsLook]
	API    pubsub.Reader[types.APIStatus]
	Kube   Kube

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Kept pubsub.Writer[types.KubeNodeMetrics] // by node, in memory

	// What this process remembers.
	lookers samples.Lookers
	entries map[string]entry
	began   *time.Duration // the last round, nil for none
	round   loop.Call[[]answer]
}

// Run steps until ctx is done and returns after what is under way has ended.
func (c *Component) Run(ctx context.Context) {
	defer c.round.End()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Leader, c.Looks, c.Nodes, &c.round)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	a := decide(c.look())
	c.lookers, c.entries = a.lookers, a.entries
	for name := range c.Kept.All() {
		if _, there := a.entries[name]; !there {
			if err := c.Kept.Unpublish(name); err != nil {
				return err
			}
		}
	}
	for name, e := range a.entries {
		if err := c.Kept.Publish(name, e.metrics); err != nil {
			return err
		}
	}
	if len(a.ask) > 0 {
		c.began = &a.began
		c.round.Begin(ctx, roundWithin, func(ctx context.Context) []answer { return c.ask(ctx, a.ask) })
	}
	return loop.After(a.again)
}

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{now: time.Now(), uptime: c.Uptime(), nodes: c.Nodes.All(), looks: c.Looks.All(), lookers: c.lookers, entries: c.entries, began: c.began}
	leader, _ := c.Leader.Get(types.Global)
	f.leads = leader.IsStatsLeader
	api, ok := c.API.Get(types.Global)
	f.seen = ok && api.Answers() && api.Synced
	f.answers, _ = c.round.Take()
	f.asking = c.round.Busy()
	return f
}

// answer is what came of asking one node.
type answer struct {
	node  types.Node
	stats types.KubeletStats
	err   error
}

func (c *Component) ask(ctx context.Context, nodes []types.Node) []answer {
	answers := make([]answer, len(nodes))
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, n := range nodes {
		all.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			stats, err := c.Kube.EdgeStats(ctx, n)
			answers[i] = answer{node: n, stats: stats, err: err}
			return nil
		})
	}
	_ = all.Wait() // nobody fails
	return answers
}

// Path is where the local server answers with what is kept.
const Path = "/api/edge-measurements"

// Handler answers with the last samples of all edge nodes, their pods and containers.
type Handler struct {
	Kept pubsub.Reader[types.KubeNodeMetrics]
}

// Measured is its answer.
type Measured struct {
	Items []types.KubeNodeMetrics // by node
}

// ServeHTTP implements http.Handler.
func (h Handler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	all := Measured{Items: []types.KubeNodeMetrics{}}
	for _, m := range h.Kept.All() {
		all.Items = append(all.Items, m)
	}
	slices.SortFunc(all.Items, func(a, b types.KubeNodeMetrics) int { return cmp.Compare(a.Node, b.Node) })
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all) // the one who asks may have gone
}
