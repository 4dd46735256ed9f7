package history

import (
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// excuses are the reasons for which a drain may be COMPLETE although it could
// not do its work (docs/operations.md), as NodeDrainProgress gives them.
var excuses = []string{"has not answered for", "not in the cluster's list", "forced"}

func excused(why string) bool {
	return slices.ContainsFunc(excuses, func(e string) bool { return strings.Contains(why, e) })
}

// complete judges what was found at the API server while COMPLETE stood, and
// whether etcd has its quorum without the node: more than half of the voters, or
// all of the others (docs/wire.md, "Drain lock").
func complete(v *verdict, events []Event) {
	c, why := newCluster(), map[string]string{}
	stands := map[string]time.Duration{}  // COMPLETE, since when
	missing := map[string]time.Duration{} // voters that are not Ready, since when
	for _, e := range events {
		c.see(e)
		switch e.Kind {
		case Asked, TookBack, Rebooted:
			delete(stands, e.Node)
		case Why:
			why[e.Node] = e.Text
		case NodeIs:
			if _, is := missing[e.Node]; !is && !e.Object.Ready {
				missing[e.Node] = e.At
			} else if e.Object.Ready {
				delete(missing, e.Node)
			}
		case Drain:
			if _, is := stands[e.Node]; e.Drain.Status != types.DrainComplete {
				delete(stands, e.Node)
			} else if !is {
				stands[e.Node] = e.At
			}
		case Looked:
			at, is := stands[e.Node]
			if !is || excused(why[e.Node]) {
				continue
			}
			v.checked++
			if len(e.Look.Pods) > 0 {
				v.wrong(at, e.Node, "COMPLETE with pods: %v", e.Look.Pods)
			}
			if len(e.Look.Volumes) > 0 {
				v.wrong(at, e.Node, "COMPLETE with volumes: %v", e.Look.Volumes)
			}
			if !e.Look.Unschedulable {
				v.wrong(at, e.Node, "COMPLETE, and not cordoned")
			}
			voters, ready := 0, 0
			for name, n := range c.nodes {
				if !n.Voter {
					continue
				}
				voters++
				if since, is := missing[name]; name != e.Node && (!is || at-since <= v.Late) {
					ready++
				}
			}
			if c.nodes[e.Node].Voter && ready < voters-1 && 2*ready <= voters {
				v.wrong(at, e.Node, "COMPLETE, and %d of %d voters are Ready without it", ready, voters)
			}
		}
	}
}

// record is what is known of one node's drains.
type record struct {
	said     types.DrainStatus
	member   bool            // it has said NOTREQUESTED
	requests map[string]bool // that stand
	mayEnd   bool            // the last request was taken back, or the device rebooted
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
			r.again, r.mayEnd = true, false
		case TookBack:
			delete(r.requests, e.By)
			r.mayEnd = len(r.requests) == 0
		case Rebooted:
			clear(r.requests)
			r.mayEnd = true
		case Drain:
			was, now := r.said, e.Drain.Status
			r.said = now
			v.checked++
			if wrong := r.judge(was, now); wrong != "" {
				v.wrong(e.At, e.Node, "%s after %s: %s", now, was, wrong)
			}
			r.member = r.member || now == types.DrainNotRequested
			if failed(now) && !failed(was) {
				r.again = false
			}
		}
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
