package overview

import (
	"slices"
	"strings"

	"github.com/zedkube/zedkube/types"
)

func reportRules() []rule {
	return []rule{
		{"Leaderless", anchorLeader, findLeaderless},
		{"ReportStale", anchorReport, findStale},
		{"ReportTruncated", anchorReport, findReportTruncated},
	}
}

// findStale tells of sections that stand still; where the API server is silent
// that says it all.
func findStale(o Overview, tell func(Problem)) {
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
	tell(Problem{
		Severity: Warn, Since: first.StaleSince, What: sentence("The report is not brought up to date, in "+strings.Join(names[:min(len(names), maxEach)], ", "), first.Why),
		Remedy: "A right or a kind that it names is missing, or Kubernetes answers with errors.",
	})
}

// madeHere are the sections that every node makes, whether it reports or not.
var madeHere = map[string]struct{}{types.SectionServices: {}, types.SectionIngresses: {}, types.SectionLBPool: {}}

func storageRules() []rule {
	return []rule{
		{"LastReplica", anchorStorage, findLastReplica},
		{"VolumeFaulted", anchorStorage, findVolumeFaulted},
		{"VolumeDegraded", anchorStorage, findVolumeDegraded},
		{"StorageUnhealthy", anchorStorage, findStorageUnhealthy},
		{"LonghornSetting", anchorLonghorn, findLonghornSetting},
	}
}

func rebuild(v Volume) string {
	if v.Rebuilding == 0 {
		return ""
	}
	return ", one is being rebuilt, " + count(v.Rebuilding) + " %"
}

func findLeaderless(o Overview, tell func(Problem)) {
	l := o.Lease
	what, at := "No node reports for the cluster.", l.Since
	if c, ok := o.Conditions.Of(types.StateLeader); ok && o.fresh() {
		if c.Status != types.ConditionFalse {
			return
		}
		what, at = sentence("No node reports for the cluster", c.Message), c.Since
	} else if !l.Known() || l.Leader != "" || !o.belongs() || !o.older(l.At, leaderPatience) {
		return
	}
	tell(Problem{Severity: Bad, Since: at, What: what, Remedy: "Does any node reach the controller, and see the API server? Repairs go on without a leader."})
}

func findReportTruncated(o Overview, tell func(Problem)) {
	for _, s := range o.Report.Sections {
		if s.Truncated > 0 {
			tell(Problem{
				Severity: Warn, About: s.Name, Since: s.Updated, What: "The report leaves out " + count(s.Truncated) + " of " + count(s.Total) + " entries of " + s.Name + ": they do not fit.",
				Remedy: "kubectl shows the rest.",
			})
		}
	}
}

func findLastReplica(o Overview, tell func(Problem)) {
	for _, v := range o.Storage.Volumes {
		if v.Here && v.Online == 1 && v.Replicas > 1 {
			tell(Problem{
				Severity: Bad, About: v.Name, What: "Volume " + v.Name + " has its last healthy replica on this node" + rebuild(v) + ".",
				Remedy: "Keep this node up until another replica is whole; see that Longhorn has room on another node.",
			})
		}
	}
	if p := o.Drain.Progress; p != nil && len(o.Storage.Volumes) == 0 {
		for _, v := range p.Volumes {
			if v.LastHere {
				tell(Problem{Severity: Bad, About: v.Name, Since: v.Since, What: sentence("Volume "+v.Name+" has its last healthy replica on this node", v.Why), Remedy: v.Remedy})
			}
		}
	}
}

func findVolumeFaulted(o Overview, tell func(Problem)) {
	for _, v := range o.Storage.Volumes {
		if v.Robustness == types.StorageVolumeRobustnessFaulted.String() {
			tell(Problem{Severity: Bad, About: v.Name, What: "Volume " + v.Name + " has no healthy replica: what it holds cannot be reached.", Remedy: "Bring the nodes back that hold its replicas."})
		}
	}
}

func findVolumeDegraded(o Overview, tell func(Problem)) {
	for _, v := range o.Storage.Volumes {
		if v.Robustness == types.StorageVolumeRobustnessDegraded.String() && !(v.Here && v.Online == 1 && v.Replicas > 1) {
			tell(Problem{
				Severity: Warn, About: v.Name, What: "Volume " + v.Name + " has " + count(v.Online) + " of " + count(v.Replicas) + " replicas healthy" + rebuild(v) + ".",
				Remedy: "Wait for the rebuild; where there is none, see that Longhorn has room on another node.",
			})
		}
	}
}

func findStorageUnhealthy(o Overview, tell func(Problem)) {
	if o.Storage.Health == types.ServiceStatusFailed.String() {
		tell(Problem{Severity: Bad, Since: o.Storage.Since, What: "Longhorn does not work.", Remedy: "kubectl -n longhorn-system get pods"})
	}
}

func findLonghornSetting(o Overview, tell func(Problem)) {
	for _, s := range o.Storage.Settings {
		if s.Kept && s.Why != "" && o.older(s.Since, longSetting) {
			tell(Problem{
				Severity: Warn, About: s.Name, Since: s.Since, What: sentence("Longhorn's "+s.Name+" is not as the device's settings want it", s.Why),
				Remedy: "Mend what it names, or change the setting at the controller.",
			})
		}
	}
}
