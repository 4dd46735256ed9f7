package health

import (
	"cmp"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func findDrainFailed(o seen, tell func(types.Finding)) {
	p := o.Drain.Progress
	if p != nil && (p.Phase == types.PhaseNoCordon || p.Phase == types.PhaseNotEmpty) {
		tell(bad("See what is left: zedkube drain plan. Remove it, and request the drain again.", "The drain has failed%s", because(p.Reason)).Of("", p.Ended))
	}
}

// findNever tells of what will not go out of a drain's way by itself.
func findNever(o seen, tell func(types.Finding)) {
	p := o.Drain.Progress
	if p == nil || p.Phase != types.PhaseGates && p.Phase != types.PhaseEmptying {
		return
	}
	for _, b := range p.Blockers {
		if b.Outlook == types.OutlookNever {
			tell(bad(b.Remedy, "Pod %s will not leave this node without action%s", b.Pod, because(b.Why)).Of(b.Pod, b.Since))
		}
	}
	for _, v := range p.Volumes {
		if v.Outlook == types.OutlookNever {
			tell(bad(v.Remedy, "Volume %s blocks the drain and will not resolve without action%s", v.Name, because(v.Why)).Of(v.Name, v.Since))
		}
	}
}

func findDrainWaits(o seen, tell func(types.Finding)) {
	p := o.Drain.Progress
	if p != nil && p.Phase == types.PhaseGates && o.older(p.Started, longGates) {
		tell(warn("zedkube drain status shows which node it waits for.", "The drain has been waiting for its turn for a long time%s", because(cmp.Or(p.Lock.Waits, p.Quorum, p.Reason))).Of("", p.Started))
	}
}

func findForceFile(o seen, tell func(types.Finding)) {
	for _, f := range o.Drain.Forced {
		said := "it overrides the drain status that EVE sees with " + f.Says
		if f.Ignored != "" {
			said = "it is ignored, because " + f.Ignored
		}
		tell(warn("rm "+f.File, "A force file is present, %s: %s.", f.File, said).Of(f.File, f.At))
	}
}

func findFaultMarker(o seen, tell func(types.Finding)) {
	if f := o.Drain.Held; f != nil {
		tell(warn("rm "+f.File, "The fault marker %s is present: no drain completes.", f.File).Of(f.File, f.At))
	}
}

// inCommand is a node's name in a command that someone may paste: only one that
// Kubernetes takes for a node. The holder of a Lease may be any text.
func inCommand(name string) string {
	if types.IsObjectName(name) {
		return name
	}
	return "<node>"
}

func cordonKept(node, why string, since, now time.Time) types.Finding {
	f := ok("An operator keeps the cordon of a drain%s%s", lasting(since, now), because(why))
	if !since.IsZero() && now.Sub(since) >= types.LongCordon {
		f.Severity, f.Remedy = types.SeverityWarn, "To make the node schedulable again: zedkube uncordon "+inCommand(node)+", or the next drain"
	}
	return f
}

// cordonForeign judges a cordon that is not one of zedkube's.
func cordonForeign(node, what string) types.Finding {
	return warn("See who did it with zedkube audit --op cordon,uncordon and ask them first, then: zedkube uncordon "+inCommand(node), "%s", what)
}

// cordonSince is since when the own node is cordoned, as far as anyone says.
func cordonSince(o seen) (at time.Time) {
	if n, found := own(o.Nodes); found && !n.CordonSince.IsZero() {
		return n.CordonSince
	}
	if p := o.Drain.Progress; p != nil {
		return p.Since
	}
	return at
}

func findCordonForeign(o seen, tell func(types.Finding)) {
	what, at := "This node was cordoned by someone other than zedkube, which leaves it alone.", cordonSince(o)
	if c, ok := o.Conditions.Of(types.StateCordon); ok && o.fresh() {
		if c.Status != types.ConditionFalse {
			return
		}
		what, at = cmp.Or(c.Message, what), c.Since // it names the client
	} else if p := o.Drain.Progress; p == nil || p.Cordon != types.CordonedByOperator {
		return
	}
	tell(cordonForeign(o.Node.Name, what).Of("", at))
}

func findCordonOld(o seen, tell func(types.Finding)) {
	p := o.Drain.Progress
	if p == nil {
		return
	}
	switch at := cordonSince(o); {
	case p.Cordon == types.CordonedKept:
		if f := cordonKept(o.Node.Name, "", at, o.ReadAt); f.Severity != types.SeverityOK {
			tell(f.Of("", at))
		}
	case p.Cordon == types.CordonedByZedkube && p.Phase == types.PhaseComplete && o.older(p.Ended, types.LongCordon):
		tell(warn("Reboot it, or withdraw the request: zedkube drain cancel.", "This node was drained long ago, and has neither rebooted nor been uncordoned.").Of("", p.Ended))
	}
}

func judgeCordon(o seen, f nodesFacts) types.Finding {
	n, found := own(f.Nodes)
	if f.err != nil || !found {
		if p := o.Drain.Progress; p != nil && p.Cordon == "" && f.err != nil {
			return unknown("The Node is not known; it was not cordoned when the drain status was last written.")
		}
		return unknown("The Node of this device is not known.")
	}
	held, why := lasting(n.CordonSince, o.ReadAt), because(n.CordonWhy)
	switch {
	case !n.Cordoned:
		return ok("This node is schedulable.")
	case slices.Contains(n.Roles, tieBreaker):
		return ok("It is the tie-breaker, which stays cordoned.")
	case n.CordonedBy == types.CordonedDisabled:
		return ok("It is cordoned%s%s", held, why)
	case n.CordonedBy == types.CordonedKept:
		return cordonKept(n.Name, n.CordonWhy, n.CordonSince, o.ReadAt)
	case n.CordonedBy == types.CordonedByZedkube && (n.CordonSince.IsZero() || o.ReadAt.Sub(n.CordonSince) < types.LongCordon):
		return ok("It is cordoned by zedkube%s%s", held, why)
	case n.CordonedBy == types.CordonedByZedkube:
		return warn("zedkube drain status", "It is cordoned by zedkube%s, unusually long%s", held, why)
	}
	return cordonForeign(n.Name, "This node is cordoned by someone other than zedkube"+held+why)
}

func judgeDrainLock(o seen, f nodesFacts, lock types.DrainLock, err error) types.Finding {
	holder := lock.Holder
	switch {
	case err != nil:
		return unknown("The lock cannot be read: %v.", err)
	case holder == "" && o.Copied:
		return unknown("This is a copy of a device, and names no holder.")
	case holder == "":
		return ok("It is free.")
	}
	held := lasting(lock.Since, o.ReadAt)
	command := "zedkube drain unlock " + inCommand(holder)
	unlock := "if that drain is no longer needed: " + command
	at := slices.IndexFunc(f.List, func(n overview.ClusterNode) bool { return n.Name == holder })
	switch {
	case len(f.List) > 0 && at < 0:
		return bad(command, "Node %s holds it%s, and the cluster has no such node.", holder, held)
	case at >= 0 && f.List[at].Status != ready && o.ReadAt.Sub(lock.Since) > time.Hour:
		return warn("repair the node. "+unlock, "Node %s holds it%s and is %s: no other node can drain.", holder, held, f.List[at].Status)
	case !lock.Since.IsZero() && o.ReadAt.Sub(lock.Since) > types.LongCordon:
		return warn("zedkube drain status on that node. "+unlock, "Node %s holds it%s: no other node can drain.", holder, held)
	}
	return ok("Node %s holds it%s.", holder, held)
}
