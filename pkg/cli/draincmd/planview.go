package draincmd

import (
	"fmt"
	"strings"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/types"
)

// planLines is the plan as a screen.
func planLines(f drain.Forecast, width int, colour bool) []string {
	s := &terminal.Screen{Width: width, Colour: colour}
	s.Put(0, terminal.Bold, "Plan of a drain of "+terminal.Clean(f.Node)+", nothing is changed")
	look := map[types.DrainOutlook]terminal.Style{types.OutlookSlow: terminal.Yellow, types.OutlookNever: terminal.Red, "": terminal.Green}[f.Outlook]
	s.Field("verdict", look, terminal.Clean(f.Verdict))
	s.Field("asked at", terminal.Plain, f.Made.UTC().Format("2006-01-02 15:04:05Z"))
	for _, unknown := range f.Unknown {
		s.Field("unknown", terminal.Red, terminal.Clean(unknown))
	}
	putPlanGates(s, f)
	putPlanPods(s, f)
	// The blockers and volumes look as they do in the record of a drain.
	r := drainRecord{ReadAt: f.Made}
	p := types.NodeDrainProgress{Blockers: f.Blockers, Volumes: f.Volumes, Stranded: f.Stranded}
	putBlockers(s, r, p)
	putVolumes(s, r, p)
	putStranded(s, p)
	return s.Lines
}

// putPlanGates is what has to be had before the first eviction.
func putPlanGates(s *terminal.Screen, f drain.Forecast) {
	lock := lockText(f.Lock, f.Made)
	switch {
	case f.Lock.Waits != "":
		s.Field("lock", terminal.Yellow, strings.TrimPrefix(lock+": ", ": ")+terminal.Clean(f.Lock.Waits))
	case lock != "":
		s.Field("lock", terminal.Plain, lock)
	default:
		s.Field("lock", terminal.Plain, "free")
	}
	if f.Quorum != "" {
		s.Field("quorum", terminal.Red, terminal.Clean(f.Quorum))
	} else {
		s.Field("quorum", terminal.Plain, "enough without this node")
	}
	switch f.Cordon {
	case "":
		s.Field("cordon", terminal.Plain, "would be made")
	default:
		s.Field("cordon", terminal.Plain, "is there already, by "+terminal.Clean(f.Cordon))
	}
	terminal.PutWarnings(s, f.Warnings)
	if len(f.Peers) > 0 {
		s.Field("peers", terminal.Plain, terminal.Listed(f.Peers))
	} else {
		s.Field("peers", terminal.Yellow, "none is Ready and takes pods: nothing would be evicted")
	}
}

// putPlanPods are the pods in the order of their eviction.
func putPlanPods(s *terminal.Screen, f drain.Forecast) {
	s.Gap()
	switch {
	case len(f.Pods) == 0:
		s.Put(0, terminal.Bold, "No pod would be evicted")
		return
	case !f.Evicts:
		s.Put(0, terminal.Bold, "Pods that would go down with the device")
	default:
		s.Put(0, terminal.Bold, fmt.Sprintf("Pods that would be evicted, in this order, %d at a time", f.Parallel))
	}
	for i, p := range f.Pods {
		if i == terminal.ShownItems {
			break
		}
		look, text := terminal.Plain, "goes"
		if p.Refused != "" {
			look, text = terminal.Yellow, "refused now"
		}
		s.Put(2, look, fmt.Sprintf("%3d  %s  %s", i+1, terminal.Clean(p.Pod), text))
	}
	terminal.PutMore(s, len(f.Pods), 0)
}
