package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// oneAtATime judges nodes between cordon and return: cordoned by us, or COMPLETE
// without that. What a device has published may be heard late: of one that is
// cordoned the Node says all. Where etcd was set back, locks and cordons of
// drains are forgotten, and those of former ones are back: until then no two of
// them are COMPLETE, for each takes the lock again before that. Of one that went
// while it was alone, and reaches an API server again before it has rebooted, the
// others know once it has cordoned its Node.
func oneAtATime(v *verdict, events []Event) {
	nodes, cordoned, ended, alone := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	complete, forgotten, connected := map[string]bool{}, newForgotten(), newConnected()
	away := func(node string) bool { return cordoned[node] || ended[node] }
	for _, e := range events {
		was := away(e.Node)
		forgotten.see(e)
		connected.see(e)
		if e.Node != "" {
			nodes[e.Node] = true
		}
		switch e.Kind {
		case Alone:
			alone[e.Node] = e.On
		case NodeIs:
			cordoned[e.Node] = e.Object.Mark != ""
			ended[e.Node] = ended[e.Node] && !cordoned[e.Node]
		case Drain:
			before := complete[e.Node]
			complete[e.Node] = e.Drain.Status == types.DrainComplete
			ended[e.Node] = complete[e.Node] && !cordoned[e.Node]
			was = was && (before || !complete[e.Node])
		case TookBack, Rebooted:
			if len(forgotten.requests[e.Node]) == 0 {
				ended[e.Node], complete[e.Node] = false, false
			}
		}
		if was || !away(e.Node) {
			continue
		}
		v.checked++
		var others []string
		allAlone := alone[e.Node] && e.Kind != NodeIs // who cordons a node reaches an API server
		for node := range nodes {
			if forgotten.either(e.Node, node) && !(complete[e.Node] && complete[node]) {
				continue
			}
			if node != e.Node && away(node) && !connected.unknown(node, e.At) {
				others = append(others, node)
				allAlone = allAlone && alone[node]
			}
		}
		if slices.Sort(others); len(others) > 0 && !allAlone {
			v.wrong(e.At, e.Node, "it goes while %v has not returned", others)
		}
	}
}

// How long it may take until a node that is connected again is cordoned, and until
// others have heard of that, on a busy machine.
const (
	cordonsWithin = 30 * time.Second
	heardWithin   = 5 * time.Second
)

// connected are nodes that became COMPLETE while they were alone, and are not any more.
type connected struct {
	alone, went map[string]bool
	at          map[string]time.Duration // since when others may know of it, by node
}

func newConnected() connected {
	return connected{map[string]bool{}, map[string]bool{}, map[string]time.Duration{}}
}

func (c connected) see(e Event) {
	switch e.Kind {
	case Alone:
		c.alone[e.Node] = e.On
		if !e.On && c.went[e.Node] {
			c.at[e.Node] = e.At + cordonsWithin
		}
	case Drain:
		c.went[e.Node] = c.went[e.Node] || c.alone[e.Node] && e.Drain.Status == types.DrainComplete
	case NodeIs:
		if at, ok := c.at[e.Node]; ok && e.Object.Mark != "" {
			c.at[e.Node] = min(at, e.At+heardWithin)
		}
	case TookBack, Rebooted:
		delete(c.went, e.Node)
		delete(c.at, e.Node)
	}
}

// unknown reports that the others may not have heard yet that the node goes.
func (c connected) unknown(node string, at time.Duration) bool {
	known, ok := c.at[node]
	return ok && at < known
}

// forgotten are nodes whose drains began before etcd was set back.
type forgotten struct {
	nodes map[string]bool
	requests
}

func newForgotten() forgotten { return forgotten{map[string]bool{}, newRequests()} }

func (f forgotten) see(e Event) {
	switch e.Kind {
	case Asked:
		if len(f.requests[e.Node]) == 0 {
			delete(f.nodes, e.Node)
		}
	case Restored:
		for node := range f.requests {
			f.nodes[node] = true
		}
	}
	f.requests.see(e)
}

// requests are those that stand, by node and who asked.
type requests map[string]map[string]bool

func newRequests() requests { return requests{} }

func (r requests) see(e Event) {
	if e.Node != "" && r[e.Node] == nil {
		r[e.Node] = map[string]bool{}
	}
	switch e.Kind {
	case Asked:
		r[e.Node][e.By] = true
	case TookBack:
		delete(r[e.Node], e.By)
	case Rebooted:
		clear(r[e.Node])
	}
}

func (f forgotten) either(a, b string) bool { return f.nodes[a] || f.nodes[b] }

// wanted are drains that are asked for. That a request was taken back, or the device rebooted, is heard late.
type wanted struct {
	requests
	ended map[string]time.Duration // when the last request was taken back, or the device rebooted, by node
}

func newWanted() wanted { return wanted{newRequests(), map[string]time.Duration{}} }

func (w wanted) see(e Event) {
	if w.requests.see(e); e.Kind == TookBack || e.Kind == Rebooted {
		w.ended[e.Node] = e.At
	}
}

// byNobody reports that at an event nobody asks for the drain of its node, nor did lately.
func (w wanted) byNobody(e Event, lately time.Duration) bool {
	at, ever := w.ended[e.Node]
	return len(w.requests[e.Node]) == 0 && (!ever || e.At-at > lately)
}

func locked(v *verdict, events []Event) {
	forgotten, connected := newForgotten(), newConnected()
	for _, e := range events {
		forgotten.see(e)
		connected.see(e)
		if e.Kind != LockIs || forgotten.nodes[e.Node] || connected.went[e.Node] {
			continue
		}
		v.checked++
		if e.Look.Holder != e.Node {
			v.wrong(e.At, e.Node, "cordoned while %s holds the lock", cmp.Or(e.Look.Holder, "nobody"))
		}
	}
}

// cordons judges what was done to cordons of others, and what of ours is left.
func cordons(v *verdict, events []Event) {
	foreign, was := map[string]bool{}, map[string]string{}
	wanted, restored := newWanted(), false
	for _, e := range events {
		wanted.see(e)
		switch e.Kind {
		case Restored: // and cordons of before with it
			restored = true
		case Foreign:
			foreign[e.Node] = e.On
			v.checked++
		case NodeIs:
			switch {
			case !foreign[e.Node] || e.Object.Gone:
			case !e.Object.Unschedulable:
				v.wrong(e.At, e.Node, "somebody else's cordon is gone")
				foreign[e.Node] = false
			case e.Object.Mark != "" && was[e.Node] == "":
				v.wrong(e.At, e.Node, "somebody else's cordon was taken over: %s", e.Object.Mark)
			}
			if e.Object.Mark != "" && was[e.Node] == "" && !restored && wanted.byNobody(e, v.Settles) {
				v.wrong(e.At, e.Node, "it is cordoned, and nobody asks for a drain: %s", e.Object.Mark)
			}
			was[e.Node] = e.Object.Mark
		case Settled:
			v.checked++
			for _, node := range e.Look.Left {
				if !foreign[node] {
					v.wrong(e.At, node, "at the end it is cordoned")
				}
			}
			if e.Look.Holder != "" {
				v.wrong(e.At, e.Look.Holder, "at the end it holds the drain lock")
			}
		}
	}
}

// term is the time in which a node said that it reports for the cluster.
type term struct {
	node     string
	from, to time.Duration
	restored time.Duration // when etcd was, if it may have brought this term back; else 0
}

// leaseDuration is that of the reporter's Lease (docs/wire.md, "Lease").
const leaseDuration = 25 * time.Second

// besides reports that a restored etcd brought t back while former went on until its Lease would have run out.
func (t term) besides(former term, late time.Duration) bool {
	return t.restored > 0 && former.from < t.restored && former.to < t.restored+leaseDuration+late
}

// revived is what etcd was set back to. An agent that has seen nobody else lead since it was
// started, or since it last led, takes a Lease in its name for its own, and cannot know better.
type revived struct {
	restored time.Duration
	started  map[string]time.Duration
	knows    map[string]bool // of another leader
}

func newRevived() revived { return revived{0, map[string]time.Duration{}, map[string]bool{}} }

func (r *revived) see(e Event) {
	switch e.Kind {
	case Restored:
		r.restored = e.At
	case AgentUp:
		r.started[e.Node], r.knows[e.Node] = e.At, false
	case Leader: // not what an earlier run left on the disk
		if e.Since >= r.started[e.Node] && e.Text != "" {
			r.knows[e.Node] = e.Text != e.Node
		}
	}
}

// at is the restored of a term that node begins then.
func (r *revived) at(node string, then time.Duration) time.Duration {
	if r.knows[node] || then < r.restored {
		return 0
	}
	return r.restored
}

// oneReporter judges terms: by the times that the agents wrote, for they are
// heard late and in any order, where their clocks are right. A restored etcd may have
// brought one back that is over.
func oneReporter(v *verdict, events []Event) {
	oneReport(v, events)
	var all []term
	back := newRevived()
	open, last, slack := map[string]int{}, map[string]Event{}, time.Duration(0)
	if !v.Clocks {
		slack = v.Late
	}
	end := func(node string, at time.Duration) {
		if i, is := open[node]; is {
			all[i].to = at
			delete(open, node)
		}
	}
	for _, e := range events {
		switch e.Kind {
		case AgentDown, AgentBad, Rebooted: // what it said last stays on its disk
			end(e.Node, e.At)
		case Leader:
			was, at := last[e.Node], e.At
			if v.Clocks {
				at = min(at, e.Since)
			}
			last[e.Node] = e
			if was.On && e.On && was.Since == e.Since {
				break // of before a restart
			}
			end(e.Node, at)
			if e.On {
				v.checked++
				open[e.Node] = len(all)
				all = append(all, term{e.Node, at, -1, back.at(e.Node, at)})
			}
		}
		back.see(e)
	}
	for i := range all {
		if all[i].to < 0 {
			all[i].to = events[len(events)-1].At
		}
	}
	for i, a := range all {
		for _, b := range all[:i] {
			excused := a.besides(b, v.Late) || b.besides(a, v.Late)
			if a.node != b.node && !excused && a.from+slack < b.to && b.from+slack < a.to {
				v.wrong(max(a.from, b.from), a.node, "reports until %.3f s, and %s until %.3f s", a.to.Seconds(), b.node, b.to.Seconds())
			}
		}
	}
}
