package device

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// AgentLife is whether the agent that writes the record is alive.
type AgentLife struct {
	Runs bool
	Why  string    // why it is taken for dead; "" where it runs
	Seen time.Time // of its last heartbeat; zero for never
}

// ReadRecord reads the JSON of a topic's value, and when it was written.
func ReadRecord[T any](path string) (v T, written time.Time, err error) {
	return overview.ReadFile[T](path)
}

// LifeOfAgent tells a running agent from the leftovers of one.
func LifeOfAgent(p Paths, now time.Time) AgentLife {
	a := overview.AgentOf(p.PID, p.Touch, false, now)
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

// Uptime is the time since the boot, suspended time included. Nobody sets that
// clock, and it begins at 0 with each boot.
func Uptime() time.Duration {
	var t unix.Timespec
	// It fails for a clock or an address that does not exist, neither of which this is.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}

// bootIDFile is where the kernel names the boot; a kubelet reads the same into
// its Node's nodeInfo.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// ReadBootID names this boot. A file below --root stands for a machine of its
// own and comes first; where there is none it is this machine's boot. With an
// error it is "": nobody can tell then whether the device has rebooted but by
// the uptime, which is shorter after a reboot than what was noted before it. To
// take every start for a reboot would end a drain, and let another node go down
// beside this one, because an agent was restarted.
func ReadBootID(file string) (string, error) {
	content, err := safefile.Read(file, safefile.Small)
	if errors.Is(err, os.ErrNotExist) {
		file = bootIDFile
		content, err = safefile.Read(file, safefile.Small)
	}
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	id := strings.TrimSpace(string(content))
	if id == "" {
		return "", fmt.Errorf("read boot id: %s is empty", file)
	}
	return id, nil
}
