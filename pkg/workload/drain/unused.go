package drain

import (
	"fmt"
	"os"
	"time"

	"github.com/zedkube/zedkube/types"
)

// heardFor is how long a drain that is taken back is said to have failed before its
// lock and its cordon go: whoever is about to use it after all hears of it, or the
// device is down by then.
const heardFor = time.Minute

// usedBy says what shows that the device is going down, or that an update is under
// way, "" for nothing.
func usedBy(seen observed, r record) string {
	switch s := seen.agent; {
	case s.DeviceReboot:
		return "nodeagent says that the device reboots"
	case s.DevicePoweroff:
		return "nodeagent says that the device powers off"
	case s.DeviceShutdown:
		return "nodeagent says that the device shuts down"
	case s.UpdateInprogress:
		return "nodeagent says that an update is under way"
	}
	for _, path := range seen.markerPaths {
		// One that was there at COMPLETE is of something else. Clocks jump: that it is
		// another one counts, and not that it is newer.
		if mark, ok := seen.markers[path]; ok && mark != r.markers[path] {
			return path + " says that the device goes down"
		}
	}
	return ""
}

// lookAtMarkers returns which markers have content, and what identifies each
// writing of them. It is never nil.
func lookAtMarkers(paths []string) map[string]string {
	markers := map[string]string{}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			markers[path] = markOf(info)
		}
	}
	return markers
}

// unusedFor is how long one of EVE's agents has been told COMPLETE, and the
// device is still up.
func (f facts) unusedFor() time.Duration {
	if f.rec.phase != types.PhaseComplete || !f.device() || f.unsaid || f.rec.status.Status != types.DrainComplete {
		return 0
	}
	return f.now.Sub(later(f.rec.ended, f.rec.said))
}

// onlyDevice reports that nobody but EVE's agents asks: for a person, or for a
// leave, COMPLETE stands for as long as it takes.
func (f facts) onlyDevice() bool {
	for _, name := range []string{byOperator, byLeave} {
		if r := f.requests[name]; r.stands || r.doubt {
			return false
		}
	}
	return true
}

// expired reports that COMPLETE has been of no use for too long.
func (f facts) expired() bool {
	return f.inUse == "" && f.onlyDevice() && f.unusedFor() >= f.unusedAfter
}

// expire takes COMPLETE back: the drain has failed, and only a request that is
// another one begins a new drain.
func expire(f facts, a *action) {
	result(f, a, types.PhaseNotEmpty, fmt.Sprintf("the device could have gone down for %s and has not: the drain is taken back", f.unusedAfter))
	a.rec.unused, a.rec.dead, a.rec.kept = true, false, false
}

// unusedWhy is what to say of a COMPLETE that has not been used for an hour, ""
// before that.
func (f facts) unusedWhy() string {
	if f.unusedFor() < f.hour {
		return ""
	}
	why := fmt.Sprintf("the device may go down and has not for more than %s", f.hour)
	switch {
	case f.inUse != "":
		return why + ": " + f.inUse
	case !f.onlyDevice():
		return why
	}
	return fmt.Sprintf("%s: once that is %s the drain is taken back", why, f.unusedAfter)
}

// heldBack reports that what an unused drain holds is not to be given back yet.
func heldBack(f facts, a *action) bool {
	wait := heardFor - f.now.Sub(later(f.rec.said, f.rec.ended))
	switch {
	case !f.rec.unused || !f.ourCordon() && !f.rec.locked:
		return false
	case f.inUse != "":
		a.waits = f.inUse
		return true
	case f.unsaid:
		return true
	case wait > 0:
		a.wait(wait)
	}
	return wait > 0
}

// reportUnused reports once that nobody uses COMPLETE.
func (c *Component) reportUnused(f facts) {
	if why := f.unusedWhy(); why != "" && !c.mem.unused {
		c.mem.unused = true
		c.report(true, "DrainNotUsed", why)
	}
}
