package device

import (
	"os"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

func TestHowOldAFormerRunsReportsAreIsReadFromItsFiles(t *testing.T) {
	p := Options{Root: t.TempDir()}.Paths()
	now := time.Now()
	if f := FormerReports(p); !f.Since(types.SectionAppPods, now).Equal(now) {
		t.Errorf("without a former run: %+v", f)
	}
	alive := now.Add(-46 * time.Second)
	cmdtest.Lay(t, p.Touch, "")
	if err := os.Chtimes(p.Touch, alive, alive); err != nil {
		t.Fatal(err)
	}
	cmdtest.Lay(t, p.TopicFile(Self, "KubeReportHealth"), `{"Reports":true,"Sections":[{"Name":"Storage","StaleSince":"2026-05-03T06:41:20Z"}`)
	if f := FormerReports(p); !f.Since(types.SectionStorage, now).Equal(alive) {
		t.Errorf("with half a report: %+v", f)
	}
	cmdtest.Lay(t, p.TopicFile(Self, "KubeReportHealth"), `{"Reports":true,"Sections":[
		{"Name":"AppPods","Known":true,"StaleSince":"0001-01-01T00:00:00Z"},{"Name":"Storage","StaleSince":"2026-05-03T06:41:20Z"}]}`)
	stale := time.Date(2026, 5, 3, 6, 41, 20, 0, time.UTC)
	f := FormerReports(p)
	for section, want := range map[string]time.Time{
		types.SectionAppPods: alive, types.SectionServices: alive, types.SectionStorage: stale,
	} {
		if got := f.Since(section, now); !got.Equal(want) {
			t.Errorf("%s: since %s, want %s", section, got, want)
		}
	}
	if before := stale.Add(-time.Hour); !f.Since(types.SectionStorage, before).Equal(before) {
		t.Error("a clock that was set back makes a report younger")
	}
}
