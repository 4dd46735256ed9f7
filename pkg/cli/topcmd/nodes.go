package topcmd

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/types"
)

const (
	// askEvery is how often nodes are asked through the API server: often enough
	// that a value stays below the age from which it is marked.
	askEvery = 10 * time.Second
	// askWithin bounds the question to one node.
	askWithin = 5 * time.Second
	// askAtOnce and askMost bound what one command costs the API server of a
	// large cluster; each round asks those whose turn was longest ago.
	askAtOnce = 8
	askMost   = 40
)

// nodeAsker is what the command asks of the cluster.
type nodeAsker interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
	NodeStats(ctx context.Context, node string) (types.KubeletStats, error)
}

// nodeSample is what is known of a node at one moment.
type nodeSample struct {
	at      time.Time
	metrics types.NodeMetrics
	total   *uint64 // bytes of memory
	err     error   // why there is nothing newer
}

// nodeAsking asks the nodes in rounds, beside the screen.
type nodeAsking struct {
	kube  nodeAsker // nil where there is no connection
	err   error     // why the nodes cannot be named
	names []string  // of all nodes; nil before they are known
	words map[string][]nodeSample
	asked map[string]time.Time // when each was last

	next    time.Time // of the round
	answers chan nodeAnswer
	rounds  int // that have ended
	work    sync.WaitGroup
}

// nodeAnswer is one answer: the names of the nodes, or the word of one.
type nodeAnswer struct {
	names []string
	node  string
	word  nodeSample
}

// begin starts a round if it is time for one. Whose word is young enough is not
// asked.
func (a *nodeAsking) begin(ctx context.Context, now time.Time) {
	if a.kube == nil || a.answers != nil || now.Before(a.next) {
		return
	}
	a.next = now.Add(askEvery)
	a.answers = make(chan nodeAnswer)
	kube, answers, asked := a.kube, a.answers, maps.Clone(a.asked)
	skip := map[string]bool{}
	for name := range a.words {
		skip[name] = a.young(name, now)
	}
	a.work.Go(func() {
		defer close(answers)
		round(ctx, kube, skip, asked, answers)
	})
}

// round names the nodes and asks them, but for those to skip.
func round(ctx context.Context, kube nodeAsker, skip map[string]bool, asked map[string]time.Time, answers chan<- nodeAnswer) {
	say := func(answer nodeAnswer) {
		select {
		case answers <- answer:
		case <-ctx.Done():
		}
	}
	nodes, err := kube.FreshNodes(ctx)
	if err != nil {
		say(nodeAnswer{word: nodeSample{err: err}})
		return
	}
	var names, ask []string
	cores := map[string]int{}
	for _, n := range nodes {
		names = append(names, n.Name)
		cores[n.Name] = n.Cores
		if !skip[n.Name] {
			ask = append(ask, n.Name)
		}
	}
	slices.Sort(names)
	say(nodeAnswer{names: names})
	slices.SortFunc(ask, func(a, b string) int { return cmp.Or(asked[a].Compare(asked[b]), strings.Compare(a, b)) })
	ask = ask[:min(len(ask), askMost)]
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for _, name := range ask {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			stats, err := kube.NodeStats(ctx, name)
			w := nodeSample{at: time.Now(), metrics: stats.Node, total: sum(stats.Node.MemoryWorking, stats.Node.MemoryAvailable), err: err}
			w.metrics.Cores = cores[name]
			say(nodeAnswer{node: name, word: w})
			return nil
		})
	}
	_ = group.Wait() // no error is returned: each is in its answer
}

// hear takes an answer; ok is false at the end of a round.
func (a *nodeAsking) hear(answer nodeAnswer, ok bool) {
	switch {
	case !ok:
		a.answers = nil
		a.rounds++
	case answer.node != "":
		if a.asked == nil {
			a.asked = map[string]time.Time{}
		}
		a.asked[answer.node] = answer.word.at
		a.know(answer.node, answer.word)
	case answer.word.err != nil:
		a.err = answer.word.err
	default:
		a.err, a.names = nil, answer.names
		maps.DeleteFunc(a.words, func(name string, _ []nodeSample) bool { return !slices.Contains(a.names, name) })
	}
}

// know keeps a newer word of a node. A failure is kept beside the last word.
func (a *nodeAsking) know(node string, w nodeSample) {
	if a.words == nil {
		a.words = map[string][]nodeSample{}
	}
	words := a.words[node]
	switch {
	case w.err != nil && len(words) == 0:
		words = append(words, w)
		words[0].at = time.Time{}
	case w.err != nil:
		words[len(words)-1].err = w.err
	case !w.at.After(a.newest(node)):
	case a.newest(node).IsZero(): // there is but a failure
		words = []nodeSample{w}
	default:
		words = lastOf(append(words, w))
	}
	a.words[node] = words
}

// learn takes what the agent's files say of nodes.
func (a *nodeAsking) learn(own *types.KubeNodeMetrics, cluster *types.KubeClusterMetrics) {
	if own != nil && own.Node != "" && !own.At.IsZero() {
		w := nodeSample{at: own.At, metrics: own.Metrics, total: sum(own.Metrics.MemoryWorking, own.Metrics.MemoryAvailable)}
		a.know(own.Node, w)
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

// newest is when a node last said something; zero for never.
func (a *nodeAsking) newest(node string) time.Time {
	if words := a.words[node]; len(words) > 0 {
		return words[len(words)-1].at
	}
	return time.Time{}
}

// young reports that a node's word needs no asking.
func (a *nodeAsking) young(node string, now time.Time) bool {
	return now.Sub(a.newest(node)).Abs() < askEvery
}
