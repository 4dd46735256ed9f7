package members

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// told is what the controller says of the members of this node's cluster.
type told struct {
	cluster uuid.UUID
	masters []uuid.UUID // nil or empty: it names none, which is no opinion
	tie     uuid.UUID   // uuid.Nil for no tie-breaker
	device  uuid.UUID   // this one
}

// facts is everything decide may look at.
type facts struct {
	now    time.Time     // the wall clock, to be shown only
	uptime time.Duration // what everything is measured with

	belongs bool // to a cluster, whose configuration is known
	valid   bool // that configuration is the controller's present word
	fetched bool // which was reached at the last try
	told    told

	seen  bool // the API server answers and the tables are whole
	own   types.Node
	known bool
	nodes []types.Node // by name
	pods  []types.Pod  // of the applications on the tie-breaker, by key

	since   map[string]time.Time
	looked  bool          // no lock of ours is left over from a former process
	running task          // under way
	pause   time.Duration // no repair before this uptime
	rest    time.Duration // no removal before this uptime
	tried   task          // the last one that has ended
	hinders string        // what it met, "" for nothing
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
	told told
}

// same reports that it is the same thing to repair.
func (t task) same(other task) bool { return t.kind == other.kind && t.node.UID == other.node.UID }

// action is everything decide may ask for.
type action struct {
	publish *types.ClusterMembers // nil: nothing is to be said
	stale   []types.Node
	task    task
	cancel  bool // the repair under way has lost its reason
	calm    bool // nothing is left to repair, so the next repair is not one more try
	again   time.Duration
}

// decide says what is to be repaired, and why it is not.
func decide(f facts) action {
	if !f.belongs {
		return action{cancel: f.running.kind != nothing}
	}
	a := action{stale: stale(f.nodes, f.told)}
	out := &types.ClusterMembers{Masters: f.told.masters, Repairing: f.running.kind != nothing}
	a.publish = out
	for _, n := range f.nodes {
		if f.told.isTie(n) {
			out.TieBreaker = n.Name
		}
	}
	want := next(f, a.stale, out)
	for _, n := range a.stale {
		at, ok := f.since[n.UID]
		if !ok {
			at = f.now
		}
		why := keeps(f, n)
		if why == "" && (want.kind == nothing || f.tried.node.UID == n.UID) {
			why = out.Why
		}
		out.Stale = append(out.Stale, types.StaleMember{Node: n.Name, UUID: n.UUID, Since: at, Why: why})
	}
	switch {
	case f.running.kind != nothing:
		a.cancel = f.running.kind != unlock && (!f.valid || !f.fetched || !f.running.told.same(f.told))
	case f.uptime < f.pause:
		a.again = f.pause - f.uptime
	case want.kind == nothing:
		a.calm = true
		a.again = f.rest - f.uptime
	default:
		a.task, out.Repairing = want, true
	}
	return a
}

// next is the most urgent repair; out says why there is none although something
// is not as it should be.
func next(f facts, stale []types.Node, out *types.ClusterMembers) task {
	if !f.looked && f.seen && f.known {
		out.Why = f.hinders
		return task{kind: unlock, node: f.own, told: f.told}
	}
	all, why := wanted(f, stale)
	switch {
	case len(all) == 0 && why == "":
	case !f.valid:
		out.Why = "the cluster configuration is not valid at present"
	case !f.seen || !f.known:
		out.Why = "the cluster is not seen at present"
	case !f.fetched:
		out.Why = "the controller was not reached at the last try, so what it said may be old"
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
		out.Why = f.hinders
	}
	return all[(i+1)%len(all)]
}

// wanted is what is to be repaired, whoever may; why is for the first stale Node
// that has to stay.
func wanted(f facts, stale []types.Node) (all []task, why string) {
	for _, n := range f.nodes {
		if !f.told.isTie(n) {
			continue
		}
		if pods := workload(n, f.pods); !n.Unschedulable || len(pods) > 0 {
			all = append(all, task{kind: tie, node: n, pods: pods, told: f.told})
		}
	}
	for _, n := range stale {
		stays := keeps(f, n)
		if stays == "" {
			all = append(all, task{kind: remove, node: n, told: f.told})
		}
		why = cmp.Or(why, stays)
	}
	return all, why
}

// keeps says why the stale node n is not to be removed at this moment.
func keeps(f facts, n types.Node) string {
	why := unfit(n, f.nodes, f.told)
	if why == "" && f.uptime < f.rest {
		why = "a member was removed a moment ago, and the cluster has to show first that it goes on without"
	}
	return why
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
