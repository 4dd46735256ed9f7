package apps

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

type verdict struct {
	phase    types.RepairPhase
	act      types.RepairAct
	shown    types.RepairAct // what phase and reason are about, where that is another act
	reason   string          // a sentence
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

// unrepaired is why an application is not repaired whatever may be wrong with it, ok where that is so.
func (f facts) unrepaired(a app) (v verdict, ok bool) {
	switch {
	case !f.unseenSince.IsZero() || !f.wholeSets || f.self.Name == "":
		return verdict{phase: types.RepairWaits, reason: "The state of the cluster is not fully known."}, true
	case !a.cfg.Activate:
		return verdict{phase: types.RepairWell, reason: "It is configured not to run."}, true
	case f.off.Off() || a.set.Former != nil: // before the status says so, and until it runs as before
		return verdict{phase: types.RepairWell, reason: "The workloads of the cluster are disabled; zedkube workloads enable starts it."}, true
	case a.set.Name == "":
		return verdict{phase: types.RepairWaits, reason: "It has no replica set in the cluster."}, true
	case !a.set.Deleted.IsZero():
		return verdict{phase: types.RepairWaits, reason: "Its replica set is being deleted."}, true
	}
	return verdict{}, false
}

// judge goes through what may be wrong, the worst first.
func (f facts) judge(a app) verdict {
	if v, ok := f.unrepaired(a); ok {
		return v
	}
	var waits verdict
	for _, rule := range []func(app) (verdict, bool){f.move, f.replace} {
		v, ok := rule(a)
		if ok && v.target != nil {
			return v
		}
		waits = v.withWaits(waits)
	}
	for _, rule := range []func(app) (verdict, bool){f.revive, f.failover, f.remount, f.unstick, f.move, f.failback, f.settle} {
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
	note := a.set.Note
	note.Moved, note.MovedTo = f.now, f.self.Name
	note.Stuck, note.StuckVMI = 0, "" // what failed before says nothing of what is tried now
	v.target = &target{app: a, node: f.self.Name, note: note}
	return v, true
}

// actSettle is no act for people: the note is wiped.
const actSettle types.RepairAct = "settle"

// settle wipes the note once the application runs: what was done for it is over,
// but for a node that is still to be fenced.
func (f facts) settle(a app) (verdict, bool) {
	want := types.RepairNote{Failback: a.set.Note.Failback, Returned: a.set.Note.LastFailback(), Moved: a.set.Note.Moved, MovedTo: a.set.Note.MovedTo}
	if f.unfenced(a.set.Note) {
		want = a.set.Note
		want.Stuck, want.StuckVMI = 0, ""
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
	n.Returned = n.LastFailback()
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

const (
	// stuckFor is how long a virtual machine may fail to start before it is made
	// again; each further time takes twice as long.
	stuckFor = 3 * time.Minute
	// slowFor is the same where nothing has failed: images are imported and
	// volumes attached in their own time.
	slowFor = 15 * time.Minute
	// remountFor is how much longer that is left to the agent of another node, where
	// k3s may have to be restarted for it.
	remountFor = 2 * time.Hour
	// outdatedFor is how long an instance waits with an affinity that its set no
	// longer has: the tables may not agree yet.
	outdatedFor = 10 * time.Second
	// mostStuck is how often it is tried until it runs.
	mostStuck = 3
)

// remount tells of what is done for a pod of this node whose volumes are not mounted. Nothing
// else is while that may help: another instance would only have waited for less long.
func (f facts) remount(a app) (verdict, bool) {
	if !slices.ContainsFunc(a.pods, func(p types.Pod) bool { return p.WaitsForVolumes() && slices.Contains(f.mounts.Pods, p.Key()) }) {
		return verdict{}, false
	}
	v := verdict{phase: f.mounts.Phase, act: types.ActRestart, reason: f.mounts.Reason}
	if v.phase != types.RepairRefused && v.phase != types.RepairGaveUp {
		return v, true
	}
	other, _ := f.unstick(a)
	if other.target != nil {
		return other, true
	}
	return v.withWaits(other), true
}

// unstick deletes a virtual machine that does not come to run although its node
// is ready; its replica set makes another one.
func (f facts) unstick(a app) (verdict, bool) { return f.renewOne(a, f.stuck) }

// replace deletes an instance whose set asks for another node by now. That holds
// up nothing else, as a failover from the former node.
func (f facts) replace(a app) (verdict, bool) { return f.renewOne(a, f.outdated) }

// renewOne is for the first instance that there is a reason to delete, of an
// application that does not run.
func (f facts) renewOne(a app, reason func(app, types.VMI) (why string, after time.Duration)) (verdict, bool) {
	if !a.cfg.IsVMI() || a.runs(f.nodes) {
		return verdict{}, false
	}
	for _, v := range a.vmis {
		if why, after := reason(a, v); why != "" {
			return f.renew(a, v, why, after), true
		}
	}
	return verdict{}, false
}

func (f facts) renew(a app, vmi types.VMI, why string, after time.Duration) verdict {
	key := "stuck/" + vmi.UID + "/" + after.String() // a container that crashes tells now this, now that
	v := verdict{phase: types.RepairWaits, act: types.ActUnstick, reason: why, evidence: []string{why}, keys: []string{key}}
	note := a.set.Note
	before, counted := note.Stuck, note.Stuck > 0 && note.StuckVMI == vmi.UID
	switch {
	case counted: // its deletion has failed, or was not begun
		before--
	case before >= mostStuck:
		v.phase = types.RepairGaveUp
		v.reason = fmt.Sprintf("%s It was recreated %d times without success; an operator must investigate.", why, before)
		return v
	}
	if after == slowFor && f.waitsElsewhere(a, vmi) {
		after += remountFor
	}
	if v.again = max(0, after<<before+f.turns(a)-f.lasted(key)); v.again > 0 {
		return v
	}
	if !counted {
		if note.Act != types.ActFailover { // what is left of one has to be remembered
			note = f.noted(a, types.ActUnstick, "")
		}
		note.Stuck, note.StuckVMI = before+1, vmi.UID
	}
	alone := a
	alone.vmis = []types.VMI{vmi}
	v.target = &target{app: alone, note: note}
	return v
}

// waitsElsewhere reports that a launcher waits for its volumes on another node, whose agent
// alone knows whether they are not mounted there. An agent without TLS may be from
// before MountRecovery, or has no cluster token.
func (f facts) waitsElsewhere(a app, vmi types.VMI) bool {
	return slices.ContainsFunc(a.pods, func(p types.Pod) bool {
		n := f.nodes[p.NodeName]
		return p.VMIName() == vmi.Name && p.NodeName != f.self.Name && p.WaitsForVolumes() && !n.Foreign() && n.Agent.TLS
	})
}

// stuck says why an instance counts as stuck if that lasts, "" where it does not.
func (f facts) stuck(a app, v types.VMI) (why string, after time.Duration) {
	if why, after := f.outdated(a, v); why != "" {
		return why, after
	}
	starting := v.Phase == types.VMIPending || v.Phase == types.VMIScheduling || v.Phase == types.VMIUnset || v.Phase == types.VMIScheduled
	if !starting || !v.Deleted.IsZero() {
		return "", 0
	}
	for _, p := range a.pods {
		if p.VMIName() != v.Name || p.Terminating() || p.NodeName == "" || f.nodes[p.NodeName].Ready != types.ConditionTrue {
			continue
		}
		if failed := failure(p); failed != "" {
			return fmt.Sprintf("Its launcher on %s has failed: %s.", p.NodeName, failed), stuckFor
		}
		if p.Phase == types.PodRunning {
			return fmt.Sprintf("Its launcher runs on %s, but its virtual machine stays %s.", p.NodeName, phaseName(v.Phase)), stuckFor
		}
		return fmt.Sprintf("Its launcher does not start on %s.", p.NodeName), slowFor
	}
	return "", 0
}

// outdated says of an instance that does not run on a Ready node that its set
// asks for another node by now, "" where it does not: KubeVirt gives an instance
// its affinity when it makes it. A node that does not report is failover's; one
// that reports that it is not ready can still stop what runs there.
func (f facts) outdated(a app, v types.VMI) (why string, after time.Duration) {
	is, was := a.set.Affinity, v.Affinity
	same := is.Node == was.Node && is.Required == was.Required
	ended := !v.Deleted.IsZero() || v.Phase.IsFinal()
	if same || ended || is.Node == "" || !is.Required && !was.Required {
		return "", 0
	}
	after = outdatedFor
	for _, node := range a.nodesOf(v) {
		switch f.nodes[node].Ready {
		case types.ConditionTrue:
			if v.Phase == types.VMIRunning {
				return "", 0
			}
		case types.ConditionFalse:
			after = stuckFor
		default:
			return "", 0
		}
	}
	return fmt.Sprintf("Its instance was created to run on %s and is not running; it should now run on %s.", cmp.Or(was.Node, "any node"), is.Node), after
}

// nodesOf are the nodes that an instance or a launcher of it is on.
func (a app) nodesOf(v types.VMI) []string {
	var nodes []string
	if v.NodeName != "" {
		nodes = append(nodes, v.NodeName)
	}
	for _, p := range a.pods {
		if p.VMIName() == v.Name && p.NodeName != "" && !finished(p) {
			nodes = append(nodes, p.NodeName)
		}
	}
	return nodes
}

// waitsAfterFailure are the kubelet's reasons that tell a container that waits after
// a failure from one that has not started yet.
var waitsAfterFailure = []string{
	"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName",
	"CreateContainerError", "CreateContainerConfigError", "RunContainerError",
}

// failure says what of a pod has failed, "" for nothing.
func failure(p types.Pod) string {
	for _, c := range p.Containers {
		switch {
		case slices.Contains(waitsAfterFailure, c.Waiting):
			return fmt.Sprintf("container %s: %s", c.Name, c.Waiting)
		case c.Waiting == "" && !c.Now.Finished.IsZero() && c.Now.ExitCode != 0:
			return fmt.Sprintf("container %s: exit code %d", c.Name, c.Now.ExitCode)
		}
	}
	if p.Phase == types.PodFailed {
		return "the pod is Failed"
	}
	return ""
}
