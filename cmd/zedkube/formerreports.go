package main

import (
	"os"
	"time"

	"github.com/zedkube/zedkube/types"
)

// formerReports reads what a former run has left, before this one writes the same
// files.
func formerReports(p paths) types.FormerReports {
	var f types.FormerReports
	if info, err := os.Stat(p.touch); err == nil {
		f.Alive = info.ModTime().UTC()
	}
	health, _, err := readRecord[types.KubeReportHealth](p.topicFile(self, "KubeReportHealth"))
	if err != nil {
		return f // there is none, or the report is made anew anyway
	}
	f.Stale = map[string]time.Time{}
	for _, s := range health.Sections {
		f.Stale[s.Name] = s.StaleSince
	}
	return f
}
