package device

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// AgentLife is whether the agent that writes the record is alive.
type AgentLife struct {
	Runs bool
	Why  string    // why it is taken for dead; "" where it runs
	Seen time.Time // when it last gave a sign of life; zero for never
}

// ReadRecord reads the JSON of a topic's value, and when it was written.
func ReadRecord[T any](path string) (v T, written time.Time, err error) {
	return overview.ReadFile[T](path)
}

// LifeOfAgent tells a running agent from the leftovers of one.
func LifeOfAgent(p Paths, now time.Time) AgentLife {
	a := overview.AgentOf(p.PID, p.Touch, now)
	return AgentLife{Runs: a.Runs, Why: a.Why, Seen: a.Seen}
}

// CheckDevice refuses a root that is none.
func CheckDevice(o Options) error {
	if _, err := os.Stat(o.Paths().RunDir()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	return nil
}

// FormerReports reads what a former run has left, before this one writes the same
// files.
func FormerReports(p Paths) types.FormerReports {
	var f types.FormerReports
	if info, err := os.Stat(p.Touch); err == nil {
		f.Alive = info.ModTime().UTC()
	}
	health, _, err := ReadRecord[types.KubeReportHealth](p.TopicFile(Self, "KubeReportHealth"))
	if err != nil {
		return f // there is none, or the report is made again anyway
	}
	f.Stale = map[string]time.Time{}
	for _, s := range health.Sections {
		f.Stale[s.Name] = s.StaleSince
	}
	return f
}
