package main

import (
	"os"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/types"
)

// formerReports reads what a former run has left, before this one writes the same
// files.
func formerReports(p device.Paths) types.FormerReports {
	var f types.FormerReports
	if info, err := os.Stat(p.Touch); err == nil {
		f.Alive = info.ModTime().UTC()
	}
	health, _, err := device.ReadRecord[types.KubeReportHealth](p.TopicFile(device.Self, "KubeReportHealth"))
	if err != nil {
		return f // there is none, or the report is recreated anyway
	}
	f.Stale = map[string]time.Time{}
	for _, s := range health.Sections {
		f.Stale[s.Name] = s.StaleSince
	}
	return f
}
