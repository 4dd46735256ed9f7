package types

import "time"

// KubeReportHealth says how far what this node reports can be trusted, under
// key "global" (docs/wire.md, "KubeReportHealth").
type KubeReportHealth struct {
	Reports  bool            // this node reports for the cluster: it publishes KubeClusterInfo
	Sections []ReportSection // by name
}

// The sections of KubeReportHealth.
const (
	SectionNodes         = "Nodes"
	SectionAppPods       = "AppPods"
	SectionAppVMIs       = "AppVMIs"
	SectionStorage       = "Storage" // the volumes
	SectionNamespaces    = "PodNsInfo"
	SectionAllocated     = "AllocatedBytes" // the snapshots' part of the volumes
	SectionStorageHealth = "StorageHealth"
	SectionServices      = "UserService"
	SectionIngresses     = "UserIngress"
	SectionLBPool        = "LBPoolStatus"
)

// ReportSection is one part of a report.
type ReportSection struct {
	Name       string
	Known      bool      // it has been seen whole since this node began; else it is empty, or from a former run
	Updated    time.Time // when its content last changed here
	StaleSince time.Time // since when it cannot be brought up to date, wall clock; zero while it is
	Why        string    // why not, a sentence; "" while it is up to date
	Absent     bool      // the cluster has no such kind of object
	Total      int       // entries there are
	Truncated  int       // of them left out of the report, as it would be too large
	Without    string    // the field that every entry goes without for the same reason; "" for none
}

// FormerReports is what is known of the reports that a former run of the agent
// has left behind.
type FormerReports struct {
	Alive time.Time            // when that run was last seen to work, wall clock; zero if nobody knows of one
	Stale map[string]time.Time // by section: since when that run called it stale
}

// Since is since when a section may be untrue that is as the former run has left
// it. This run began at the given time.
func (f FormerReports) Since(section string, began time.Time) time.Time {
	for _, since := range []time.Time{f.Alive, f.Stale[section]} {
		if !since.IsZero() && since.Before(began) {
			began = since
		}
	}
	return began
}
