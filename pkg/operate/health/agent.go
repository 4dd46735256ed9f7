package health

import (
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// rebootAfter is how old a heartbeat is when the watchdog reboots the device
// (docs/wire.md, "Process").
const rebootAfter = 5 * time.Minute

func findAgentDead(o seen, tell func(types.Finding)) {
	if !o.Agent.Runs && !o.Agent.Hung {
		tell(bad("See why in its log; while it is down nothing is drained, repaired or reported; running applications go on.",
			"The agent does not run: %s. Everything below is what it last published.", o.Agent.Why).Of("", o.Agent.Seen))
	}
}

func findAgentHung(o seen, tell func(types.Finding)) {
	if o.Agent.Hung {
		tell(bad("Save its goroutines (zedkube support-bundle); the watchdog reboots the device after five minutes.",
			"The agent hangs: its process exists, and %s.", o.Agent.Why).Of("", o.Agent.Seen))
	}
}

type agentFacts struct {
	overview.Agent
	copied bool
	socket string
	answer int
	took   time.Duration
	err    error
}

func judgeAgent(f agentFacts) types.Finding {
	switch {
	case f.copied && f.Runs:
		return unknown("This is a copy of a device; the agent had a heartbeat shortly before it was made.")
	case f.copied:
		return warn("look at the log of that device for source zedkube", "When this copy was made the agent did not run: %s.", f.Why)
	}
	o := seen{overview.Overview{Agent: f.Agent}}
	if found, is := o.first(findAgentDead, findAgentHung); is {
		return found
	}
	switch {
	case f.err != nil:
		return bad("has another process taken the socket away? The agent recreates it within 30 seconds", "Process %d runs, and does not answer on %s: %v.", f.PID, f.socket, f.err)
	case f.answer != http.StatusOK:
		return warn("the agent is of another version than this command, or busy", "Process %d answers on %s with %d.", f.PID, f.socket, f.answer)
	}
	return ok("Process %d runs and answered within %s.", f.PID, f.took.Round(time.Millisecond))
}

type watchdogFacts struct {
	overview.Agent
	copied     bool
	registered bool // the watchdog was told to look at the file
	now        time.Time
}

func judgeWatchdog(f watchdogFacts) types.Finding {
	old := f.now.Sub(f.Seen)
	switch {
	case f.Seen.IsZero() && !f.Runs:
		return unknown("There is no heartbeat of an agent.")
	case f.Seen.IsZero():
		return bad("a component hangs from its start: look at the log for source zedkube", "The agent runs and has not touched its file yet.")
	case old > rebootAfter && f.registered && !f.copied:
		return bad("look at the log for source zedkube before the device reboots", "The last heartbeat is %s old; the watchdog reboots the device at %s.", span(old), span(rebootAfter))
	case old > rebootAfter:
		return bad("look at the log for source zedkube", "The last heartbeat is %s old.", span(old))
	case old > overview.SilentAgent:
		return warn("a component hangs; its goroutines are on the socket at /debug/pprof/goroutine?debug=2", "The last heartbeat is %s old; there is one every ten seconds.", span(old))
	case old < -overview.SilentAgent:
		return warn("set the clock", "The last heartbeat is %s in the future: the clock was set back.", span(old))
	case !f.registered:
		return warn("create /run/watchdog/file/zedkube.touch (EVE's start script does); without it a hung agent is not detected", "The heartbeat is %s old, and the watchdog does not check it.", span(old))
	}
	return ok("The heartbeat is %s old.", span(old))
}

func judgeHypervisor(kind string, err error) types.Finding {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unknown("There is no /run/eve-hv-type; the agent takes the device for one with Kubernetes.")
	case err != nil:
		return warn("fix the file", "The hypervisor's type cannot be read: %v.", err)
	case types.HypervisorRunsKubernetes(kind):
		return ok("The hypervisor is of type %s.", kind)
	}
	return bad("a cluster needs an EVE image of type k", "The hypervisor is of type %q: the agent only feeds the watchdog.", kind)
}
