package draincmd

import (
	"cmp"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

func putDrain(s *terminal.Screen, r drainRecord) {
	putHead(s, r)
	if p := r.Progress; p != nil {
		putCourse(s, r, *p)
		putHolders(s, r, *p)
	}
	putTold(s, r)
	if p := r.Progress; p != nil {
		putInTheWay(s, *p, r.ReadAt)
	}
	if len(r.Advice) > 0 {
		s.Gap()
		s.Put(0, terminal.Bold, "What you can do")
		for _, a := range r.Advice {
			s.Put(2, terminal.Plain, a.Command)
			s.Put(6, terminal.Plain, a.Why)
		}
	}
}

// putHead says what the drain does, or that nobody knows.
func putHead(s *terminal.Screen, r drainRecord) {
	of := "Drain of " + cmp.Or(terminal.Clean(r.Node), "this node") + ": "
	switch {
	case r.Progress == nil && r.Status == nil:
		s.Put(0, terminal.Red, of+"no drain status was found")
	case r.Progress == nil:
		s.Put(0, terminal.Yellow, of+"only NodeDrainStatus is published; there is no NodeDrainProgress")
	default:
		look, text := PhaseText(*r.Progress)
		s.Put(0, look, of+text)
	}
	if !r.Agent.Runs {
		s.Field("agent", terminal.Red, "is NOT running: "+terminal.Clean(r.Agent.Why)+". The rest is what it last published"+written(r)+".")
	}
	for _, problem := range r.Problems {
		s.Field("unreadable", terminal.Red, terminal.Clean(problem))
	}
}

func written(r drainRecord) string {
	if r.WrittenAt.IsZero() {
		return ""
	}
	return ", " + terminal.Stamp(r.WrittenAt, r.ReadAt)
}

// PhaseText is a phase in words.
func PhaseText(p types.NodeDrainProgress) (terminal.Style, string) {
	attempt := ""
	if p.Attempt > 0 {
		attempt = fmt.Sprintf(", attempt %d of %d", p.Attempt, p.Attempts)
	}
	switch {
	case p.Left:
		return terminal.Green, "this node has left its cluster"
	case p.Phase == types.PhaseIdle:
		return terminal.Green, "Idle, no drain"
	case p.Phase == types.PhaseGates:
		return terminal.Yellow, "Gates, waiting for its turn; no pod has been evicted yet"
	case p.Phase == types.PhaseEmptying:
		return terminal.Yellow, "Emptying, cordoned, pods are being evicted" + attempt
	case p.Forced:
		return terminal.Yellow, "Complete, FORCED: the device may go down, " + remainsText(p)
	case p.Phase == types.PhaseComplete:
		return terminal.Green, "Complete, the device may go down"
	case p.Phase == types.PhaseNoCordon:
		return terminal.Red, "NoCordon, FAILED: the node could not be cordoned"
	case p.Phase == types.PhaseNotEmpty:
		return terminal.Red, "NotEmpty, FAILED: the deadline passed before all pods were gone" + attempt
	}
	return terminal.Red, "in a phase unknown to this command: " + terminal.Clean(string(p.Phase))
}

// remainsText is what a forced drain leaves on the node.
func remainsText(p types.NodeDrainProgress) string {
	switch n := len(p.Blockers) + max(p.BlockersOmitted, 0); {
	case n == 1:
		return "1 pod is still here"
	case n > 1:
		return phrase.Counted(n, "pod") + " are still here"
	}
	return "although the drain had not ended"
}

func putCourse(s *terminal.Screen, r drainRecord, p types.NodeDrainProgress) {
	now := r.ReadAt
	if p.Reason != "" {
		s.Field("why", terminal.Plain, terminal.Clean(p.Reason))
	}
	if !p.Since.IsZero() {
		s.Field("since", terminal.Plain, terminal.Stamp(p.Since, now))
	}
	if len(p.Requesters) > 0 {
		s.Field("requester", terminal.Plain, terminal.Listed(p.Requesters))
	}
	if !p.Started.IsZero() && p.Phase != types.PhaseIdle {
		s.Field("started", terminal.Plain, terminal.Stamp(p.Started, now))
	}
	switch {
	case !p.Ended.IsZero() && !r.underWay():
		s.Field("ended", terminal.Plain, terminal.Stamp(p.Ended, now))
	case !p.Deadline.IsZero() && r.underWay() && p.Deadline.Before(now):
		s.Field("deadline", terminal.Red, terminal.Stamp(p.Deadline, now)+", has passed")
	case !p.Deadline.IsZero() && r.underWay():
		s.Field("deadline", terminal.Plain, terminal.Stamp(p.Deadline, now))
	}
	if p.Pods != (types.DrainPods{}) {
		s.Field("pods", terminal.Plain, terminal.Bar(p.Pods.Evicted, p.Pods.Total, min(30, s.Width-terminal.LabelWidth-4))+" "+PodsText(p.Pods))
	}
}

// PodsText is how many of a drain's pods are gone, and what the others do.
func PodsText(p types.DrainPods) string {
	return fmt.Sprintf("%d of %d gone, %d terminating, %d waiting", p.Evicted, p.Total, p.Terminating, p.Waiting)
}

// putHolders is who holds the lock, the quorum and the cordon.
func putHolders(s *terminal.Screen, r drainRecord, p types.NodeDrainProgress) {
	lock := p.Lock
	label := "lock"
	if text := lockText(lock, r.ReadAt); text != "" {
		s.Field(label, terminal.Plain, text)
		label = ""
	}
	switch {
	case lock.Waits != "" && lock.Mine: // an agent that knows no lock may be draining as well
		s.Field(label, terminal.Yellow, "but "+terminal.Clean(lock.Waits))
	case lock.Waits != "":
		s.Field(label, terminal.Yellow, "not acquired: "+terminal.Clean(lock.Waits))
	}
	if p.Quorum != "" {
		s.Field("quorum", terminal.Yellow, terminal.Clean(p.Quorum))
	}
	cordon := map[string]string{
		"":            "",
		"zedkube":     "by zedkube, for this drain; removed automatically",
		"operator":    "by somebody else; zedkube does not change it",
		"tie-breaker": "the tie-breaker node stays cordoned",
		"kept":        "kept for the operator until the next drain starts or ends",
	}
	if text, known := cordon[p.Cordon]; !known {
		s.Field("cordon", terminal.Plain, terminal.Clean(p.Cordon))
	} else if text != "" {
		s.Field("cordon", terminal.Plain, text)
	}
	putWarnings(s, p.Warnings)
}

func lockText(lock types.DrainLockView, now time.Time) string {
	holder := terminal.Clean(lock.Holder)
	switch {
	case lock.Mine:
		holder = "held by this node"
	case lock.Holder == "":
		return ""
	default:
		holder = "held by " + holder
	}
	if lock.Since.IsZero() {
		return holder
	}
	return holder + " since " + terminal.Stamp(lock.Since, now)
}

// putTold is what EVE's agents are told.
func putTold(s *terminal.Screen, r drainRecord) {
	if r.Status == nil {
		return
	}
	by := terminal.Clean(r.Status.RequestedBy.String())
	s.Field("EVE sees", terminal.Plain, fmt.Sprintf("%d %s, for %s", r.Status.Status, terminal.Clean(r.Status.Status.String()), by))
	for _, f := range r.Force {
		text := f.File + ": it overrides the drain status that EVE sees with " + f.Says
		if f.Ignored != "" {
			text = f.File + " is ignored: " + terminal.Clean(f.Ignored)
		}
		s.Field("force file", terminal.Yellow, text)
	}
}

// putWarnings are what holds nothing up and is to be known.
func putWarnings(s *terminal.Screen, list []string) {
	for _, w := range list {
		s.Field("warning", terminal.Yellow, terminal.Clean(w))
	}
}

// putInTheWay are the pods and volumes in the way of a drain, and the pods that cannot
// run elsewhere.
func putInTheWay(s *terminal.Screen, p types.NodeDrainProgress, now time.Time) {
	if len(p.Blockers) > 0 || p.BlockersOmitted > 0 {
		s.Gap()
		s.Put(0, terminal.Bold, titleText(p, "Pods"))
		terminal.PutList(s, p.Blockers, p.BlockersOmitted, func(b types.DrainBlocker) { putBlocker(s, b, now) })
	}
	if len(p.Volumes) > 0 || p.VolumesOmitted > 0 {
		s.Gap()
		s.Put(0, terminal.Bold, titleText(p, "Volumes"))
		terminal.PutList(s, p.Volumes, p.VolumesOmitted, func(v types.DrainVolume) { putVolume(s, v, now) })
	}
	if len(p.Stranded) > 0 || p.StrandedOmitted > 0 {
		s.Gap()
		s.Put(0, terminal.Bold, "Pods that can run only on this node (down until it is back)")
		s.Put(2, terminal.Plain, terminal.Listed(p.Stranded))
		terminal.PutList(s, []string{}, p.StrandedOmitted, nil)
	}
}

// titleText is the title of a list of pods or volumes.
func titleText(p types.NodeDrainProgress, what string) string {
	if p.Forced {
		return what + " that blocked the drain and are still here"
	}
	return what + " that block the drain"
}

func putBlocker(s *terminal.Screen, b types.DrainBlocker, now time.Time) {
	look, outlook := outlookText(b.Outlook)
	cause := ""
	if b.Cause != "" {
		cause = terminal.Clean(b.Cause) + ", " // the word that docs/runbook.md has it under
	}
	s.Put(2, look, terminal.Clean(b.Pod)+": "+cause+outlook+sinceText(b.Since, now))
	s.Put(6, terminal.Plain, cmp.Or(terminal.Clean(b.Why), terminal.Clean(b.Cause), "no reason was reported"))
	if b.Remedy != "" {
		s.Put(6, terminal.Bold, "-> "+terminal.Clean(b.Remedy))
	}
}

func sinceText(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", since " + terminal.Stamp(at, now)
}

func outlookText(o types.DrainOutlook) (terminal.Style, string) {
	switch o {
	case types.OutlookSlow:
		return terminal.Yellow, "SLOW, resolves without action"
	case types.OutlookNever:
		return terminal.Red, "NEVER without action"
	}
	return terminal.Yellow, cmp.Or(terminal.Clean(string(o)), "outlook unknown")
}

func putVolume(s *terminal.Screen, v types.DrainVolume, now time.Time) {
	look, outlook := outlookText(v.Outlook)
	name := terminal.Clean(v.Name)
	if v.Claim != "" {
		name += " (" + terminal.Clean(v.Claim) + ")"
	}
	last := ""
	if v.LastHere {
		last = ", the LAST healthy replica is here"
	}
	s.Put(2, look, name+": "+outlook+last+sinceText(v.Since, now))
	why := cmp.Or(terminal.Clean(v.Why), "no reason was reported")
	if v.Replicas > 0 {
		why += fmt.Sprintf(" (%d of %d replicas healthy)", v.Healthy, v.Replicas)
	}
	s.Put(6, terminal.Plain, why)
	if v.Rebuilding != "" {
		left := ", time left unknown"
		if v.ETA > 0 {
			left = ", about " + terminal.Span(time.Duration(min(v.ETA, int(terminal.Years10/time.Second)))*time.Second) + " left"
		}
		s.Put(6, terminal.Plain, fmt.Sprintf("rebuilding on %s %s %d%%%s", terminal.Clean(v.Rebuilding), terminal.Bar(v.Percent, 100, 20), v.Percent, left))
	}
	if v.Remedy != "" {
		s.Put(6, terminal.Bold, "-> "+terminal.Clean(v.Remedy))
	}
}
