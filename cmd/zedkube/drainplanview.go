package main

import (
	"fmt"
	"strings"

	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/types"
)

// planLines is the plan as a screen.
func planLines(f drain.Forecast, width int, colour bool) []string {
	s := &screen{width: width, colour: colour}
	s.put(0, bold, "Plan of a drain of "+clean(f.Node)+", nothing is changed")
	look := map[types.DrainOutlook]style{types.OutlookSlow: yellow, types.OutlookNever: red, "": green}[f.Outlook]
	s.field("verdict", look, clean(f.Verdict))
	s.field("asked at", plain, f.Made.UTC().Format("2006-01-02 15:04:05Z"))
	for _, unknown := range f.Unknown {
		s.field("unknown", red, clean(unknown))
	}
	putPlanGates(s, f)
	putPlanPods(s, f)
	// The blockers and volumes look as they do in the record of a drain.
	r := drainRecord{ReadAt: f.Made}
	p := types.NodeDrainProgress{Blockers: f.Blockers, Volumes: f.Volumes, Stranded: f.Stranded}
	putBlockers(s, r, p)
	putVolumes(s, r, p)
	putStranded(s, p)
	return s.lines
}

// putPlanGates is what has to be had before the first eviction.
func putPlanGates(s *screen, f drain.Forecast) {
	lock := lockText(f.Lock, f.Made)
	switch {
	case f.Lock.Waits != "":
		s.field("lock", yellow, strings.TrimPrefix(lock+": ", ": ")+clean(f.Lock.Waits))
	case lock != "":
		s.field("lock", plain, lock)
	default:
		s.field("lock", plain, "free")
	}
	if f.Quorum != "" {
		s.field("quorum", red, clean(f.Quorum))
	} else {
		s.field("quorum", plain, "enough without this node")
	}
	switch f.Cordon {
	case "":
		s.field("cordon", plain, "would be made")
	default:
		s.field("cordon", plain, "is there already, by "+clean(f.Cordon))
	}
	putWarnings(s, f.Warnings)
	if len(f.Peers) > 0 {
		s.field("peers", plain, listed(f.Peers))
	} else {
		s.field("peers", yellow, "none is Ready and takes pods: nothing would be evicted")
	}
}

// putPlanPods are the pods in the order of their eviction.
func putPlanPods(s *screen, f drain.Forecast) {
	s.gap()
	switch {
	case len(f.Pods) == 0:
		s.put(0, bold, "No pod would be evicted")
		return
	case !f.Evicts:
		s.put(0, bold, "Pods that would go down with the device")
	default:
		s.put(0, bold, fmt.Sprintf("Pods that would be evicted, in this order, %d at a time", f.Parallel))
	}
	for i, p := range f.Pods {
		if i == shownItems {
			break
		}
		look, text := plain, "goes"
		if p.Refused != "" {
			look, text = yellow, "refused now"
		}
		s.put(2, look, fmt.Sprintf("%3d  %s  %s", i+1, clean(p.Pod), text))
	}
	putMore(s, len(f.Pods), 0)
}
