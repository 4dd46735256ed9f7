package members

import (
	"cmp"
	"fmt"
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
	left       bool // it did, and has left it
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

	locked  bool          // this node has the drain lock for a member, and not for the task under way
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
	unlock       // free the drain lock that a removal from this node has left behind
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
	if f.locked && f.seen && f.known {
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
		why = "a member has just been removed, and the cluster must be healthy without it first"
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

func (t configured) isTie(n types.Node) bool {
	id, err := uuid.Parse(n.UUID)
	return err == nil && t.tie != uuid.Nil && id == t.tie
}

// same reports that the controller says the same of the members.
func (t configured) same(other configured) bool {
	return t.cluster == other.cluster && t.tie == other.tie && t.device == other.device && sameSet(t.masters, other.masters)
}

func (t configured) names(n types.Node) bool {
	id, err := uuid.Parse(n.UUID)
	return err == nil && slices.Contains(t.masters, id)
}

// rules is what a removal is judged by, beside the Nodes.
type rules struct {
	configured configured
	past       past
	interval   time.Duration // between two times that zedagent asks the controller
}

// stale lists the control-plane Nodes whose devices are no masters. A Node that
// does not say which device it is may be anyone's, and is left alone; so is
// every Node while the list is empty, which is no opinion.
func stale(nodes []types.Node, t configured) []types.Node {
	if len(t.masters) == 0 {
		return nil
	}
	var out []types.Node
	for _, n := range nodes {
		id, err := uuid.Parse(n.UUID)
		if err == nil && n.IsServer() && id != t.device && !t.names(n) {
			out = append(out, n)
		}
	}
	return out
}

// notRemovable says why the stale node n is not to be removed now, "" for it is. It is
// asked again, of Nodes that were just read, under the repair lease.
func (r rules) notRemovable(n types.Node, nodes []types.Node) string {
	switch {
	case !slices.Contains(r.configured.masters, r.configured.device):
		return "the controller does not name this node as a master"
	case r.configured.isTie(n):
		return "the controller does not name node " + n.Name + " as a master, but as the tie-breaker"
	case n.Ready == types.ConditionTrue && !n.Foreign():
		return "node " + n.Name + " is Ready and runs zedkube, which drains it before it leaves"
	case !r.past.wasNamed(n):
		return "the controller has never named node " + n.Name + " as a master, as far as this node knows: it may be about to join; " + command(n)
	case !r.past.answered(n, r.interval):
		return fmt.Sprintf("the controller must omit node %s for %d configuration intervals first", n.Name, intervals)
	}
	if why := r.differentlyConfigured(nodes, onMasters); why != "" {
		return why
	}
	if lack := types.LacksQuorum(nodes, n.Name); lack != "" {
		return "without node " + n.Name + " " + lack
	}
	if goesDown(n) && !r.past.long(n) {
		return "node " + n.Name + " is being drained or rebooted: waiting for it for " + patience.String() + " at most; " + command(n)
	}
	return ""
}

// goesDown reports that a drain or a reboot is under way on n. EVE's zedkube
// cordons without saying what for.
func goesDown(n types.Node) bool {
	return n.CordonedForDrain() || n.Unschedulable && n.MaybeForeign() || n.DrainInProgress == types.ConditionTrue || n.Drained == types.ConditionTrue
}

// command is what an operator who knows more than zedkube can do.
func command(n types.Node) string {
	return "if it is gone for good: zedkube nodes remove " + n.Name
}

// subject is something that all members are told alike.
type subject int

const (
	onMasters subject = iota
	onTie
)

func (s subject) String() string {
	if s == onTie {
		return "tie-breaker"
	}
	return "masters"
}

// agrees reports that a stamp says the same on s as t.
func (t configured) agrees(stamp types.AgentStamp, s subject) bool {
	if s == onTie {
		return stamp.Cluster == t.cluster && stamp.TieBreaker == t.tie
	}
	return stamp.Cluster == t.cluster && sameSet(stamp.Masters, t.masters)
}

// differentlyConfigured says which node of the cluster was given something else on s, ""
// for none. Each says so in its own stamp (docs/wire.md, "Nodes"). A server that
// is Ready has to; the stamp of one that is not Ready, and that of a worker, counts
// while it is current.
func (r rules) differentlyConfigured(nodes []types.Node, s subject) string {
	t := r.configured
	for _, n := range nodes {
		if !r.past.counts(n) {
			continue
		}
		stamp := n.Agent
		if n.Ready == types.ConditionTrue && n.Foreign() {
			stamp = nil // what stands there is of an agent that has ended
		}
		has := stamp != nil && stamp.Cluster == t.cluster && (len(stamp.Masters) > 0 || len(t.masters) == 0)
		_, anybody := uuid.Parse(n.UUID)
		switch {
		case (n.Ready != types.ConditionTrue || !n.IsServer()) && !has:
			// It need not say anything, and what it said last is no list of this cluster.
		case len(t.masters) > 0 && anybody == nil && !t.names(n) && !has:
			// It is no member, or knows that it is none.
		case stamp == nil:
			return fmt.Sprintf("node %s has no zedkube that reports which %s it was configured with", n.Name, s)
		case !t.agrees(*stamp, s):
			return fmt.Sprintf("node %s has not been configured with the same %s", n.Name, s)
		}
	}
	return ""
}

func sameSet(a, b []uuid.UUID) bool { return within(a, b) && within(b, a) }

// within reports that each of a is one of b.
func within(a, b []uuid.UUID) bool {
	return !slices.ContainsFunc(a, func(id uuid.UUID) bool { return !slices.Contains(b, id) })
}
