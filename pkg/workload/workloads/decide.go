package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

const (
	// turn is how long each node waits for the one before it to act.
	turn = 5 * time.Second
	// fresh is how long a look at the volumes counts, and between two looks.
	fresh = 10 * time.Second
	// askedFor is how long a request stands: one that could not be carried out for longer
	// would come as a surprise, after the same was asked for and taken back on another node.
	askedFor = 5 * time.Minute
	// mostWaits bounds what is published.
	mostWaits = 20
	// longestText bounds what the API server says in one of them.
	longestText = 500
)

type facts struct {
	now     time.Time
	uptime  time.Duration
	unseen  string // why the cluster is not fully known, "" where it is
	failed  string // why the last task failed, "" where it did not
	working bool   // a task is under way
	memory

	last     types.WorkloadsStatus
	request  types.WorkloadsRequest
	disabled types.DisabledWorkloads // without UID while they are enabled
	self     types.Node
	nodes    map[string]types.Node
	sets     map[string]types.AppSet
	machines map[string]types.VirtualMachine
	copies   map[string][]running // of sets that are disabled, or are being or were deleted, by UID
	paused   map[string]int32     // instances of sets that are paused and not disabled, by UID
}

// memory is what this process remembers. Losing it only costs time, but for claims of what is
// gone by then.
type memory struct {
	claims  map[string]bool // of all that was seen to stop while the workloads are disabled
	volumes volumes
	heard   time.Time
	unmade  time.Time     // RequestedAt of a request that may be tried again, as it certainly was not carried out
	rest    time.Duration // no task before this uptime
	since   time.Duration // uptime since when something is to be changed; 0 for nothing
	stopped time.Duration // uptime since when nothing runs any more; 0 while something does
}

// volumes is the last look at them; at is zero for none.
type volumes struct {
	at      time.Duration
	storage types.Storage
	err     string
}

// running is a pod or an instance of a set.
type running struct {
	what, set, node string
	ends, over      bool // over: it has failed, or succeeded
	claims          []string
}

// change is one write to the cluster.
type change struct {
	cordon, uncordon string // a node

	set   *types.AppSet
	scale types.SetScale

	machine *types.VirtualMachine
	run     types.RunState
	former  *types.FormerRun
}

type action struct {
	memory
	status  types.WorkloadsStatus
	ask     bool
	retry   bool // what is asked was asked before, and may have been carried out
	changes []change
	look    bool
	over    bool // what the last task failed at is done, or is not to be done any more
	again   time.Duration
}

// decide says what is to be done now. What the cluster says decides, and not which node was
// asked: any node that sees the cluster acts, the first one first.
func decide(f facts) action {
	a := action{memory: f.memory, status: f.last}
	if !f.heard.IsZero() {
		a.status.Heard = f.heard
	}
	if f.unmade.Equal(a.status.Tried) {
		a.status.Tried, a.status.TriedUID = time.Time{}, ""
	}
	a.unmade = time.Time{}
	// A request whose outcome is not known may have been carried out, and taken back on another node
	// since: that to disable is never made twice, that to enable deletes no other object than before.
	at := f.request.RequestedAt
	tried := !at.IsZero() && at.Equal(a.status.Tried) && !at.Equal(a.status.Heard) && !f.working
	if tried && f.unseen == "" && f.disabled.UID != a.status.TriedUID {
		a.status.Heard, a.heard, tried, a.over = at, at, false, true
	}
	unsure := tried && f.request.Disable
	asked := f.asks(a.status.Heard) && !unsure
	a.status.Waits, a.status.Stale = nil, f.unseen != ""
	if a.status.Stale {
		a.since, a.stopped = 0, 0
		a.waits("The cluster is not fully known: %s.", f.unseen)
	} else {
		a.ask, a.retry = asked && !f.working && f.uptime >= f.rest, tried
		switch {
		case a.ask && f.request.Disable:
			a.status.Tried, a.status.TriedUID = at, ""
		case a.ask: // without UID where nothing is disabled: what is disabled later is not to be deleted
			a.status.Tried, a.status.TriedUID = at, f.disabled.UID
		}
		f.judge(&a)
		a.over = a.over || !asked && !unsure && len(a.changes) == 0
		f.pace(&a)
	}
	if f.failed != "" && !a.over {
		a.waits("The last try failed: %s.", f.failed)
	}
	switch when := at.UTC().Format(time.RFC3339); {
	case asked:
		a.waits("The request of %s has not been carried out yet.", when)
		a.soon(max(f.rest-f.uptime, 0))
	case unsure:
		a.waits("The request of %s may have been carried out, and is not repeated: ask again if the workloads are to be disabled.", when)
	case !at.IsZero() && !at.Equal(a.status.Heard):
		a.waits("The request of %s was not carried out in time, and is void.", when)
	}
	return a
}

// judge says how far the workloads are what the cluster says, and what to change.
func (f facts) judge(a *action) {
	a.status.UID, a.status.By, a.status.Reason = f.disabled.UID, f.disabled.By, f.disabled.Reason
	phase, until := types.WorkloadsEnabled, types.WorkloadsEnabling
	if f.disabled.UID != "" {
		phase, until = types.WorkloadsDisabled, types.WorkloadsDisabling
		f.disable(a)
	} else {
		f.enable(a)
	}
	if len(a.changes) > 0 || len(a.status.Waits) > 0 {
		phase = until
	}
	if a.status.Phase != phase {
		a.status.Phase, a.status.Since = phase, f.now
	}
	if over := len(a.status.Waits) - mostWaits; over > 0 {
		a.status.Waits = append(a.status.Waits[:mostWaits], fmt.Sprintf("And %d more.", over))
	}
}

// asks reports whether there is a request that is still to be carried out.
func (f facts) asks(heard time.Time) bool {
	at := f.request.RequestedAt
	return !at.IsZero() && !at.Equal(heard) && types.AskedWithin(askedFor, at, f.now, f.request.Uptime, f.uptime)
}

// pace holds changes back until it is this node's turn. Where another node is faster, they
// are no longer to be made.
func (f facts) pace(a *action) {
	if len(a.changes) == 0 {
		a.since = 0
		return
	}
	if a.since == 0 {
		a.since = f.uptime
	}
	before := 0
	for _, n := range f.nodes {
		if n.Name < f.self.Name && n.Ready == types.ConditionTrue && !n.Foreign() {
			before++
		}
	}
	if wait := max(f.rest, a.since+time.Duration(before)*turn) - f.uptime; wait > 0 || f.working || a.ask {
		a.changes = nil
		a.soon(wait)
	}
}

// disable stops everything. Before that, nothing may start any more: EVE raises a set that it
// finds at 0.
func (f facts) disable(a *action) {
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		if n := f.nodes[name]; !n.Unschedulable && n.Deleted.IsZero() {
			a.change(change{cordon: name}, "Node %s is still schedulable.", name)
		}
	}
	if len(a.changes) > 0 {
		return
	}
	claims := map[string]bool{}
	maps.Copy(claims, f.claims)
	a.claims = claims
	for _, key := range slices.Sorted(maps.Keys(f.sets)) {
		if s := f.sets[key]; !s.Owned && s.Deleted.IsZero() && (s.Former != nil || s.Wanted > 0) {
			add(claims, types.NamespaceApps, s.Claims)
			f.stopSet(a, s)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(f.copies)) {
		for _, r := range f.copies[uid] {
			add(claims, types.NamespaceApps, r.claims)
			a.waits("%s of %s still stops%s.", r.what, r.set, f.where(r.node))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.machines)) {
		m := f.machines[key]
		stops := m.Created && (m.Deleted || m.Run.Halted())
		if !stops && (m.Deleted || m.Former == nil && m.Idle()) {
			continue
		}
		add(claims, m.Namespace, m.Claims)
		former := m.Former
		if former == nil {
			former = &types.FormerRun{UID: m.UID, RunState: m.Run}
		}
		if stops {
			a.waits("VirtualMachine %s still stops.", key)
		} else if !m.Run.Halted() {
			halted := types.RunState{Strategy: types.StrategyHalted}
			a.change(change{machine: &m, run: halted, former: former}, "VirtualMachine %s is to be halted.", key)
		}
	}
	f.detached(a, claims)
}

// stopSet scales a set to 0. Once no instance of it is left, KubeVirt is to make none whatever
// number somebody writes: a paused set is left as it is.
func (f facts) stopSet(a *action, s types.AppSet) {
	to := types.SetScale{Former: s.Former, Paused: s.Kind == types.KindVMIReplicaSet && s.Former != nil && len(f.copies[s.UID]) == 0}
	if s.Former == nil {
		to.Former = &types.FormerScale{UID: s.UID, Replicas: s.Wanted, Paused: s.Paused, Instances: f.paused[s.UID]}
	}
	if settled := s.Former != nil && s.Paused == to.Paused && (s.Paused || s.Wanted == 0); !settled {
		a.change(change{set: &s, scale: to}, "%s %s is to be scaled to 0.", s.Kind, s.Name)
	}
}

func (f facts) where(node string) string {
	switch {
	case node == "":
		return ""
	case f.nodes[node].Ready != types.ConditionTrue:
		return " on node " + node + ", which is not Ready"
	}
	return " on node " + node
}

// detached waits until the volumes are, by a look from after everything has stopped.
func (f facts) detached(a *action, claims map[string]bool) {
	if len(a.changes) > 0 || len(a.status.Waits) > 0 || len(claims) == 0 {
		a.stopped = 0
		return
	}
	if a.stopped == 0 {
		a.stopped = f.uptime
	}
	if f.last.Phase == types.WorkloadsDisabled && f.last.UID == f.disabled.UID {
		return
	}
	v := f.volumes
	switch {
	case v.at < a.stopped:
		a.waits("The volumes are being checked.")
	case v.err != "":
		a.waits("The volumes cannot be read: %s.", v.err)
	}
	for _, volume := range v.storage.Volumes {
		if v.at >= a.stopped && claims[volume.Claim] && (volume.State != "detached" || volume.Running) {
			a.waits("Volume %s of %s is still attached%s.", volume.Name, volume.Claim, f.where(volume.Engine))
		}
	}
	if len(a.status.Waits) > 0 {
		f.wantLook(a)
	}
}

func (f facts) wantLook(a *action) {
	a.look = f.volumes.at == 0 || f.volumes.at < a.stopped || f.uptime-f.volumes.at >= fresh
	a.soon(fresh)
}

// enable brings back what the annotations say, and nothing else.
func (f facts) enable(a *action) {
	a.stopped, a.claims = 0, nil
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		switch n := f.nodes[name]; {
		case n.Cordoner() != types.CordonedDisabled || !n.Deleted.IsZero():
		case n.DrainInProgress == types.ConditionTrue || n.Drained == types.ConditionTrue || n.DrainReason == types.DrainForced: // it needs the cordon until it has rebooted
			a.waits("Node %s is being drained, and stays cordoned until then.", name)
		default:
			a.change(change{uncordon: name}, "Node %s is still cordoned.", name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.sets)) {
		s := f.sets[key]
		if s.Former == nil || !s.Deleted.IsZero() {
			continue
		}
		// Of a node that does not answer, the failover takes what is left there.
		ending := slices.IndexFunc(f.copies[s.UID], func(r running) bool { return r.ends && f.nodes[r.node].Ready == types.ConditionTrue })
		if ending >= 0 {
			a.waits("%s of %s still stops.", f.copies[s.UID][ending].what, s.Name)
		} else if why := f.unusable(a, types.NamespaceApps, s.Claims); why != "" {
			a.waits("%s %s waits: %s.", s.Kind, s.Name, why)
		} else if to := f.former(s); to.Former != nil && s.Wanted == to.Replicas && !s.Paused {
			a.waits("%s %s is starting.", s.Kind, s.Name)
		} else {
			a.change(change{set: &s, scale: to}, "%s %s is to be scaled to %d.", s.Kind, s.Name, to.Replicas)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.machines)) {
		m := f.machines[key]
		if m.Former == nil || m.Deleted {
			continue
		}
		// KubeVirt starts none that got RerunOnFailure while it was stopping, and none with Manual, which
		// is given to it once it runs.
		byHand := m.Former.Strategy == types.StrategyManual
		if why := f.unusable(a, m.Namespace, m.Claims); m.Run.Halted() && m.Created {
			a.waits("VirtualMachine %s still stops.", key)
		} else if why != "" {
			a.waits("VirtualMachine %s waits: %s.", key, why)
		} else if byHand && !m.Created && m.Run.Strategy != types.StrategyAlways {
			a.change(change{machine: &m, run: types.RunState{Strategy: types.StrategyAlways}, former: m.Former}, "VirtualMachine %s is to run again.", key)
		} else if byHand && !m.Created {
			a.waits("VirtualMachine %s is starting.", key)
		} else {
			a.change(change{machine: &m, run: m.Former.RunState}, "VirtualMachine %s is to run again.", key)
		}
	}
}

// former is what a set was. KubeVirt makes no instance for a paused set, nor one in place of one
// that has failed: one that had some is paused once it has them again. Before it is scaled up,
// what there is may be about to end.
func (f facts) former(s types.AppSet) types.SetScale {
	has, had := int32(0), s.Former.Instances
	for _, r := range f.copies[s.UID] {
		if !r.ends && !r.over {
			has++
		}
	}
	if s.Former.Paused && had > 0 && (has < had || s.Paused || s.Wanted != had) {
		return types.SetScale{Replicas: had, Former: s.Former}
	}
	return types.SetScale{Replicas: s.Former.Replicas, Paused: s.Former.Paused}
}

// unusable says which volume could not be attached now, "" for none. After the power of a
// whole site was off, Longhorn and the nodes with the replicas come back one by one.
func (f facts) unusable(a *action, namespace string, names []string) string {
	claims := map[string]bool{}
	if add(claims, namespace, names); len(claims) == 0 {
		return ""
	}
	f.wantLook(a)
	switch v := f.volumes; {
	case v.at == 0 || f.uptime-v.at > 2*fresh:
		return "the volumes are being checked"
	case v.err != "":
		return "the volumes cannot be read: " + v.err
	}
	for _, v := range f.volumes.storage.Volumes {
		unused := v.Unused() // of a set that was made meanwhile: nothing is in it that could be missed
		served := slices.ContainsFunc(v.Replicas, func(r types.Replica) bool {
			return (unused || v.Healthy(r)) && f.nodes[r.Node].Ready == types.ConditionTrue
		})
		if claims[v.Claim] && !served {
			return fmt.Sprintf("volume %s of %s has no healthy replica on a Ready node", v.Name, v.Claim)
		}
	}
	return ""
}

func add(claims map[string]bool, namespace string, names []string) {
	for _, name := range names {
		claims[namespace+"/"+name] = true
	}
}

// change adds a change, and says what it waits for until it is made.
func (a *action) change(ch change, format string, args ...any) {
	a.changes = append(a.changes, ch)
	a.waits(format, args...)
}

func (a *action) waits(format string, args ...any) {
	text := phrase.Cut(fmt.Sprintf(format, args...), longestText)
	a.status.Waits = append(a.status.Waits, strings.ToUpper(text[:1])+text[1:])
}

// soon asks for a step within d, if that is more than nothing.
func (a *action) soon(d time.Duration) {
	if d > 0 && (a.again == 0 || d < a.again) {
		a.again = d
	}
}
