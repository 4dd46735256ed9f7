package overview

import (
	"cmp"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

func drainRules() []rule {
	return []rule{
		{"DrainFailed", anchorPhases, findDrainFailed},
		{"DrainNever", anchorDrain, findNever},
		{"DrainWaits", anchorDrain, findDrainWaits},
		{"CordonForeign", anchorCordon, findCordonForeign},
		{"CordonOld", anchorCordon, findCordonOld},
		{"ForceFile", anchorForce, findForceFile},
		{"FaultMarker", anchorMarker, findFaultMarker},
	}
}

// findNever tells of what will not go out of a drain's way by itself.
func findNever(o Overview, tell func(Problem)) {
	p := o.Drain.Progress
	if p == nil || p.Phase != types.PhaseGates && p.Phase != types.PhaseEmptying {
		return
	}
	for _, b := range p.Blockers {
		if b.Outlook == types.OutlookNever {
			tell(Problem{Severity: Bad, About: b.Pod, Since: b.Since, What: sentence("Pod "+b.Pod+" will not leave this node by itself", b.Why), Remedy: b.Remedy})
		}
	}
	for _, v := range p.Volumes {
		if v.Outlook == types.OutlookNever {
			tell(Problem{Severity: Bad, About: v.Name, Since: v.Since, What: sentence("Volume "+v.Name+" holds the drain up, and will not end that by itself", v.Why), Remedy: v.Remedy})
		}
	}
}

// cordonSince is since when the own node is cordoned, as far as anybody says.
func cordonSince(o Overview) (at time.Time) {
	if i := slices.IndexFunc(o.Nodes.List, func(n ClusterNode) bool { return n.Own }); i >= 0 && !o.Nodes.List[i].CordonSince.IsZero() {
		return o.Nodes.List[i].CordonSince
	}
	if p := o.Drain.Progress; p != nil {
		return p.Since
	}
	return at
}

// node is the own node's name in a command.
func node(o Overview) string {
	if plainName(o.Node.Name) {
		return o.Node.Name
	}
	return "<node>"
}

func findDrainFailed(o Overview, tell func(Problem)) {
	p := o.Drain.Progress
	if p != nil && (p.Phase == types.PhaseNoCordon || p.Phase == types.PhaseNotEmpty) {
		tell(Problem{
			Severity: Bad, Since: p.Ended, What: sentence("The drain has failed", p.Reason),
			Remedy: "See what is left: zedkube drain plan. Remove it, and ask again.",
		})
	}
}

func findDrainWaits(o Overview, tell func(Problem)) {
	p := o.Drain.Progress
	if p != nil && p.Phase == types.PhaseGates && o.older(p.Started, longGates) {
		tell(Problem{
			Severity: Warn, Since: p.Started, What: sentence("The drain has waited for its turn for long", firstOf(p.Lock.Waits, p.Quorum, p.Reason)),
			Remedy: "zedkube drain status says whom it waits for.",
		})
	}
}

func findCordonForeign(o Overview, tell func(Problem)) {
	what, at := "This node is cordoned by somebody else than zedkube, which leaves it alone.", cordonSince(o)
	if c, ok := o.Conditions.Of(types.StateCordon); ok && o.fresh() {
		if c.Status != types.ConditionFalse {
			return
		}
		what, at = cmp.Or(c.Message, what), c.Since // it names the client
	} else if p := o.Drain.Progress; p == nil || p.Cordon != "operator" {
		return
	}
	tell(Problem{Severity: Warn, Since: at, What: what, Remedy: "Who did it: zedkube audit --op cordon,uncordon. Ask whom it names first, then: kubectl uncordon " + node(o)})
}

func findCordonOld(o Overview, tell func(Problem)) {
	p := o.Drain.Progress
	if p == nil {
		return
	}
	at := cordonSince(o)
	switch {
	case p.Cordon == "kept" && o.older(at, longCordon):
		tell(Problem{Severity: Warn, Since: at, What: "The cordon of a drain is kept for the operator, and has been for long.", Remedy: "Let pods come again: kubectl uncordon " + node(o)})
	case p.Cordon == "zedkube" && p.Phase == types.PhaseComplete && o.older(p.Ended, longCordon):
		tell(Problem{Severity: Warn, Since: p.Ended, What: "This node was emptied long ago, and has neither rebooted nor been given back.", Remedy: "Reboot it, or take the request back: zedkube drain cancel."})
	}
}

func findForceFile(o Overview, tell func(Problem)) {
	for _, f := range o.Drain.Forced {
		tell(Problem{
			Severity: Warn, About: f.File, Since: f.At, What: "A force file lies about, " + f.File + ": it decides what EVE is told of drains.",
			Remedy: "rm " + f.File,
		})
	}
}

func findFaultMarker(o Overview, tell func(Problem)) {
	if f := o.Drain.Held; f != nil {
		tell(Problem{Severity: Warn, About: f.File, Since: f.At, What: "The tests' marker " + f.File + " is there: no drain completes.", Remedy: "rm " + f.File})
	}
}
