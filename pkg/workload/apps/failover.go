package apps

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

const (
	// freshFor is how long a look at volumes and Leases counts: for what is looked at once
	// more under the repair lease from its end, else from its beginning.
	freshFor = 10 * time.Second
	// unrenewed is how long a kubelet's Lease must be seen unchanged: it is
	// renewed every ten seconds.
	unrenewed = 12 * time.Second
	// lastsLong is from when on what does not recover is looked at seldom.
	lastsLong = 10 * time.Minute
	seldom    = time.Minute
	// asked is how long a request by hand stands.
	asked = 15 * time.Minute
	// deletedFor is how long a Node must be missing before its device may be taken
	// for gone. k3s recreates it in seconds; Kubernetes itself deletes its pods
	// after 40 to 80 s and detaches its volumes 6 minutes later (docs/operations.md,
	// "Before a Node is deleted"), so that nothing here comes before it.
	deletedFor = 5 * time.Minute
)

// failover is about a node that is lost. Where neither a pod nor a virtual machine is
// there any more, only an attachment may be left, and what is wrong with the replacement
// is not held up by it. A request by hand is.
func (f facts) failover(a app) (verdict, bool) {
	v, ok := f.failFrom(a)
	request, byHand := f.request(a)
	if byHand = byHand && request.Node == v.lost.Name; !ok || byHand || a.on(v.lost.Name) {
		return v, ok
	}
	other, wrong := f.remount(a)
	if !wrong {
		other, _ = f.unstick(a)
	}
	repeats := other.target != nil && other.target.note == a.set.Note // a deletion that has failed
	due := repeats && f.rest[a.key].act == types.ActUnstick && f.pausing(a.key) == 0 && f.fresh.tried < f.rest[a.key].until
	switch {
	case due && v.target == nil && f.fresh.err == "" && v.reason == f.stale():
		v.look = true // it is the failover's turn, and it lacks a fresh look alone, of which it has one
		v.shown, v.reason, v.evidence = other.act, other.reason, slices.Concat(other.evidence, v.evidence)
	case repeats && (v.target == nil || f.rest[a.key].act == types.ActFailover): // they take turns
		other.look = v.look
		return other.withWaits(v), true
	case other.target != nil && !repeats:
		return other, true
	case repeats || other.phase == types.RepairRefused || other.phase == types.RepairGaveUp:
		// The failover goes on: an attachment that is left may be why it does not start.
		v.phase, v.shown, v.reason, v.evidence = other.phase, other.act, other.reason, slices.Concat(other.evidence, v.evidence)
	}
	return v.withWaits(other), true
}

// failFrom takes an application away from a node that is gone, where each of
// its volumes has a healthy replica elsewhere. Whatever is not known is a no.
func (f facts) failFrom(a app) (verdict, bool) {
	request, byHand := f.request(a)
	begun := a.set.Note.Act == types.ActFailover && a.set.Note.Node == request.Node && !a.runs(f.nodes)
	if byHand = byHand && (begun || a.on(request.Node)); !byHand {
		request = types.AppDetachRequest{}
	}
	lost, ok := f.lostWith(a, request)
	if !ok || !byHand && a.runs(f.nodes) {
		return verdict{}, false
	}
	key := "lost/" + a.set.UID + "/" + lost.Name
	v := verdict{phase: types.RepairWaits, act: types.ActFailover, lost: lost, keys: []string{key}, again: turn}
	why, refused := f.refusalReason(a, lost, request, &v)
	if request.Force {
		v.keys = append(v.keys, proved(a, lost))
	}
	if why != "" {
		v.reason = why
		if refused {
			v.phase = types.RepairRefused
		}
		return v, true
	}
	v.reason = fmt.Sprintf("Node %s is lost; the application fails over from it.", lost.Name)
	if wait := f.early(a, proved(a, lost)); wait > 0 {
		v.again = wait
		return v, true
	}
	v.target = &target{app: a, note: f.noted(a, types.ActFailover, lost.Name), asked: byHand, force: request.Force}
	return v, true
}

func (f facts) request(a app) (types.AppDetachRequest, bool) {
	r, ok := f.requests[a.key]
	if !ok || !types.AskedWithin(asked, r.Asked, f.now, r.Uptime, f.uptime) || appOf(r.AppDomain) != appOf(a.cfg.UUIDandVersion.UUID.String()) {
		return types.AppDetachRequest{}, false
	}
	return r, true
}

// lostWith finds the node that the application is lost with: the one that is
// named by hand, else one that has a part of it and does not report. Only where
// there is none, it is the one that a failover began from, which may have an
// attachment still: a note outlasts a second loss.
func (f facts) lostWith(a app, request types.AppDetachRequest) (types.Node, bool) {
	if request.Node != "" {
		n, there := f.nodes[request.Node]
		if !there {
			return f.deleted(request.Node), true
		}
		return n, true
	}
	names := map[string]bool{}
	for _, p := range a.pods {
		names[p.NodeName] = names[p.NodeName] || !finished(p)
	}
	for _, v := range a.vmis {
		names[v.NodeName] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n, known := f.nodes[name]
		switch {
		case name == "" || !names[name]:
		case !known:
			return f.deleted(name), true
		case n.Ready == types.ConditionUnknown:
			return n, true
		}
	}
	note := a.set.Note
	n := f.nodes[note.Node]
	same := note.NodeUID == "" || note.NodeUID == n.UID // earlier releases wrote no UID
	return n, note.Act == types.ActFailover && n.Ready == types.ConditionUnknown && same
}

// refusalReason says why the application must not be taken away from a node (yet), ""
// where it may. refused says that time alone will not change that.
func (f facts) refusalReason(a app, lost types.Node, request types.AppDetachRequest, v *verdict) (why string, refused bool) {
	byHand := request.Node == lost.Name && lost.Name != ""
	switch {
	case a.tiedTo(lost.Name) && !byHand:
		return fmt.Sprintf("It is tied to its designated node: it stays on %s.", lost.Name), true
	case lost.UID != "" && lost.Ready == types.ConditionTrue:
		return fmt.Sprintf("Node %s is Ready, so it is not lost.", lost.Name), true
	}
	if request.Force {
		if at := types.Answers(lost, f.nodes, f.witnessed, f.now); at != "" {
			return sentence(at) + " Nothing is detached by force from a device that answers: switch it off first.", true
		}
		return "", false
	}
	f.wantLook(v, byHand)
	if _, there := f.nodes[lost.Name]; !there {
		if why, refused := f.tooEarly(lost, v); why != "" {
			return why, refused
		}
	}
	gone, why := f.gone(lost)
	if !gone {
		return sentence(why), byHand
	}
	v.evidence = append(v.evidence, sentence(why))
	return f.unproved(a, lost, v)
}

// deleted is what is remembered of a Node that is missing. It has no UID where
// nothing is.
func (f facts) deleted(name string) types.Node {
	n := f.known[name].Node()
	n.Name = name
	return n
}

// gone reports whether the device of a node is gone, as far as the witnesses
// tell. That its Node is missing is no sign of it.
func (f facts) gone(lost types.Node) (bool, string) {
	if _, there := f.nodes[lost.Name]; there {
		return types.Gone(lost, f.nodes, f.witnessed, f.now)
	}
	return types.Silent(lost, f.nodes, f.witnessed, f.now)
}

// tooEarly says why nothing is taken yet from a device whose Node is deleted, ""
// for nothing.
func (f facts) tooEarly(lost types.Node, v *verdict) (why string, refused bool) {
	if lost.UID == "" {
		return fmt.Sprintf("The Node of %s is deleted, and nothing is known about it here, so it cannot be proved that its device is off. "+
			"Kubernetes deletes its pods by itself, and detaches its volumes six minutes later. To do more, once the device is off: zedkube vmiDetach --force.", lost.Name), true
	}
	v.evidence = append(v.evidence, f.lastRenewal(lost)...)
	key := "deleted/" + lost.UID
	v.keys = append(v.keys, key)
	if rest := deletedFor - f.lasted(key); rest > 0 {
		v.again = min(v.again, rest)
		return fmt.Sprintf("The Node of %s is deleted, which does not prove that its device is off: it has %s to come back. "+
			"Kubernetes deletes its pods by itself after 40 to 80 seconds, and detaches its volumes six minutes later.", lost.Name, deletedFor), false
	}
	v.evidence = append(v.evidence, fmt.Sprintf("The Node of %s has been missing for %s.", lost.Name, deletedFor))
	if f.renewedSince(lost) {
		return fmt.Sprintf("The Lease of %s was renewed after its Node was deleted: its kubelet has %s from the last renewal.", lost.Name, deletedFor), false
	}
	return "", false
}

// unproved says what the last look does not prove, "" for nothing. What it shows
// of a volume is refused whatever its age, so that a look that fails changes no
// word; nothing is done after an old one.
func (f facts) unproved(a app, lost types.Node, v *verdict) (why string, refused bool) {
	if f.fresh.at == 0 {
		return f.stale(), false
	}
	_, there := f.nodes[lost.Name]
	if why := f.fresh.unrenewed(lost, there); why != "" {
		return why, false
	}
	if !f.fresh.renewed[lost.UID].by.IsZero() || there { // the Lease of a deleted Node goes with it, which proves nothing
		v.evidence = append(v.evidence, fmt.Sprintf("The Lease of %s is not renewed.", lost.Name))
	}
	if why := redundant(a.claims, lost.Name, f.fresh.storage, f.fresh.nodes); why != "" {
		return why, true
	}
	v.evidence = append(v.evidence, "Every volume of it has a healthy replica on another node: "+phrase.Counted(len(a.claims), "volume")+".")
	v.keys = append(v.keys, proved(a, lost))
	return f.stale(), false
}

// proved is since when nothing speaks against a failover.
func proved(a app, lost types.Node) string { return "proved/" + a.set.UID + "/" + lost.Name }

// wantLook asks for the next look in time, and seldom for what has lasted long: a
// node may be off for weeks. What it is for is the verdict's first key.
func (f facts) wantLook(v *verdict, soon bool) {
	every := freshFor / 2
	if !soon && len(v.keys) > 0 && f.lasted(v.keys[0]) > lastsLong {
		every = seldom
	}
	v.look = f.fresh.tried == 0 || f.uptime-f.fresh.tried >= every
}

// unrenewed says what speaks against the death of a kubelet, "" for nothing. there
// says whether its Node is.
func (l fresh) unrenewed(lost types.Node, there bool) string {
	i := slices.IndexFunc(l.nodes, func(n types.Node) bool { return n.Name == lost.Name })
	switch {
	case there && i < 0:
		return fmt.Sprintf("Node %s has just been deleted.", lost.Name)
	case i >= 0 && (!there || l.nodes[i].UID != lost.UID || l.nodes[i].Ready == types.ConditionTrue):
		return fmt.Sprintf("Node %s is back.", lost.Name)
	}
	r, ok := l.renewed[lost.UID]
	if !there && !ok {
		return "The Lease of " + lost.Name + " is being checked."
	}
	if absent := !there && r.by.IsZero(); !absent && (!ok || r.still-r.seen < unrenewed) {
		return fmt.Sprintf("The Lease of %s was renewed less than %s ago.", lost.Name, unrenewed)
	}
	return ""
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

const (
	// afterBoot is how long after its boot a node still asks for what is its own.
	afterBoot = 30 * time.Minute
	// healthyFor is how long a node must have been ready before anything is moved.
	healthyFor = 2 * time.Minute
	// betweenFailbacks is how far apart they are in the whole cluster: volumes that
	// have moved want to settle.
	betweenFailbacks = 5 * time.Minute
	// eachFailback is how far apart they are for one application: one that does not
	// stay is not to be sent to and fro.
	eachFailback = time.Hour
	// refusedAfter is how long after a failback its pod has to be left for nothing to have moved: others
	// wait for it no longer.
	refusedAfter = time.Minute
)

// The words of the setting kubernetes.vmi.deschedule.events.
const (
	onBoot    = "boot"
	onHealthy = "healthy"
)

// failback moves an application that runs elsewhere to this node, its
// designated one, by evicting its pod: its set asks the scheduler for this node. EVE
// never changes the set of a native container, which may ask for a former designated
// node: its pod would only start there again. One that is tied to this node was moved
// by configuration; that needs no setting.
func (f facts) failback(a app) (verdict, bool) {
	p, ok := a.representativePod(f.self.Name)
	if !ok || !a.cfg.IsDesignatedNodeID || a.set.Affinity.Node != f.self.Name || p.NodeName == f.self.Name || !a.runs(f.nodes) || !f.wantsBack(a, p) {
		return verdict{}, false
	}
	v := verdict{
		phase: types.RepairWaits, act: types.ActFailback, again: time.Minute,
		reason: fmt.Sprintf("It runs on %s and will move to this node, its designated node.", p.NodeName),
	}
	why := cmp.Or(f.contested(a.key), f.notYet())
	if why == "" {
		f.wantLook(&v, true)
		if why = f.staleSince(f.fresh.at); why == "" {
			why = unhealthy(a.claims, f.fresh.storage)
		}
	}
	if why != "" {
		v.reason += " " + why
		return v, true
	}
	note := f.noted(a, types.ActFailback, "")
	note.Failback, note.Evicted, note.Returned = f.self.BootID, p.UID, f.now
	v.target = &target{app: a, note: note, node: f.self.Name}
	v.target.pods = []types.Pod{p}
	return v, true
}

// wantsBack reports whether the configuration or the settings ask for it now.
// After a boot it is done once, which it was not while the pod of that try still runs.
func (f facts) wantsBack(a app, p types.Pod) bool {
	recent := f.now.Sub(a.set.Note.LastFailback()).Abs() <= eachFailback
	if a.cfg.AffinityType == types.AffinityRequired {
		return !recent
	}
	for event := range strings.SplitSeq(f.events, ",") {
		switch strings.TrimSpace(event) {
		case onHealthy:
			if !recent {
				return true
			}
		case onBoot:
			again := a.set.Note.Evicted == p.UID && f.now.Sub(a.set.Note.LastFailback()).Abs() >= betweenFailbacks
			if f.uptime < afterBoot && f.self.BootID != "" && (a.set.Note.Failback != f.self.BootID || again) {
				return true
			}
		}
	}
	return false
}

// notYet says why nothing may be moved to this node now, "" for nothing.
func (f facts) notYet() string {
	switch {
	case f.self.Ready != types.ConditionTrue || f.now.Sub(f.self.ReadySince).Abs() < healthyFor: // a clock may be set back
		return fmt.Sprintf("This node has not been ready for %s yet.", healthyFor)
	case f.self.Unschedulable || f.self.OutOfService:
		return "This node is not schedulable."
	}
	for _, n := range f.nodes {
		if n.Ready != types.ConditionTrue {
			return fmt.Sprintf("Node %s is not ready.", n.Name)
		}
		if n.DrainInProgress == types.ConditionTrue {
			return fmt.Sprintf("Node %s is being drained.", n.Name)
		}
	}
	for _, s := range f.sets {
		since := f.now.Sub(s.Note.LastFailback()).Abs()
		stays := func(p types.Pod) bool { return p.UID == s.Note.Evicted && !p.Terminating() }
		refused := since >= refusedAfter && slices.ContainsFunc(f.pods, stays)
		if since < betweenFailbacks && !refused {
			return fmt.Sprintf("The failback of %s was less than %s ago.", s.Name, betweenFailbacks)
		}
	}
	return ""
}

// unhealthy says which volume is not in best health, "" for none: a move over a
// volume that rebuilds would cost it a replica.
func unhealthy(claims []string, s types.Storage) string {
	for _, claim := range claims {
		ok := false
		for _, v := range s.Volumes {
			ok = ok || v.Claim == claim && v.Robustness == "healthy" && v.HealthyReplicas() >= v.Wanted
		}
		if !ok {
			return fmt.Sprintf("Its volume %s is not healthy.", claim)
		}
	}
	return ""
}
