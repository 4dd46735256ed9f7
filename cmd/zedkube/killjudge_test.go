package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// judge watches from the outside what agents say and do to the cluster, and
// knows what they may.
type judge struct {
	t       *testing.T
	cluster *devcluster.Cluster
	began   time.Time

	mu      sync.Mutex
	nodes   map[string]*record
	stories map[string]int
	checked int // nodes found empty at COMPLETE
	held    int // cordons whose lock was looked at
	looking sync.WaitGroup
}

// record is what is known of one node.
type record struct {
	said     types.NodeDrainStatus
	seen     map[types.DrainStatus]bool      // since the last request
	member   bool                            // it has said NOTREQUESTED
	requests map[types.DrainRequester]uint64 // that stand
	mayEnd   bool                            // the last request was taken back, or the device rebooted
	anew     bool                            // there is a request that the failed drain did not know
	epoch    uint64                          // counts what people do: requests, withdrawals, reboots

	cordon  string // our annotation, "" for none
	foreign bool   // someone else's cordon has to be there
	trace   []string
}

// traced is how many lines of a node's story a failure prints.
const traced = 300

func newJudge(t *testing.T, cluster *devcluster.Cluster) *judge {
	j := &judge{t: t, cluster: cluster, began: time.Now(), nodes: map[string]*record{}, stories: map[string]int{}}
	for _, n := range cluster.Nodes {
		j.nodes[n.Name] = &record{seen: map[types.DrainStatus]bool{}, requests: map[types.DrainRequester]uint64{}}
	}
	return j
}

// follow begins to watch.
func (j *judge) follow(ctx context.Context, fleet *player.Fleet) {
	stopped, err := followNodes(ctx, j.cluster, func(n *corev1.Node) { j.cordonSeen(ctx, n) })
	if err != nil {
		j.t.Error(err)
	}
	j.looking.Go(stopped)
	for _, m := range fleet.Members {
		bell := make(chan struct{}, 1)
		m.Watch.Drain.Notify(bell)
		j.looking.Go(func() {
			for {
				if status, ok := m.Watch.Drain.Get(types.Global); ok {
					j.heard(ctx, m.Name, status)
				}
				select {
				case <-ctx.Done():
					return
				case <-bell:
				}
			}
		})
	}
}

// note adds a line to the node's story.
func (j *judge) note(node, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(node, text)
}

// write is note with mu held.
func (j *judge) write(node, text string) {
	r := j.nodes[node]
	r.trace = append(r.trace, fmt.Sprintf("%8.3f %s", time.Since(j.began).Seconds(), text))
	if len(r.trace) > traced {
		r.trace = slices.Delete(r.trace, 0, len(r.trace)-traced)
	}
}

// wrong is a verdict. mu is held.
func (j *judge) wrong(node, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.write(node, "WRONG: "+text)
	j.t.Errorf("%8.3f %s: %s", time.Since(j.began).Seconds(), node, text)
}

// said is what the played agents tell.
func (j *judge) said(device, agent, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(device, agent+": "+text)
	if agent == "device" && text == "rebooted" { // told before the next boot begins
		r := j.nodes[device]
		r.epoch++
		clear(r.requests)
		r.mayEnd = true
	}
	if strings.HasPrefix(text, "reboot command carried out at once") {
		j.wrong(device, "a reboot did not wait for its drain: %s", text)
	}
}

// asked is told before a request is made.
func (j *judge) asked(node string, by types.DrainRequester) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.nodes[node]
	r.epoch++
	if len(r.requests) == 0 || failed(r.said.Status) {
		clear(r.seen)
	}
	r.requests[by] = r.epoch
	r.anew, r.mayEnd = true, false
	j.write(node, "asked by "+by.String())
}

// tookBack is told before a request is taken back.
func (j *judge) tookBack(node string, by types.DrainRequester) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.nodes[node]
	r.epoch++
	delete(r.requests, by)
	r.mayEnd = len(r.requests) == 0
	j.write(node, "taken back by "+by.String())
}

// saw says whether the node has said s since the last request.
func (j *judge) saw(node string, s types.DrainStatus) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.nodes[node].seen[s]
}

// done counts a story that came to its end.
func (j *judge) done(story string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stories[story]++
}

func (j *judge) summary() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return fmt.Sprintf("drains %v, %d times COMPLETE found true, %d cordons found locked", j.stories, j.checked, j.held)
}

func failed(s types.DrainStatus) bool {
	return s == types.DrainFailedCordon || s == types.DrainFailedDrain
}

// stages puts the states of one drain in order. What stands at the same place
// excludes each other.
var stages = map[types.DrainStatus]int{
	types.DrainNotRequested: 1, types.DrainRequested: 2, types.DrainStarting: 3, types.DrainCordoned: 4, types.DrainRetrying: 5,
	types.DrainFailedCordon: 6, types.DrainFailedDrain: 6, types.DrainComplete: 6,
}

// heard judges what a node says.
func (j *judge) heard(ctx context.Context, node string, now types.NodeDrainStatus) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.nodes[node]
	was := r.said
	if now == was {
		return
	}
	r.said = now
	j.write(node, fmt.Sprintf("says %s for %s", now.Status, now.RequestedBy))
	r.seen[now.Status] = true
	switch wrong := r.judge(was.Status, now.Status); {
	case wrong != "":
		j.wrong(node, "%s after %s: %s", now.Status, was.Status, wrong)
	case now.Status == types.DrainComplete && was.Status != types.DrainComplete:
		epoch := r.epoch
		j.looking.Go(func() { j.isEmpty(ctx, node, epoch) })
	}
	r.member = r.member || now.Status == types.DrainNotRequested
	if failed(now.Status) && !failed(was.Status) {
		r.anew = false
	}
}

// judge says what is wrong with a step, "" for nothing.
func (r *record) judge(was, now types.DrainStatus) string {
	switch {
	case now == was:
		return ""
	case stages[now] == 0 && r.member:
		return "once a member it may not say so"
	case stages[now] == 0 || now == types.DrainNotRequested && (stages[was] <= 1 || r.mayEnd || failed(was)):
		return ""
	case now == types.DrainNotRequested:
		return "the request still stands"
	case failed(was) && r.anew && stages[now] < stages[was]:
		return ""
	case stages[was] == stages[types.DrainComplete]:
		return "the drain was over"
	case stages[now] < stages[was]:
		return "a step back"
	case len(r.requests) == 0 && !r.mayEnd:
		return "nobody asked"
	}
	return ""
}
