package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

// putBlockers are the pods in the way.
func putBlockers(s *screen, r drainRecord, p types.NodeDrainProgress) {
	if len(p.Blockers) == 0 && p.BlockersOmitted <= 0 {
		return
	}
	s.gap()
	s.put(0, bold, "Pods in the way")
	for i, b := range p.Blockers {
		if i == shownItems {
			break
		}
		putBlocker(s, b, r.ReadAt)
	}
	putMore(s, len(p.Blockers), p.BlockersOmitted)
}

func putBlocker(s *screen, b types.DrainBlocker, now time.Time) {
	look, outlook := outlookText(b.Outlook)
	since := ""
	if !b.Since.IsZero() {
		since = ", since " + stamp(b.Since, now)
	}
	cause := ""
	if b.Cause != "" {
		cause = clean(b.Cause) + ", " // the word that docs/operations.md has it under
	}
	s.put(2, look, clean(b.Pod)+": "+cause+outlook+since)
	s.put(6, plain, cmp.Or(clean(b.Why), clean(b.Cause), "no reason is given"))
	if b.Remedy != "" {
		s.put(6, bold, "-> "+clean(b.Remedy))
	}
}

func outlookText(o types.DrainOutlook) (style, string) {
	switch o {
	case types.OutlookSlow:
		return yellow, "SLOW, ends by itself"
	case types.OutlookNever:
		return red, "NEVER by itself, somebody has to act"
	}
	return yellow, cmp.Or(clean(string(o)), "outlook unknown")
}

// putMore says how much of a list is not shown.
func putMore(s *screen, have, omitted int) {
	hidden := max(have-shownItems, 0)
	if omitted > 0 && omitted < 1<<40 {
		hidden += omitted
	}
	if hidden > 0 {
		s.put(2, plain, fmt.Sprintf("and %d more", hidden))
	}
}

// putVolumes are the volumes in the way.
func putVolumes(s *screen, r drainRecord, p types.NodeDrainProgress) {
	if len(p.Volumes) == 0 && p.VolumesOmitted <= 0 {
		return
	}
	s.gap()
	s.put(0, bold, "Volumes in the way")
	for i, v := range p.Volumes {
		if i == shownItems {
			break
		}
		putVolume(s, v, r.ReadAt)
	}
	putMore(s, len(p.Volumes), p.VolumesOmitted)
}

func putVolume(s *screen, v types.DrainVolume, now time.Time) {
	look, outlook := outlookText(v.Outlook)
	name := clean(v.Name)
	if v.Claim != "" {
		name += " (" + clean(v.Claim) + ")"
	}
	since := ""
	if !v.Since.IsZero() {
		since = ", since " + stamp(v.Since, now)
	}
	last := ""
	if v.LastHere {
		last = ", the LAST healthy replica is here"
	}
	s.put(2, look, name+": "+outlook+last+since)
	why := cmp.Or(clean(v.Why), "no reason is given")
	if v.Replicas > 0 {
		why += fmt.Sprintf(" (%d of %d replicas healthy)", v.Healthy, v.Replicas)
	}
	s.put(6, plain, why)
	if v.Rebuilding != "" {
		left := ", time left unknown"
		if v.ETA > 0 {
			left = ", about " + span(time.Duration(min(v.ETA, int(years10/time.Second)))*time.Second) + " left"
		}
		s.put(6, plain, fmt.Sprintf("rebuilding on %s %s %d%%%s", clean(v.Rebuilding), bar(v.Percent, 100, 20), v.Percent, left))
	}
	if v.Remedy != "" {
		s.put(6, bold, "-> "+clean(v.Remedy))
	}
}

// putStranded are the pods that nobody else can take.
func putStranded(s *screen, p types.NodeDrainProgress) {
	if len(p.Stranded) == 0 && p.StrandedOmitted <= 0 {
		return
	}
	s.gap()
	s.put(0, bold, "Pods that can run only here (down until this node is back)")
	s.put(2, plain, listed(p.Stranded))
	putMore(s, min(len(p.Stranded), shownItems), p.StrandedOmitted)
}
