package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// excused says whether a drain may be COMPLETE although it could not do its work (docs/operations.md, "The states:
// NodeDrainStatus"): NodeDrainProgress says so, and it was so. troubled: the node's API server had a fault since the
// drain was asked for, or it reached none; known: it is in the cluster's list of nodes.
func excused(why string, troubled, known bool) bool {
	switch {
	case strings.Contains(why, "has not answered for"):
		return troubled
	case strings.Contains(why, "not in the cluster's list"):
		return troubled || !known
	}
	return why == "forced by the force file"
}

// troubles are the nodes whose API server was not what it should be since a drain was asked for.
type troubles struct {
	now, since map[string]bool
	requests
}

func (t troubles) see(e Event) {
	switch e.Kind {
	case Alone:
		t.now[e.Node] = e.On
	case Fault:
		t.now[e.Node] = e.Text != "none"
	case Asked:
		t.since[e.Node] = t.since[e.Node] && len(t.requests[e.Node]) > 0
	}
	t.requests.see(e)
	t.since[e.Node] = t.since[e.Node] || t.now[e.Node]
}

// lookedWithin is how recently a drain has looked at what it promises.
const lookedWithin = 15 * time.Second

// nowhereFor is how long no other node takes pods until a drain evicts nothing.
const nowhereFor = time.Minute

// complete judges what was found at the API server while COMPLETE stood, and
// whether etcd has its quorum without the node: more than half of the voters, or
// all of the others (docs/wire.md, "Drain lock"). Of the only node of a cluster
// nothing is evicted, nor where no other node has taken pods for long: they have
// nowhere to go. What the drain has looked at before etcd was set back may be
// forgotten when it is COMPLETE.
func complete(v *verdict, events []Event) {
	c, why, quorum := newCluster(), map[string]string{}, map[string]string{}
	trouble := troubles{map[string]bool{}, map[string]bool{}, newRequests()}
	restored := -lookedWithin
	stands := map[string]time.Duration{}  // COMPLETE, since when
	missing := map[string]time.Duration{} // voters that are not Ready, since when
	joined := map[string]time.Duration{}  // Nodes, since when
	able := map[string]bool{}             // Nodes that are Ready and schedulable
	takes := map[string]time.Duration{}   // Nodes that were Ready and schedulable, when last
	lone := func(node string, at time.Duration) bool {
		none := true
		for other, since := range joined {
			none = none && (other == node || at-since <= v.Late)
		}
		nowhere := strings.Contains(why[node], "no other node is Ready and schedulable")
		for other, last := range takes {
			nowhere = nowhere && (other == node || !able[other] && at-last >= nowhereFor-v.Late)
		}
		return none || nowhere
	}
	for _, e := range events {
		c.see(e)
		trouble.see(e)
		switch e.Kind {
		case TookBack, Rebooted:
			if len(trouble.requests[e.Node]) == 0 {
				delete(stands, e.Node)
			}
		case Restored: // and pods with it
			clear(stands)
			restored = e.At
		case Why:
			why[e.Node] = e.Text
		case NodeIs:
			if _, is := joined[e.Node]; e.Object.Gone {
				delete(joined, e.Node)
			} else if !is {
				joined[e.Node] = e.At
			}
			if now := e.Object.Ready && !e.Object.Unschedulable && !e.Object.Gone; now || able[e.Node] {
				takes[e.Node], able[e.Node] = e.At, now
			}
			if _, is := missing[e.Node]; !is && !e.Object.Ready {
				missing[e.Node] = e.At
			} else if e.Object.Ready {
				delete(missing, e.Node)
			}
		case Drain:
			if _, is := stands[e.Node]; e.Drain.Status != types.DrainComplete {
				delete(stands, e.Node)
			} else if !is && e.At-restored > lookedWithin {
				stands[e.Node] = e.At
				quorum[e.Node] = c.quorumWithout(e.Node, func(name string) bool {
					since, is := missing[name]
					return !is || e.At-since <= v.Late
				})
			}
		case Looked:
			at, is := stands[e.Node]
			_, known := c.nodes[e.Node]
			if !is || excused(why[e.Node], trouble.since[e.Node], known) {
				continue
			}
			v.checked++
			if len(e.Look.Pods) > 0 && !lone(e.Node, at) {
				v.wrong(at, e.Node, "COMPLETE with pods: %v", e.Look.Pods)
			}
			if len(e.Look.Volumes) > 0 && !lone(e.Node, at) {
				v.wrong(at, e.Node, "COMPLETE with volumes: %v", e.Look.Volumes)
			}
			if !e.Look.Unschedulable {
				v.wrong(at, e.Node, "COMPLETE, and not cordoned")
			}
			if quorum[e.Node] != "" {
				v.wrong(at, e.Node, "COMPLETE, and %s", quorum[e.Node])
			}
		}
	}
}

// quorumWithout says what etcd lacks without a voter; "" for nothing.
func (c *cluster) quorumWithout(node string, there func(name string) bool) string {
	voters, ready := 0, 0
	for name, n := range c.nodes {
		if !n.Voter {
			continue
		}
		voters++
		if name != node && there(name) {
			ready++
		}
	}
	if !c.nodes[node].Voter || ready >= voters-1 || 2*ready > voters {
		return ""
	}
	return fmt.Sprintf("%d of %d voters are Ready without it", ready, voters)
}

// record is what is known of one node's drains.
type record struct {
	said     types.DrainStatus
	by       string          // whose request that was
	member   bool            // it has said NOTREQUESTED
	requests map[string]bool // that stand
	mayEnd   bool            // the last request was taken back, or the device rebooted
	late     time.Duration   // until when what is said may be of before the request that stands now
	again    bool            // there is a request that the failed drain did not know
}

// stages puts the states of one drain in order. What stands at the same place
// excludes each other.
var stages = map[types.DrainStatus]int{
	types.DrainNotRequested: 1, types.DrainRequested: 2, types.DrainStarting: 3, types.DrainCordoned: 4, types.DrainRetrying: 5,
	types.DrainFailedCordon: 6, types.DrainFailedDrain: 6, types.DrainComplete: 6,
}

func failed(s types.DrainStatus) bool {
	return s == types.DrainFailedCordon || s == types.DrainFailedDrain
}

func order(v *verdict, events []Event) {
	nodes := map[string]*record{}
	of := func(node string) *record {
		if nodes[node] == nil {
			nodes[node] = &record{requests: map[string]bool{}}
		}
		return nodes[node]
	}
	for _, e := range events {
		r := of(e.Node)
		switch e.Kind {
		case Asked:
			r.requests[e.By] = true
			r.again = true
			if r.mayEnd { // somebody who is slow hears of the end only now
				r.mayEnd, r.late = false, e.At+v.Late
			}
		case TookBack:
			delete(r.requests, e.By)
			r.mayEnd = len(r.requests) == 0
		case Rebooted:
			clear(r.requests)
			r.mayEnd = true
		case Drain:
			was, now, by := r.said, e.Drain.Status, r.by
			r.said, r.by = now, e.Drain.RequestedBy.String()
			v.checked++
			// Of what is said for a moment only the last is heard: a drain that ends and
			// one that begins for somebody else look like a step back.
			another := r.by != by && r.requests[r.by] && !r.requests[by]
			if wrong := r.judge(was, now, e.At <= r.late); wrong != "" && !(another && stages[now] > 1) {
				v.wrong(e.At, e.Node, "%s after %s: %s", now, was, wrong)
			}
			r.member = r.member || now == types.DrainNotRequested
			if now == types.DrainNotRequested && len(r.requests) == 0 {
				r.mayEnd = false // it has ended: what begins now wants a request of its own
			}
			if failed(now) && !failed(was) {
				r.again = false
			}
		}
	}
}

// judge says what is wrong with a step, "" for nothing. late: it may be of before the request that stands.
func (r *record) judge(was, now types.DrainStatus, late bool) string {
	switch {
	case now == was:
		return ""
	case stages[now] == 0 && r.member:
		return "once a member it may not say so"
	case stages[now] == 0 || now == types.DrainNotRequested && (stages[was] <= 1 || r.mayEnd || late || failed(was)):
		return ""
	case now == types.DrainNotRequested:
		return "the request still stands"
	case failed(was) && r.again && stages[now] < stages[was]:
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

// explained judges drains that go on: who asked knows why.
func explained(v *verdict, events []Event) {
	type state struct {
		requests map[string]bool
		up, ends bool
		why      string
	}
	nodes, long := map[string]*state{}, newStreaks()
	for _, e := range events {
		if e.Node != "" && nodes[e.Node] == nil {
			nodes[e.Node] = &state{requests: map[string]bool{}}
		}
		s := nodes[e.Node]
		switch e.Kind {
		case AgentUp:
			s.up = true
		case Rebooted:
			s.up = false
			clear(s.requests)
		case Asked:
			v.checked++
			s.requests[e.By] = true
			s.ends, s.why = false, ""
		case TookBack:
			delete(s.requests, e.By)
		case Drain:
			s.ends = e.Drain.Status == types.DrainComplete || failed(e.Drain.Status)
		case Why:
			s.why = e.Text
		}
		for node, s := range nodes {
			silent := s.up && len(s.requests) > 0 && !s.ends && s.why == ""
			if long.tooLong(node, silent, e.At, v.Explains) {
				v.wrong(e.At, node, "for %s its drain neither ended nor said why not", v.Explains)
			}
		}
	}
}

// evicts judges what the audit log of the API server has.
func evicts(v *verdict, events []Event) {
	on, wanted := map[string]string{}, newWanted()
	for _, e := range events {
		wanted.see(e)
		switch e.Kind {
		case PodIs:
			if e.Node != "" {
				on[e.Object.Name] = e.Node // also when it is gone
			}
		case Called:
			call, is := strings.CutPrefix(e.Text, "create pods/eviction ")
			if !is {
				continue
			}
			pod, code, _ := strings.Cut(call, ": ")
			if !strings.HasPrefix(code, "2") {
				continue
			}
			v.checked++
			if node, known := on[pod]; known && node != e.Node {
				v.wrong(e.At, e.Node, "it evicts %s, which is on %s", pod, node)
			}
			if wanted.byNobody(e, v.Settles) {
				v.wrong(e.At, e.Node, "it evicts %s, and nobody asks for a drain", pod)
			}
		}
	}
}

// waitedFor judges what the played zedagent does.
func waitedFor(v *verdict, events []Event) {
	for _, e := range events {
		if e.Kind == Rebooted {
			v.checked++
		}
		if e.Kind == Told && strings.HasPrefix(e.Text, "reboot command carried out at once") {
			v.wrong(e.At, e.Node, "a reboot did not wait for its drain: %s", e.Text)
		}
	}
}

func noCrash(v *verdict, events []Event) {
	for _, e := range events {
		switch e.Kind {
		case AgentUp:
			v.checked++
		case AgentBad:
			v.wrong(e.At, e.Node, "%s", e.Text)
		}
	}
}
