package drain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// record is the journal before it is written: its BootID and Uptime are those of
// the writing. Its maps and its Look are replaced, never changed.
type record types.NodeDrainJournal

// between is what one drain leaves to the next: what was said, and what may be held.
func (r record) between() record {
	return record{
		Serial: r.Serial, Adopted: r.Adopted, Status: r.Status, Said: r.Said, Standing: r.Standing, Told: r.Told,
		Node: r.Node, NodeBoot: r.NodeBoot, Locked: r.Locked, Spent: r.Spent, Look: r.Look,
	}
}

// began is when the time of the drain under way began.
func (r record) began() time.Duration {
	if r.Phase == types.PhaseEmptying {
		return r.Cordoned
	}
	return r.Asked
}

// spend notes that the file at path has had its effect.
func (r *record) spend(path, mark string) {
	spent := maps.Clone(r.Spent)
	if spent == nil {
		spent = map[string]string{}
	}
	spent[path] = mark
	r.Spent = spent
}

// because says who wants what is done under the record, and why: the words of
// those who ask, or why nobody does any more.
func (r record) because() (by, why string) {
	names := asking(r)
	if len(names) == 0 {
		return "", r.Reason
	}
	var words []string
	for _, name := range names {
		if word := r.Requests[name].Context; word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(names, ","), cmp.Or(strings.Join(words, "; "), "a drain was requested")
}

// recall is the record that j holds, as far as it may be believed: the file
// outlives the program that wrote it, and people edit files.
func recall(j types.NodeDrainJournal, now time.Duration) record {
	r := record(j)
	r.BootID, r.Uptime = "", 0
	for _, at := range []*time.Duration{&r.Standing, &r.Said, &r.Asked, &r.Cordoned, &r.Ended, &r.Silent} {
		*at = min(max(0, *at), now)
	}
	r.Attempt, r.Losses, r.Refusals, r.Total = min(max(0, r.Attempt), attempts), max(0, r.Losses), max(0, r.Refusals), max(0, r.Total)
	if !slices.Contains(phases, r.Phase) || r.Status.Status > types.DrainComplete || r.Status.RequestedBy > types.DrainRequesterUpdate {
		return record{Serial: j.Serial, Adopted: j.Adopted, Phase: types.PhaseIdle, Locked: true, Rebooted: true}
	}
	if r.Phase != types.PhaseIdle && r.Asked == 0 {
		r.Asked = now
	}
	if r.Phase == types.PhaseEmptying && r.Cordoned == 0 {
		r.Phase = types.PhaseGates // its deadline runs from the cordon
	}
	if underWay(r.Status.Status) && r.Standing == 0 {
		r.Standing = now
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
		Serial: r.Serial, Adopted: r.Adopted, Phase: types.PhaseIdle, Reason: "the device has rebooted",
		Node: r.Node, NodeBoot: r.NodeBoot, Locked: true, Rebooted: true, Left: r.Left, Look: r.Look,
	}
}

// fromStatus is the record of a drain of which only the published status is
// left: the disk was full, or zedkube replaces an agent without a journal.
func fromStatus(s types.NodeDrainStatus, now time.Duration) record {
	r := record{Phase: types.PhaseIdle, Status: s, Said: now, Locked: true}
	switch s.Status {
	case types.DrainRequested, types.DrainStarting:
		r.Phase = types.PhaseGates
	case types.DrainCordoned, types.DrainRetrying:
		r.Phase = types.PhaseEmptying
	case types.DrainFailedCordon:
		r.Phase = types.PhaseNoCordon
	case types.DrainFailedDrain:
		r.Phase = types.PhaseNotEmpty
	case types.DrainComplete:
		r.Phase = types.PhaseComplete
	default:
		return r
	}
	r.Reason = "found as it was published"
	r.Asked, r.Standing = now, now
	if name := agents[s.RequestedBy]; name != "" { // whose topic may not have been read again yet
		r.Requests = map[string]types.NodeDrainRequest{name: {RequestedBy: s.RequestedBy}}
	}
	if r.Phase == types.PhaseEmptying {
		r.Cordoned = now
	}
	if failed(s.Status) {
		r.Failed = []time.Time{{}} // of a request that is still to be heard of
	}
	if final(s.Status) {
		r.Told, r.Ended = []types.DrainRequester{s.RequestedBy}, now
	}
	return r
}
