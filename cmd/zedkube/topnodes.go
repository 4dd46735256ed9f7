package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	// large cluster; each round goes on where the one before ended.
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

	next    time.Time // of the round
	turn    int       // where it begins
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

// begin starts a round if it is time for one. fresh says whose word is young
// enough without being asked.
func (a *nodeAsking) begin(ctx context.Context, now time.Time, fresh func(node string) bool) {
	if a.kube == nil || a.answers != nil || now.Before(a.next) {
		return
	}
	a.next = now.Add(askEvery)
	a.answers = make(chan nodeAnswer)
	names, turn, kube, answers := a.names, a.turn, a.kube, a.answers
	due := map[string]bool{}
	for _, name := range names {
		due[name] = !fresh(name)
	}
	a.turn += askMost
	a.work.Go(func() {
		defer close(answers)
		round(ctx, kube, turn, due, answers)
	})
}

// round names the nodes and asks those that are due, or new.
func round(ctx context.Context, kube nodeAsker, turn int, due map[string]bool, answers chan<- nodeAnswer) {
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
		if wanted, known := due[n.Name]; wanted || !known {
			ask = append(ask, n.Name)
		}
	}
	slices.Sort(names)
	slices.Sort(ask)
	say(nodeAnswer{names: names})
	if len(ask) > askMost {
		ask = append(ask, ask...)[turn%len(ask):][:askMost]
	}
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

// rows are all nodes that anybody has named.
func (a *nodeAsking) rows(now time.Time) (rows []topRow) {
	all := map[string]bool{}
	for _, name := range a.names {
		all[name] = true
	}
	for name := range a.words {
		all[name] = true
	}
	for name := range all {
		r := topRow{Name: name}
		var before types.NodeMetrics
		for _, w := range a.words[name] {
			m := w.metrics
			r.CPUs, r.Memories = append(r.CPUs, m.CPU), append(r.Memories, m.MemoryWorking)
			took := w.at.Sub(r.At)
			r.Received, r.Sent = perSecond(before.NetworkReceived, m.NetworkReceived, took), perSecond(before.NetworkSent, m.NetworkSent, took)
			r.At, r.Cores, r.CPU, r.Memory, r.Total = w.at, max(m.Cores, r.Cores), m.CPU, m.MemoryWorking, w.total
			if m.FS != nil {
				r.Disk, r.DiskSize = m.FS.Used, m.FS.Capacity
			}
			if w.err != nil {
				r.Stale = w.err.Error()
			}
			before = m
		}
		r.age(now)
		rows = append(rows, r)
	}
	return rows
}

// problems are the nodes that do not answer.
func (a *nodeAsking) problems(rows []topRow) (said []string) {
	if a.err != nil {
		said = append(said, "the nodes cannot be asked through the API server: "+a.err.Error())
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
