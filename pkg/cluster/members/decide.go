package members

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// configured is what the controller says of the members of this node's cluster.
type configured struct {
	cluster uuid.UUID
	masters []uuid.UUID // nil or empty: it names none, which is no opinion
	tie     uuid.UUID   // uuid.Nil for no tie-breaker
	device  uuid.UUID   // this one
}

// facts is everything decide may look at.
type facts struct {
	now    time.Time     // the wall clock, to be shown only
	uptime time.Duration // what everything is measured with

	belongs    bool // to a cluster, whose configuration is known
	valid      bool // that configuration is the controller's present word
	fetched    bool // which was reached at the last try
	configured configured

	seen  bool // the API server answers and the tables are complete
	own   types.Node
	known bool
	nodes []types.Node // by name
	pods  []types.Pod  // of the applications on the tie-breaker, by key

	past     past
	interval time.Duration // between two times that zedagent asks the controller

	looked  bool          // no lock of ours is left over from a former process
	running task          // under way
	pause   time.Duration // no repair before this uptime
	rest    time.Duration // no removal before this uptime
	tried   task          // the last one that has ended
	reason  string        // what it met, "" for nothing
}

// kind is what there is to repair.
type kind int

const (
	nothing kind = iota
	unlock       // look for a lock that a former process of ours took and has no use for
	tie          // the tie-breaker is schedulable, or runs workload
	remove       // a Node whose device is no master any more
)

// task is one repair.
type task struct {
	kind kind
	node types.Node // it is about
	pods []types.Pod
	rules
}

// same reports that it is the same thing to repair.
func (t task) same(other task) bool { return t.kind == other.kind && t.node.UID == other.node.UID }

// action is everything decide may ask for.
type action struct {
	publish           *types.ClusterMembers // nil: nothing is to be said
	stale             []types.Node
	task              task
	cancel            bool // the repair under way has lost its reason
	pauseAfterRemoval bool // nothing is left to repair, so the next repair is not one more try
	again             time.Duration
}

// decide says what is to be repaired, and why it is not.
func decide(f facts) action {
	if !f.belongs {
		return action{cancel: f.running.kind != nothing}
	}
	a := action{stale: stale(f.nodes, f.configured)}
	out := &types.ClusterMembers{Masters: f.configured.masters, Repairing: f.running.kind != nothing}
	a.publish = out
	for _, n := range f.nodes {
		if f.configured.isTie(n) {
			out.TieBreaker = n.Name
		}
	}
	want := next(f, a.stale, out)
	for _, n := range a.stale {
		why := keeps(f, n)
		if why == "" && (want.kind == nothing || f.tried.node.UID == n.UID) {
			why = out.Why
		}
		since := f.past.stale[n.UID].since
		if since.IsZero() { // the nodes have not all been seen yet
			since = f.now
		}
		out.Stale = append(out.Stale, types.StaleMember{Node: n.Name, UUID: n.UUID, Since: since, Why: f.advised(why, n), Joins: !f.past.wasNamed(n)})
	}
	switch {
	case f.running.kind != nothing:
		a.cancel = f.running.kind != unlock && (!f.valid || !f.fetched || !f.running.configured.same(f.configured))
	case f.uptime < f.pause:
		a.again = f.pause - f.uptime
	case want.kind == nothing:
		a.pauseAfterRemoval = true
		a.again = f.due(a.stale)
	default:
		a.task, out.Repairing = want, true
	}
	return a
}

// next is the most urgent repair; out says why there is none although something
// is not as it should be.
func next(f facts, stale []types.Node, out *types.ClusterMembers) task {
	if !f.looked && f.seen && f.known {
		out.Why = f.reason
		return task{kind: unlock, node: f.own, rules: f.rules()}
	}
	all, why := wanted(f, stale)
	switch {
	case len(all) == 0 && why == "":
	case !f.valid:
		out.Why = "the cluster configuration is currently not valid"
	case !f.seen || !f.known:
		out.Why = "the state of the cluster is currently unknown"
	case !f.fetched:
		out.Why = "the last attempt to reach the controller failed, so its configuration may be out of date"
	case len(all) == 0:
		out.Why = why
	default:
		return turn(all, f, out)
	}
	return task{}
}

// turn is whichever follows the one that was tried last: what hinders one need
// not hinder another.
func turn(all []task, f facts, out *types.ClusterMembers) task {
	i := slices.IndexFunc(all, f.tried.same)
	if i >= 0 {
		out.Why = f.reason
	}
	return all[(i+1)%len(all)]
}

// wanted is what is to be repaired, no matter who may; why is for the first Node that
// has to stay as it is.
func wanted(f facts, stale []types.Node) (all []task, why string) {
	for _, n := range f.nodes {
		if !f.configured.isTie(n) {
			continue
		}
		pods := workload(n, f.pods)
		if n.Unschedulable && len(pods) == 0 {
			continue
		}
		if stays := f.rules().differentlyConfigured(f.nodes, onTie); stays != "" {
			why = cmp.Or(why, stays)
			continue
		}
		all = append(all, task{kind: tie, node: n, pods: pods, rules: f.rules()})
	}
	for _, n := range stale {
		stays := keeps(f, n)
		if stays == "" {
			all = append(all, task{kind: remove, node: n, rules: f.rules()})
		}
		why = cmp.Or(why, stays)
	}
	return all, why
}

// keeps says why the stale node n is not to be removed at this moment.
func keeps(f facts, n types.Node) string {
	why := f.rules().notRemovable(n, f.nodes)
	if why == "" && f.uptime < f.rest {
		why = "a member has just been removed, and the cluster must prove healthy without it first"
	}
	return why
}

func (f facts) rules() rules {
	return rules{configured: f.configured, past: f.past, interval: f.interval}
}

// advised is why a stale Node stays, with what an operator can do about it once
// it has been stale for long.
func (f facts) advised(why string, n types.Node) string {
	if why == "" || !f.past.long(n) || strings.Contains(why, command(n)) {
		return why
	}
	return why + "; " + command(n)
}

// due is the time until something may be removed that may not now, 0 for nothing
// that is only waited for.
func (f facts) due(stale []types.Node) time.Duration {
	earliest := max(f.rest-f.uptime, 0)
	for _, n := range stale {
		t := f.past.stale[n.UID]
		left := t.asked + intervals*f.interval - f.uptime
		if t.holds && left > 0 && (earliest == 0 || left < earliest) {
			earliest = left
		}
	}
	return earliest
}

// workload is what may not stay on the tie-breaker. Of a node that is not Ready
// nothing can be evicted.
func workload(n types.Node, pods []types.Pod) []types.Pod {
	var out []types.Pod
	for _, p := range pods {
		ends := p.Terminating() || p.Phase == types.PodSucceeded || p.Phase == types.PodFailed
		if p.NodeName == n.Name && n.Ready == types.ConditionTrue && !ends && p.Owner.Kind != "DaemonSet" && p.Owner.Kind != "Node" {
			out = append(out, p)
		}
	}
	return out
}
