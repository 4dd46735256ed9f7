package overview

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// SilentAgent is how old an agent's last heartbeat may be: it has one
// every ten seconds.
const SilentAgent = time.Minute

// AgentOf tells a running agent from the leftovers of one, by its pid file and
// its touch file, which only a working agent renews.
func AgentOf(pidFile, touchFile string, now time.Time) Agent {
	a := Agent{Seen: touched(touchFile)}
	raw, err := safefile.Read(pidFile, safefile.Small)
	pid, bad := strconv.Atoi(strings.TrimSpace(string(raw)))
	switch {
	case err != nil:
		a.Why = "it has no pid file " + pidFile
		return a
	case bad != nil || pid <= 0:
		a.Why = "its pid file " + pidFile + " holds no number"
		return a
	}
	a.PID = pid
	switch {
	case errors.Is(syscall.Kill(pid, 0), syscall.ESRCH):
		a.Why = fmt.Sprintf("process %d is gone", pid)
	case a.Seen.IsZero():
		a.Why = "it has had no heartbeat yet"
	case now.Sub(a.Seen) > SilentAgent:
		a.Why, a.Hung = "its last heartbeat was "+since(a.Seen, now), true
	default:
		a.Runs = true
	}
	return a
}

// agentOfCopy judges by the files alone: the process ran on another device.
func agentOfCopy(touchFile string, now time.Time) Agent {
	a := Agent{Seen: touched(touchFile)}
	switch {
	case a.Seen.IsZero():
		a.Why = "the copy contains no heartbeat of it"
	case now.Sub(a.Seen) > SilentAgent:
		a.Why = "its last heartbeat was " + since(a.Seen, now)
	default:
		a.Runs = true
	}
	return a
}

func touched(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return UTC(info.ModTime())
}

// since is how long ago a time was, for a sentence.
func since(at, now time.Time) string {
	return at.UTC().Format("2006-01-02 15:04:05Z") + ", " + span(now.Sub(at)) + " ago"
}

// span is a duration for people.
func span(d time.Duration) string {
	d = d.Abs()
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d seconds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
