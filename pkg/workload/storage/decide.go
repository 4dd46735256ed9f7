package storage

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// level is one thing that is kept.
type level int

const (
	reservation level = iota
	snapshots
	drainPolicy
	levels // how many there are
)

// String is what the log calls it.
func (l level) String() string {
	return []string{"reservation on Longhorn's disks", "schedule of Longhorn's snapshots", "drain policy of Longhorn"}[l]
}

// facts is everything decide may look at.
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

// action is everything decide may ask for.
type action struct {
	status types.KubeStorageStatus
	moves  [levels]move
	again  time.Duration // until the next look; 0 for whenever something changes
}

// decide says how far each level is kept, and what is to be written.
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
