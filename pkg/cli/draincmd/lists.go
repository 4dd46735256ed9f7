package draincmd

import (
	"cmp"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// putInTheWay are the pods and volumes in the way of a drain, and the pods that cannot
// run elsewhere.
func putInTheWay(s *terminal.Screen, p types.NodeDrainProgress, now time.Time) {
	if len(p.Blockers) > 0 || p.BlockersOmitted > 0 {
		s.Gap()
		s.Put(0, terminal.Bold, "Pods that block the drain")
		terminal.PutList(s, p.Blockers, p.BlockersOmitted, func(b types.DrainBlocker) { putBlocker(s, b, now) })
	}
	if len(p.Volumes) > 0 || p.VolumesOmitted > 0 {
		s.Gap()
		s.Put(0, terminal.Bold, "Volumes that block the drain")
		terminal.PutList(s, p.Volumes, p.VolumesOmitted, func(v types.DrainVolume) { putVolume(s, v, now) })
	}
	if len(p.Stranded) > 0 || p.StrandedOmitted > 0 {
		s.Gap()
		s.Put(0, terminal.Bold, "Pods that can run only on this node (down until it is back)")
		s.Put(2, terminal.Plain, terminal.Listed(p.Stranded))
		terminal.PutList(s, []string{}, p.StrandedOmitted, nil)
	}
}

func putBlocker(s *terminal.Screen, b types.DrainBlocker, now time.Time) {
	look, outlook := outlookText(b.Outlook)
	cause := ""
	if b.Cause != "" {
		cause = terminal.Clean(b.Cause) + ", " // the word that docs/operations.md has it under
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
