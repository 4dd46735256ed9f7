package storage

import (
	"cmp"
	"errors"
	"time"

	"github.com/zedkube/zedkube/types"
)

type level int

const (
	reservation level = iota
	snapshots
	drainPolicy
	levels // how many there are
)

func (l level) String() string {
	return []string{"reservation on Longhorn's disks", "schedule of Longhorn's snapshots", "drain policy of Longhorn"}[l]
}

type facts struct {
	now    time.Time     // the wall clock, to be shown only
	uptime time.Duration // what everything is measured with

	heard    bool // the settings are known, all of them
	settings types.ConfigItemValueMap
	own      types.Node
	joined   bool // the cluster has a Node of this device
	leads    bool

	tables map[string]types.TableStatus
	node   *types.LonghornNode    // Longhorn's node of this device; nil for none
	policy *types.LonghornSetting // nil for none
	job    *types.SnapshotJob     // nil for none

	keepers [levels]levelKeeper
	last    types.KubeStorageStatus
}

type action struct {
	status types.KubeStorageStatus
	moves  [levels]move
	again  time.Duration // until the next look; 0 for whenever something changes
}

func decide(f facts) action {
	var a action
	var logged [levels]types.StorageLevel
	for l, is := range f.desiredLevels() {
		m := f.keepers[l].next(is, f.uptime)
		a.moves[l] = m
		logged[l] = types.StorageLevel{Kept: is.kept, Wanted: clip(is.wanted), Actual: clip(is.actual), Why: clip(m.why)}
		if m.again > 0 && (a.again == 0 || m.again < a.again) {
			a.again = m.again
		}
	}
	a.status = types.KubeStorageStatus{
		DiskReservation: since(f.last.DiskReservation, logged[reservation], f.now),
		SnapshotJob:     since(f.last.SnapshotJob, logged[snapshots], f.now),
		DrainPolicy:     since(f.last.DrainPolicy, logged[drainPolicy], f.now),
	}
	return a
}

// since dates what is said now, unless it was said before.
func since(last, now types.StorageLevel, at time.Time) types.StorageLevel {
	now.Since = last.Since
	if now != last || last.Since.IsZero() {
		now.Since = at
	}
	return now
}

const (
	// minPause and maxPause are between two writes of one level. Where someone
	// else wants it otherwise, each write comes later than the one before.
	minPause = 10 * time.Second
	maxPause = 10 * time.Minute
	// calm is how long a level has to stay as it is wanted for a later change to
	// count as the first one.
	calm = maxPause
)

const (
	beingSet  = "it is being set"
	contested = "it does not keep the value set: someone else changes it"
)

// levelKeeper is what this process remembers of a level. Losing it costs a pause.
type levelKeeper struct {
	target string        // what it was to be when last looked at
	value  string        // the same, for people
	holds  bool          // it was so
	held   time.Duration // since when

	wrote       time.Duration // when the last write began, by the uptime
	pause       time.Duration // that follows it; 0 for no write that counts
	any         bool          // there was one
	set         bool          // it went through, for the target, and it has not been calm since
	after       bool          // the one under way follows one that went through, and was never seen to hold
	busy        bool          // it is under way
	undone      bool          // since then someone else changed what was as it should be
	overwritten bool          // time and again
	failed      string        // why the last write did not go through
	flaw        bool          // of which people have to be told
}

type move struct {
	levelKeeper levelKeeper
	begin       bool // the write of change
	change      change
	putBack     bool // because someone else changed it
	cancel      bool // the write under way has lost its reason
	why         string
	flaw        bool
	again       time.Duration
}

func (t levelKeeper) next(a desired, uptime time.Duration) move {
	m := move{change: a.change}
	switch {
	case a.why != "" || !a.kept:
		m.why, m.flaw, m.cancel = a.why, a.flaw, t.busy
		t.holds, t.undone, t.set, t.failed = false, false, false, ""
	case a.reached:
		t.rest(a, uptime, &m)
	default:
		t.enforce(a, uptime, &m)
	}
	m.levelKeeper = t
	return m
}

func (t *levelKeeper) rest(a desired, uptime time.Duration, m *move) {
	if !t.holds || t.target != a.target {
		t.holds, t.held = true, uptime
	}
	t.target, t.undone, t.failed = a.target, false, ""
	switch quiet := uptime - t.held; {
	case quiet >= calm:
		t.pause, t.set, t.overwritten = 0, false, false
	case t.pause > 0:
		m.again = calm - quiet
	}
	if t.overwritten {
		m.why, m.flaw = contested, true
	}
}

func (t *levelKeeper) enforce(a desired, uptime time.Duration, m *move) {
	if t.target != a.target {
		m.cancel = t.busy
		t.target, t.pause, t.set, t.overwritten, t.undone, t.failed = a.target, 0, false, false, false, ""
	} else if t.holds {
		t.undone = true
	}
	t.holds, t.value = false, a.wanted
	due := t.wrote + max(t.pause, minPause)
	switch {
	case t.busy:
	case t.any && uptime < due:
		m.again = due - uptime
	default:
		t.overwritten = t.overwritten || t.set && t.undone
		m.begin, m.putBack = true, t.undone && !t.overwritten
		t.any, t.wrote, t.after, t.set, t.busy = true, uptime, t.set, false, true
		t.pause = min(max(2*t.pause, minPause), maxPause)
	}
	m.why, m.flaw = cmp.Or(t.failed, beingSet), t.failed != "" && t.flaw
	if t.overwritten && t.failed == "" {
		m.why, m.flaw = contested, true
	}
}

// ended takes in what came of the write under way. One that has found nothing to
// change shows that the rows are late, and not that someone is at work.
func (t *levelKeeper) ended(o outcome, calledOff bool) {
	t.busy = false
	switch err := o.err; {
	case err == nil:
		t.set, t.undone, t.failed = !calledOff, false, ""
		switch {
		case !o.changed:
			t.pause = minPause
		case !calledOff: // else it was for another target
			t.overwritten = t.overwritten || t.after // so it was, if only for a moment that nobody saw
		}
	case calledOff:
		t.failed = ""
	case errors.Is(err, types.ErrConflict), errors.Is(err, types.ErrNoAnswer), errors.Is(err, types.ErrNoAPI):
		// Nobody says no to it.
		t.failed, t.flaw, t.pause = err.Error(), false, minPause
	default:
		t.failed, t.flaw = err.Error(), true
	}
}
