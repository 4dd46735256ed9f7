package apps

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// freshFor is how long a look at volumes and Leases counts.
	freshFor = 10 * time.Second
	// unrenewed is how long a kubelet's Lease must be seen unchanged: it is
	// renewed every ten seconds.
	unrenewed = 12 * time.Second
	// asked is how long a request by hand stands.
	asked = 15 * time.Minute
)

// failover takes an application away from a node that is gone, where each of
// its volumes has a whole replica elsewhere. Whatever is not known is a no.
func (f facts) failover(a app) (verdict, bool) {
	request, byHand := f.request(a)
	if byHand = byHand && a.on(request.Node); !byHand {
		request = types.AppDetachRequest{}
	}
	lost, ok := f.lostWith(a, request)
	if !ok || !byHand && a.runs(f.nodes) {
		return verdict{}, false
	}
	key := "lost/" + a.set.UID + "/" + lost.Name
	v := verdict{phase: types.RepairWaits, act: types.ActFailover, lost: lost, keys: []string{key}, again: turn}
	why, refused := f.forbids(a, lost, request, &v)
	if why != "" {
		v.reason = why
		if refused {
			v.phase = types.RepairRefused
		}
		return v, true
	}
	proved := "proved/" + a.set.UID + "/" + lost.Name
	v.keys = append(v.keys, proved)
	v.reason = fmt.Sprintf("Node %s is gone; the application is taken away from it.", lost.Name)
	if wait := f.early(a, proved); wait > 0 {
		v.again = wait
		return v, true
	}
	v.target = &target{app: a, note: f.noted(a, types.ActFailover, lost.Name), force: request.Force}
	return v, true
}

// request is what somebody at a device asks for this application.
func (f facts) request(a app) (types.AppDetachRequest, bool) {
	r, ok := f.requests[a.key]
	if !ok || f.now.Sub(r.Asked).Abs() > asked || appOf(r.AppDomain) != appOf(a.cfg.UUIDandVersion.UUID.String()) {
		return types.AppDetachRequest{}, false
	}
	return r, true
}

// lostWith finds the node that the application is lost with: one that has, or
// had when a failover from it began, a part of it and is not ready.
func (f facts) lostWith(a app, request types.AppDetachRequest) (types.Node, bool) {
	names := map[string]bool{}
	for _, p := range a.pods {
		names[p.NodeName] = names[p.NodeName] || !finished(p)
	}
	for _, v := range a.vmis {
		names[v.NodeName] = true
	}
	if a.set.Note.Act == types.ActFailover {
		names[a.set.Note.Node] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n, known := f.nodes[name]
		switch {
		case name == "" || !names[name]:
		case !known && name != a.set.Note.Node:
			return types.Node{Name: name}, true
		case n.Ready == types.ConditionUnknown, name == request.Node && n.Ready != types.ConditionTrue:
			return n, true
		}
	}
	if n, known := f.nodes[request.Node]; known && a.on(n.Name) {
		return n, true // it is ready: the answer is no
	}
	return types.Node{}, false
}

// forbids says why the application must not be taken away from a node (yet), ""
// where it may. refused says that time alone will not change that.
func (f facts) forbids(a app, lost types.Node, request types.AppDetachRequest, v *verdict) (why string, refused bool) {
	byHand := request.Node == lost.Name && lost.Name != ""
	switch {
	case a.tied() && !byHand:
		return fmt.Sprintf("It is tied to its designated node: it stays with %s.", lost.Name), true
	case lost.UID != "" && lost.Ready == types.ConditionTrue:
		return fmt.Sprintf("Node %s is ready: it is not gone.", lost.Name), true
	}
	if lost.UID != "" && !request.Force {
		gone, why := types.Gone(lost, f.nodes, f.witnessed, f.now)
		if !gone {
			return sentence(why), byHand
		}
		v.evidence = append(v.evidence, sentence(why))
	}
	if request.Force {
		return "", false
	}
	why = f.unproved(a, lost, v)
	return why, why != "" && !f.fresh.old(f.uptime)
}

// unproved says what is not proved by a fresh look, "" for nothing.
func (f facts) unproved(a app, lost types.Node, v *verdict) string {
	if why := f.stale(v); why != "" {
		return why
	}
	if why := f.fresh.unrenewed(lost, f.uptime); why != "" {
		return why
	}
	v.evidence = append(v.evidence, fmt.Sprintf("The Lease of %s is not renewed.", lost.Name))
	if why := redundant(a.claims, lost.Name, f.fresh.storage, f.fresh.nodes); why != "" {
		return why
	}
	v.evidence = append(v.evidence, fmt.Sprintf("Each of its %d volumes has a whole replica on another node.", len(a.claims)))
	return ""
}

// stale says that there is no fresh look, and asks for the next one in time.
func (f facts) stale(v *verdict) string {
	v.look = f.fresh.at == 0 || f.uptime-f.fresh.at > freshFor/2
	switch {
	case f.fresh.old(f.uptime):
		return "Volumes and Leases are looked at."
	case f.fresh.err != "":
		return "The cluster cannot be looked at afresh: " + f.fresh.err + "."
	}
	return ""
}

func (l fresh) old(uptime time.Duration) bool { return l.at == 0 || uptime-l.at > freshFor }

// unrenewed says what speaks against the death of a kubelet, "" for nothing.
func (l fresh) unrenewed(lost types.Node, uptime time.Duration) string {
	i := slices.IndexFunc(l.nodes, func(n types.Node) bool { return n.Name == lost.Name })
	if i < 0 {
		if lost.UID == "" {
			return ""
		}
		return fmt.Sprintf("Node %s has just been deleted.", lost.Name)
	}
	n := l.nodes[i]
	if n.UID != lost.UID || n.Ready == types.ConditionTrue {
		return fmt.Sprintf("Node %s is back.", lost.Name)
	}
	if r := l.renewed[n.UID]; uptime-r.seen < unrenewed {
		return fmt.Sprintf("The Lease of %s was renewed less than %s ago.", lost.Name, unrenewed)
	}
	return ""
}

// redundant says for which volume there is no proof that its data is whole on a
// node that is ready, other than the lost one; "" for none.
func redundant(claims []string, lost string, s types.Storage, nodes []types.Node) string {
	ready := map[string]bool{}
	for _, n := range nodes {
		ready[n.Name] = n.Ready == types.ConditionTrue && n.Name != lost && !n.OutOfService
	}
	for _, claim := range claims {
		i := slices.IndexFunc(s.Volumes, func(v types.Volume) bool { return v.Claim == claim })
		if i < 0 {
			return fmt.Sprintf("Nothing is known of the replicas of its volume %s.", claim)
		}
		v := s.Volumes[i]
		switch {
		case len(v.Also) > 0:
			return fmt.Sprintf("Its volume %s migrates.", claim)
		case v.Engine != "" && v.Engine != lost && v.Running:
			continue // it is attached elsewhere already
		case v.Robustness == "faulted":
			return fmt.Sprintf("Its volume %s is faulted.", claim)
		case !slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return ready[r.Node] && whole(v, r) }):
			return fmt.Sprintf("Its volume %s has no whole replica on another node that is ready.", claim)
		}
	}
	return ""
}

// whole reports whether a replica has all data: whole when it was last seen, and
// in use by the engine that wrote last, where one is known.
func whole(v types.Volume, r types.Replica) bool {
	mode := func(r types.Replica) string { return cmp.Or(r.Mode, r.LastMode) }
	known := v.Running || slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return mode(r) != "" })
	return !r.HealthyAt.IsZero() && r.FailedAt.IsZero() && (!known || mode(r) == "RW")
}

// sentence makes one of what a library says.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }
