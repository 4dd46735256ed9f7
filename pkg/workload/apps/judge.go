package apps

import (
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// verdict is what is made of one application.
type verdict struct {
	phase    types.RepairPhase
	act      types.RepairAct
	reason   string // a sentence
	lost     types.Node
	evidence []string
	keys     []string // what is seen, so that its beginning is remembered
	look     bool     // a fresh look at volumes and Leases is wanted
	again    time.Duration
	target   *target // act on this now
}

// target is an application as one task acts on it.
type target struct {
	app
	note  types.RepairNote // what is written on the set with the first step
	asked bool             // by hand
	force bool             // by hand, although nothing is proved
	node  string           // where it is to be, for its affinity and for a failback
}

// judge goes through what may be wrong, the worst first.
func (f facts) judge(a app) verdict {
	switch {
	case !f.unseenSince.IsZero() || !f.wholeSets || f.self.Name == "":
		return verdict{phase: types.RepairWaits, reason: "The state of the cluster is not fully known."}
	case !a.cfg.Activate:
		return verdict{phase: types.RepairWell, reason: "It is configured not to run."}
	case a.set.Name == "":
		return verdict{phase: types.RepairWaits, reason: "It has no replica set in the cluster."}
	case !a.set.Deleted.IsZero():
		return verdict{phase: types.RepairWaits, reason: "Its replica set is being deleted."}
	}
	var waits verdict
	for _, rule := range []func(app) (verdict, bool){f.move, f.replace} {
		v, ok := rule(a)
		if ok && v.target != nil {
			return v
		}
		waits = v.withWaits(waits)
	}
	for _, rule := range []func(app) (verdict, bool){f.revive, f.failover, f.unstick, f.move, f.failback, f.settle} {
		if v, ok := rule(a); ok {
			return v.withWaits(waits)
		}
	}
	if !a.runs(f.nodes) {
		return verdict{phase: types.RepairWaits, reason: f.whyNot(a)}
	}
	return verdict{phase: types.RepairWell, reason: "It runs."}
}

// withWaits is v that also remembers and waits for what another verdict does.
func (v verdict) withWaits(waits verdict) verdict {
	v.keys = slices.Concat(v.keys, waits.keys)
	if waits.again > 0 && (v.again == 0 || waits.again < v.again) {
		v.again = waits.again
	}
	return v
}

// whyNot says why an application does not run yet, where nothing is to be done.
func (f facts) whyNot(a app) string {
	p, ok := a.representativePod(f.self.Name)
	switch {
	case !ok:
		return "It has no pod yet."
	case p.Unschedulable != "":
		return "The scheduler finds no node for it: " + p.Unschedulable
	case p.NodeName == "":
		return "Its pod is not scheduled yet."
	case f.nodes[p.NodeName].Ready != types.ConditionTrue:
		return fmt.Sprintf("Node %s, where its pod is, is not ready.", p.NodeName)
	}
	if v, ok := a.vmi(p.VMIName()); ok && v.Phase != types.VMIRunning {
		return fmt.Sprintf("Its virtual machine is %s on %s.", phaseName(v.Phase), p.NodeName)
	}
	return fmt.Sprintf("Its pod is %s on %s.", p.Phase, p.NodeName)
}

func phaseName(p types.VMIPhase) string {
	if p == types.VMIUnset {
		return "new"
	}
	return string(p)
}

// lasted is how long something has been seen; 0 if it is new.
func (f facts) lasted(key string) time.Duration {
	began, ok := f.since[key]
	if !ok {
		return 0
	}
	return f.uptime - began
}

// leftAtNone is how long a set may want no copies before that counts as left
// behind: EVE's zedkube goes through 0 in its failover.
const leftAtNone = 30 * time.Second

// revive puts a set back to one copy that someone has left at none. EVE takes
// an application down by deleting its set, never in this way.
func (f facts) revive(a app) (verdict, bool) {
	if a.set.Wanted > 0 {
		return verdict{}, false
	}
	key := "none/" + a.set.UID
	v := verdict{phase: types.RepairWaits, act: types.ActRevive, reason: "Its replica set is scaled to 0.", keys: []string{key}}
	if v.again = max(0, leftAtNone+f.turns(a)-f.lasted(key)); v.again == 0 {
		v.target = &target{app: a, note: f.noted(a, types.ActRevive, "")}
	}
	return v, true
}

// move makes the affinity of a virtual machine follow the designated node,
// which alone knows that it is.
func (f facts) move(a app) (verdict, bool) {
	required := a.cfg.AffinityType == types.AffinityRequired
	if !a.cfg.IsVMI() || !a.cfg.IsDesignatedNodeID || a.set.Affinity.Node == f.self.Name && a.set.Affinity.Required == required {
		return verdict{}, false
	}
	v := verdict{phase: types.RepairWaits, act: types.ActMove, reason: "Its affinity does not name this node, its designated node."}
	why, again := f.notMoved(a)
	if why != "" {
		v.reason, v.again = v.reason+" "+why, again
		return v, true
	}
	v.target = &target{app: a, node: f.self.Name, note: f.moved(a)}
	return v, true
}

// moved is the note of a set whose affinity changes: what failed before says
// nothing of what is tried now.
func (f facts) moved(a app) types.RepairNote {
	n := a.set.Note
	n.Moved, n.MovedTo, n.Stuck = f.now, f.self.Name, 0
	return n
}

// actSettle is no act for people: the note is wiped.
const actSettle types.RepairAct = "settle"

// settle wipes the note once the application runs: what was done for it is over,
// but for a node that is still to be fenced.
func (f facts) settle(a app) (verdict, bool) {
	want := types.RepairNote{Failback: a.set.Note.Failback, Moved: a.set.Note.Moved, MovedTo: a.set.Note.MovedTo}
	if f.unfenced(a.set.Note) {
		want = a.set.Note
		want.Stuck = 0
	}
	if a.set.Note.Act == types.ActFailback && f.now.Sub(a.set.Note.At).Abs() < eachFailback {
		return verdict{}, false
	}
	if a.set.Note == want || !a.runs(f.nodes) {
		return verdict{}, false
	}
	key := "settle/" + a.set.UID
	v := verdict{phase: types.RepairWell, act: actSettle, reason: "It runs.", keys: []string{key}}
	if v.again = f.early(a, key); v.again == 0 {
		v.target = &target{app: a, note: want}
	}
	return v, true
}

// noted is what to write on the set when an act begins.
func (f facts) noted(a app, act types.RepairAct, lost string) types.RepairNote {
	n := a.set.Note
	if n.Act != act || lost != "" && n.Node != lost {
		n.Since = f.now
	}
	if lost != "" || !f.unfenced(n) {
		n.Node, n.NodeUID = lost, f.nodes[lost].UID
	}
	n.Act, n.By, n.Step, n.At = act, f.self.Name, "", f.now
	return n
}

// turn is how long each node waits for the one before it. The first one acts
// under the repair lease; the others find it done.
const turn = 5 * time.Second

// early is how long this node still leaves an act to those before it. What is to
// be done has been seen for as long as key.
func (f facts) early(a app, key string) time.Duration { return max(0, f.turns(a)-f.lasted(key)) }

// turns are those of the nodes before this one: the node that has the
// application's pod, then by name.
func (f facts) turns(a app) time.Duration {
	first := ""
	if p, ok := a.representativePod(f.self.Name); ok {
		first = p.NodeName
	}
	before := 0
	for _, n := range f.nodes {
		if n.Name != f.self.Name && n.Ready == types.ConditionTrue && !n.Foreign() && (n.Name == first || f.self.Name != first && n.Name < f.self.Name) {
			before++
		}
	}
	return time.Duration(before) * turn
}
