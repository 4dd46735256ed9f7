package drain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// boot is where the boot clock begins. Its times are no wall-clock times: they
// only serve to be subtracted from one another.
var boot = time.Unix(0, 0)

// record is types.NodeDrainJournal with times of the boot clock, zero for not
// yet. Its maps are replaced, never changed.
type record struct {
	serial  uint64
	adopted bool

	phase    types.DrainPhase
	reason   string
	status   types.NodeDrainStatus
	requests map[string]types.NodeDrainRequest
	failed   []time.Time
	told     []types.DrainRequester
	standing time.Time
	said     time.Time
	asked    time.Time
	cordoned time.Time
	ended    time.Time
	silent   time.Time
	attempt  int
	losses   int
	refusals int
	node     string
	nodeBoot string
	locked   bool
	kept     bool
	dead     bool
	left     bool
	rebooted bool
	unused   bool
	spent    map[string]string // force files that have had their effect and could not be removed: path to mark
	markers  map[string]string // what the markers of a device that goes down were at COMPLETE: path to mark; nil for not known
	total    int

	ends bool               // COMPLETE although nothing was evicted
	look *types.StorageLook // replaced, never changed
}

// between is what one drain leaves to the next: what was said, and what may be held.
func (r record) between() record {
	return record{
		serial: r.serial, adopted: r.adopted, status: r.status, said: r.said, standing: r.standing, told: r.told,
		node: r.node, nodeBoot: r.nodeBoot, locked: r.locked, spent: r.spent, look: r.look,
	}
}

// spend notes that the file at path has had its effect.
func (r *record) spend(path, mark string) {
	spent := maps.Clone(r.spent)
	if spent == nil {
		spent = map[string]string{}
	}
	spent[path] = mark
	r.spent = spent
}

// because says who wants what is done under the record, and why: the words of
// those who ask, or why nobody does any more.
func (r record) because() (by, why string) {
	names := asking(r)
	if len(names) == 0 {
		return "", r.reason
	}
	var words []string
	for _, name := range names {
		if word := r.requests[name].Context; word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(names, ","), cmp.Or(strings.Join(words, "; "), "a drain was requested")
}

// journal is the record as it is written down.
func (r record) journal(bootID string, now time.Time) types.NodeDrainJournal {
	return types.NodeDrainJournal{
		BootID: bootID, Serial: r.serial, Uptime: now.Sub(boot), Adopted: r.adopted,
		Phase: r.phase, Reason: r.reason, Status: r.status, Requests: r.requests,
		Failed: r.failed, Told: r.told,
		Standing: sinceBoot(r.standing), Said: sinceBoot(r.said), Asked: sinceBoot(r.asked),
		Cordoned: sinceBoot(r.cordoned), Ended: sinceBoot(r.ended), Silent: sinceBoot(r.silent),
		Attempt: r.attempt, Losses: r.losses, Refusals: r.refusals,
		Node: r.node, NodeBoot: r.nodeBoot, Locked: r.locked, Kept: r.kept, Dead: r.dead,
		Left: r.left, Rebooted: r.rebooted, Unused: r.unused, Spent: r.spent, Markers: r.markers, Total: r.total, Ends: r.ends, Look: r.look,
	}
}

// recall is the record that j holds, as far as it may be believed: the file
// outlives the program that wrote it, and people edit files.
func recall(j types.NodeDrainJournal, now time.Time) record {
	at := func(d time.Duration) time.Time {
		if d <= 0 {
			return time.Time{}
		}
		return earlier(boot.Add(d), now)
	}
	r := record{
		serial: j.Serial, adopted: j.Adopted,
		phase: j.Phase, reason: j.Reason, status: j.Status, requests: j.Requests,
		failed: j.Failed, told: j.Told,
		standing: at(j.Standing), said: at(j.Said), asked: at(j.Asked),
		cordoned: at(j.Cordoned), ended: at(j.Ended), silent: at(j.Silent),
		attempt: min(max(0, j.Attempt), attempts), losses: max(0, j.Losses), refusals: max(0, j.Refusals),
		node: j.Node, nodeBoot: j.NodeBoot, locked: j.Locked, kept: j.Kept, dead: j.Dead,
		left: j.Left, rebooted: j.Rebooted, unused: j.Unused, spent: j.Spent, markers: j.Markers, total: max(0, j.Total), ends: j.Ends, look: j.Look,
	}
	if !slices.Contains(phases, r.phase) || r.status.Status > types.DrainComplete || r.status.RequestedBy > types.DrainRequesterUpdate {
		return record{serial: j.Serial, adopted: j.Adopted, phase: types.PhaseIdle, locked: true, rebooted: true}
	}
	if r.phase != types.PhaseIdle && r.asked.IsZero() {
		r.asked = now
	}
	if r.phase == types.PhaseEmptying && r.cordoned.IsZero() {
		r.phase = types.PhaseGates // its deadline runs from the cordon
	}
	if underWay(r.status.Status) && r.standing.IsZero() {
		r.standing = now
	}
	return r
}

var phases = []types.DrainPhase{
	types.PhaseIdle, types.PhaseGates, types.PhaseEmptying, types.PhaseComplete, types.PhaseNoCordon, types.PhaseNotEmpty,
}

// afterBoot is what a former boot's record still says in this one: its drain is
// over, and the lock may be ours.
func (r record) afterBoot() record {
	return record{
		serial: r.serial, adopted: r.adopted, phase: types.PhaseIdle, reason: "the device has rebooted",
		node: r.node, nodeBoot: r.nodeBoot, locked: true, rebooted: true, left: r.left, look: r.look,
	}
}

// fromStatus is the record of a drain of which only the published status is
// left: the disk was full, or zedkube replaces an agent without a journal.
func fromStatus(s types.NodeDrainStatus, now time.Time) record {
	r := record{phase: types.PhaseIdle, status: s, said: now, locked: true}
	switch s.Status {
	case types.DrainRequested, types.DrainStarting:
		r.phase = types.PhaseGates
	case types.DrainCordoned, types.DrainRetrying:
		r.phase = types.PhaseEmptying
	case types.DrainFailedCordon:
		r.phase = types.PhaseNoCordon
	case types.DrainFailedDrain:
		r.phase = types.PhaseNotEmpty
	case types.DrainComplete:
		r.phase = types.PhaseComplete
	default:
		return r
	}
	r.reason = "found as it was published"
	r.asked, r.standing = now, now
	switch s.RequestedBy { // who may not have been heard of again yet
	case types.DrainRequesterDeviceOp:
		r.requests = map[string]types.NodeDrainRequest{byDeviceOp: {RequestedBy: s.RequestedBy}}
	case types.DrainRequesterUpdate:
		r.requests = map[string]types.NodeDrainRequest{byUpdate: {RequestedBy: s.RequestedBy}}
	}
	if r.phase == types.PhaseEmptying {
		r.cordoned = now
	}
	if failed(s.Status) {
		r.failed = []time.Time{{}} // of a request that is still to be heard of
	}
	if final(s.Status) {
		r.told, r.ended = []types.DrainRequester{s.RequestedBy}, now
	}
	return r
}

func sinceBoot(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	// A moment at the very boot must not read like no moment.
	return max(t.Sub(boot), 1)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
