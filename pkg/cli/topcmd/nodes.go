package topcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/pkg/base/samples"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// askEvery is how often kubelets are asked: often enough
	// that a value stays below the age from which it is marked.
	askEvery = 10 * time.Second
	// askWithin bounds the question to one node.
	askWithin = 5 * time.Second
	// askAtOnce and askMost bound what one command costs the API server of a
	// large cluster; each round asks those whose turn was longest ago.
	askAtOnce = 8
	askMost   = 40
)

type nodeAsker interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
	NodeStats(ctx context.Context, node types.Node) (types.KubeletStats, error)
}

// nodeSample is what is known of a node at one moment.
type nodeSample struct {
	at      time.Time
	said    time.Time // when that was still the newest; zero for at
	metrics types.NodeMetrics
	total   *uint64 // bytes of memory
	err     error   // why there is nothing newer
}

// nodeAsking asks the nodes in rounds, beside the screen.
type nodeAsking struct {
	kube nodeAsker       // nil where there is no connection
	wake chan<- struct{} // rings at each answer
	work sync.WaitGroup

	mu      sync.Mutex // guards what follows
	err     error      // why the nodes cannot be named
	names   []string   // of all nodes; nil before they are known
	samples map[string][]nodeSample
	pods    map[string][]types.PodMetrics // by node; of those that were asked
	asked   map[string]time.Time          // when each was last
	next    time.Time                     // of the round
	busy    bool                          // a round is under way
	rounds  int                           // that have ended
}

func (a *nodeAsking) begin(ctx context.Context, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kube == nil || a.busy || now.Before(a.next) {
		return
	}
	a.next, a.busy = now.Add(askEvery), true
	a.work.Go(func() {
		a.round(ctx, now)
		a.update(func() {
			a.busy = false
			a.rounds++
		})
	})
}

// update changes what is known, and rings.
func (a *nodeAsking) update(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	pubsub.Ring(a.wake)
}

// settled reports that every node was asked once, or none can be.
func (a *nodeAsking) settled() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kube == nil || a.rounds > 0
}

// round names the nodes and asks them. A node whose sample is young enough is not asked.
func (a *nodeAsking) round(ctx context.Context, now time.Time) {
	nodes, err := a.kube.FreshNodes(ctx)
	if err != nil {
		a.update(func() { a.err = err })
		return
	}
	var ask []types.Node
	a.update(func() {
		a.err, a.names = nil, nil
		for _, n := range nodes {
			a.names = append(a.names, n.Name)
			if now.Sub(a.newest(n.Name)).Abs() >= askEvery {
				ask = append(ask, n)
			}
		}
		maps.DeleteFunc(a.samples, func(name string, _ []nodeSample) bool { return !slices.Contains(a.names, name) })
		maps.DeleteFunc(a.pods, func(name string, _ []types.PodMetrics) bool { return !slices.Contains(a.names, name) })
		slices.SortFunc(ask, func(x, y types.Node) int {
			return cmp.Or(a.asked[x.Name].Compare(a.asked[y.Name]), strings.Compare(x.Name, y.Name))
		})
	})
	ask = ask[:min(len(ask), askMost)]
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for _, n := range ask {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			stats, err := a.kube.NodeStats(ctx, n)
			w := nodeSample{at: time.Now(), metrics: stats.Node, total: sum(stats.Node.MemoryWorking, stats.Node.MemoryAvailable), err: err}
			w.metrics.Cores = n.Cores
			a.update(func() {
				a.asked[n.Name] = w.at
				a.know(n.Name, w)
				if err == nil {
					a.pods[n.Name] = samples.Merge(a.pods[n.Name], stats.Pods, nil)
				}
			})
			return nil
		})
	}
	_ = group.Wait() // no error is returned: each is in its answer
}

// know keeps a newer sample of a node. A failure is kept beside the last one.
func (a *nodeAsking) know(node string, w nodeSample) {
	samples := a.samples[node]
	switch {
	case w.err != nil && len(samples) == 0:
		samples = append(samples, w)
		samples[0].at = time.Time{}
	case w.err != nil:
		samples[len(samples)-1].err = w.err
	case !w.at.After(a.newest(node)):
	case a.newest(node).IsZero(): // there is but a failure
		samples = []nodeSample{w}
	default:
		samples = lastOf(append(samples, w))
	}
	a.samples[node] = samples
}

func (a *nodeAsking) learn(own *types.KubeNodeMetrics, cluster *types.KubeClusterMetrics) {
	if own != nil && own.Node != "" && !own.At.IsZero() {
		a.pods[own.Node] = own.Pods
		if len(own.Samples) > 0 {
			a.samples[own.Node] = samplesOf(*own)
		} else { // of an agent that keeps none
			a.know(own.Node, nodeSample{at: own.At, metrics: own.Metrics, total: sum(own.Metrics.MemoryWorking, own.Metrics.MemoryAvailable)})
		}
	}
	if cluster == nil {
		return
	}
	for _, n := range cluster.Nodes {
		if n.Name == "" {
			continue
		}
		if !n.At.IsZero() {
			a.know(n.Name, nodeSample{at: n.At, metrics: types.NodeMetrics{Cores: n.Cores, CPU: n.CPU, MemoryWorking: n.Memory}, total: n.Total})
		}
		if n.Stale != "" && !a.newest(n.Name).After(n.At) {
			a.know(n.Name, nodeSample{err: errors.New(n.Stale)})
		}
	}
}

// samplesOf are those of a node that the agent keeps.
func samplesOf(m types.KubeNodeMetrics) (samples []nodeSample) {
	for _, s := range m.Samples {
		samples = append(samples, nodeSample{at: s.At, metrics: s.NodeMetrics, total: sum(s.MemoryWorking, s.MemoryAvailable)})
	}
	if n := len(samples); n > 0 {
		samples[n-1].said = m.At
	}
	return samples
}

// newest is when a node last said something; zero for never.
func (a *nodeAsking) newest(node string) time.Time {
	if samples := a.samples[node]; len(samples) > 0 {
		return samples[len(samples)-1].shown()
	}
	return time.Time{}
}

// shown is the time from which the age of a sample counts.
func (w nodeSample) shown() time.Time {
	if w.said.After(w.at) {
		return w.said
	}
	return w.at
}

// look takes what the agent's files say of nodes, and returns all that is known, and
// which do not answer.
func (a *nodeAsking) look(own *types.KubeNodeMetrics, cluster *types.KubeClusterMetrics, now time.Time) (rows []topRow, problems []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.learn(own, cluster)
	rows = a.rows(now)
	return rows, a.problems(rows)
}

func (a *nodeAsking) rows(now time.Time) (rows []topRow) {
	all := map[string]bool{}
	for _, name := range a.names {
		all[name] = true
	}
	for name := range a.samples {
		all[name] = true
	}
	for name := range all {
		rows = append(rows, nodeRow(name, a.samples[name], now))
	}
	return rows
}

// nodeRow is a node with its last samples.
func nodeRow(name string, samples []nodeSample, now time.Time) topRow {
	r := topRow{Name: name}
	var before nodeSample
	for _, w := range samples {
		if w.err != nil {
			r.Stale = w.err.Error()
		}
		if w.at.IsZero() {
			continue
		}
		m := w.metrics
		r.CPUs, r.Memories = append(r.CPUs, m.CPU), append(r.Memories, m.MemoryWorking)
		took := w.at.Sub(before.at)
		r.Received, r.Sent = perSecond(before.metrics.NetworkReceived, m.NetworkReceived, took), perSecond(before.metrics.NetworkSent, m.NetworkSent, took)
		r.Samples = append(r.Samples, types.ContainerSample{
			At: w.at, CPU: m.CPU, CPUSeconds: m.CPUSeconds, MemoryUsage: m.MemoryUsage, MemoryWorking: m.MemoryWorking,
			NetworkReceived: m.NetworkReceived, NetworkSent: m.NetworkSent,
		})
		r.At, r.Cores, r.CPU, r.Memory, r.Total = w.shown(), max(m.Cores, r.Cores), m.CPU, m.MemoryWorking, w.total
		if m.FS != nil {
			r.Disk, r.DiskSize, r.FS = m.FS.Used, m.FS.Capacity, m.FS
		}
		before = w
	}
	r.age(now, topOld)
	return r
}

func (a *nodeAsking) problems(rows []topRow) (said []string) {
	if a.err != nil {
		said = append(said, "the nodes cannot be queried through the API server: "+a.err.Error())
	}
	const shown = 3
	silent := 0
	for _, r := range rows {
		if r.Stale == "" || !r.Old {
			continue
		}
		if silent++; silent <= shown {
			said = append(said, r.Name+": "+r.Stale)
		}
	}
	if silent > shown {
		said = append(said, fmt.Sprintf("%d more nodes do not answer", silent-shown))
	}
	return said
}

// podsOf are the pods of all nodes that are known, or their containers.
func (a *nodeAsking) podsOf(o topOptions, now time.Time) (rows []topRow, hidden int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(a.pods)) {
		more, without := podRows(types.KubeNodeMetrics{Node: node, Pods: a.pods[node]}, o, now)
		rows, hidden = append(rows, more...), hidden+without
	}
	return rows, hidden
}
