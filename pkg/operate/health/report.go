package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// findStale tells of sections that stand still; where the API server is silent
// that says it all.
func findStale(o seen, tell func(types.Finding)) {
	if !o.fresh() || o.apiSilent() {
		return
	}
	var names []string
	var first types.ReportSection
	for _, s := range o.Report.Sections {
		if _, own := madeHere[s.Name]; s.Absent || !o.older(s.StaleSince, staleSection) || !own && !o.Report.Reports {
			continue
		}
		names = append(names, s.Name)
		if first.StaleSince.IsZero() || s.StaleSince.Before(first.StaleSince) {
			first = s
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	tell(warn("A permission or a kind named there is missing, or Kubernetes answers with errors.",
		"Sections of the report are stale: %s%s", strings.Join(names[:min(len(names), maxEach)], ", "), because(first.Why)).Of("", first.StaleSince))
}

// madeHere are the sections that every node makes, whether it reports or not.
var madeHere = map[string]struct{}{types.SectionServices: {}, types.SectionIngresses: {}, types.SectionLBPool: {}}

func findReportTruncated(o seen, tell func(types.Finding)) {
	for _, s := range o.Report.Sections {
		if s.Truncated > 0 {
			tell(warn("kubectl shows the rest.", "The report leaves out %d of %d entries of %s: they do not fit.", s.Truncated, s.Total, s.Name).Of(s.Name, s.Updated))
		}
	}
}

func findLeaderless(o seen, tell func(types.Finding)) {
	why, at := "", o.Lease.Since
	if c, ok := o.Conditions.Of(types.StateLeader); ok && o.fresh() {
		if c.Status != types.ConditionFalse {
			return
		}
		why, at = c.Message, c.Since
	} else if !o.Lease.Known() || o.Lease.Leader != "" || !o.belongs() || !o.older(o.Lease.At, leaderPatience) {
		return
	}
	tell(bad("Does any node reach the controller, and see the API server? Repairs go on without a leader.", "No node reports for the cluster%s", because(why)).Of("", at))
}

func judgeLease(o seen) types.Finding {
	l := o.Lease
	at := ""
	if !l.Since.IsZero() {
		at = " since " + l.Since.UTC().Format(time.RFC3339)
	}
	if !o.fresh() {
		return unknown("The agent does not run: who reports is not known.")
	}
	if f, is := o.first(findLeaderless); is {
		return f
	}
	switch {
	case !l.Known():
		return unknown("The agent has not published who reports.")
	case l.Leader == "" && !l.Running:
		return unknown("This node does not take part in the election and knows no holder.")
	case l.Leader == "":
		return warn("a new one is elected within half a minute", "No node reports for the cluster%s.", at)
	case l.Mine:
		return ok("This node reports%s.", at)
	}
	return ok("Node %s reports%s.", l.Leader, at)
}

func rebuild(v overview.Volume) string {
	if v.Rebuilding == 0 {
		return ""
	}
	return fmt.Sprintf(", one is being rebuilt, %d %%", v.Rebuilding)
}

// lastHere reports that of a volume's replicas this node has the only healthy one.
func lastHere(v overview.Volume) bool { return v.Here && v.Online == 1 && v.Replicas > 1 }

func findLastReplica(o seen, tell func(types.Finding)) {
	for _, v := range o.Storage.Volumes {
		if lastHere(v) {
			tell(bad("Keep this node up until another replica is healthy; make sure that Longhorn has space on another node.",
				"Volume %s has its last healthy replica on this node%s.", v.Name, rebuild(v)).Of(v.Name, time.Time{}))
		}
	}
	if p := o.Drain.Progress; p != nil && len(o.Storage.Volumes) == 0 {
		for _, v := range p.Volumes {
			if v.LastHere {
				tell(bad(v.Remedy, "Volume %s has its last healthy replica on this node%s", v.Name, because(v.Why)).Of(v.Name, v.Since))
			}
		}
	}
}

func findVolumeFaulted(o seen, tell func(types.Finding)) {
	for _, v := range o.Storage.Volumes {
		if v.Robustness == types.StorageVolumeRobustnessFaulted.String() {
			tell(bad("Bring back the nodes that have its replicas.", "Volume %s has no healthy replica: its data is unavailable.", v.Name).Of(v.Name, time.Time{}))
		}
	}
}

func findVolumeDegraded(o seen, tell func(types.Finding)) {
	for _, v := range o.Storage.Volumes {
		if v.Robustness == types.StorageVolumeRobustnessDegraded.String() && !lastHere(v) {
			tell(warn("Wait for the rebuild; if there is none, make sure that Longhorn has space on another node.",
				"Volume %s has %d of %d replicas healthy%s.", v.Name, v.Online, v.Replicas, rebuild(v)).Of(v.Name, time.Time{}))
		}
	}
}

func findStorageUnhealthy(o seen, tell func(types.Finding)) {
	if o.Storage.Health == types.ServiceStatusFailed.String() {
		tell(bad("kubectl -n longhorn-system get pods", "Longhorn does not work.").Of("", o.Storage.Since))
	}
}

func findLonghornSetting(o seen, tell func(types.Finding)) {
	for _, s := range o.Storage.Settings {
		if s.Kept && s.Why != "" && o.older(s.Since, longSetting) {
			tell(warn("Fix what it names, or change the setting at the controller.",
				"Longhorn's %s differs from the device's settings%s", s.Name, because(s.Why)).Of(s.Name, s.Since))
		}
	}
}
