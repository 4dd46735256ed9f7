package drain

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// full is a record of which no field is as it was born.
func full() record {
	return record{
		Serial: 7, Adopted: true, Phase: emptying, Reason: "because",
		Status:   types.NodeDrainStatus{Status: retrying, RequestedBy: osUpdate},
		Requests: map[string]types.NodeDrainRequest{byUpdate: {RequestedAt: wall0, RequestedBy: osUpdate, Context: "image"}},
		Failed:   []time.Time{wall0}, Told: []types.DrainRequester{deviceOp},
		Standing: minus(1), Said: minus(2), Asked: minus(6), Cordoned: minus(5), Ended: minus(3), Silent: minus(4),
		Attempt: 3, Losses: 2, Refusals: 4, Node: "n1", NodeBoot: "b",
		Locked: true, Kept: true, Dead: true, Left: true, Rebooted: true, Unused: true, Spent: map[string]string{"/tmp/f": "1"}, Markers: map[string]string{"/tmp/m": "2"}, Total: 300,
		Ends: true, Unemptied: true, Look: &types.StorageLook{BootID: "boot", Uptime: time.Hour, At: wall0, Volumes: []types.LeaveVolume{{UID: "u"}}, Omitted: 1},
	}
}

// written is the record as it is written down at t0.
func written(r record) types.NodeDrainJournal {
	j := types.NodeDrainJournal(r)
	j.BootID, j.Uptime = "boot", t0
	return j
}

func TestEveryFieldOfTheRecordSurvivesTheJournal(t *testing.T) {
	want := full()
	j := written(want)
	for v, i := reflect.ValueOf(j), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("this test forgets %s", v.Type().Field(i).Name)
		}
	}
	raw, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	var back types.NodeDrainJournal
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, recall(back, t0)); d != "" {
		t.Error(d)
	}
	if back.BootID != "boot" || back.Uptime != t0 {
		t.Errorf("written in boot %q at %s", back.BootID, back.Uptime)
	}
}

func TestAMomentAtTheBootIsNotNoMoment(t *testing.T) {
	c := Component{Uptime: func() time.Duration { return 0 }}
	r := record{Phase: inGates, Asked: c.now()}
	if back := recall(written(r), t0); back.Asked == 0 || back.Asked > time.Second {
		t.Errorf("asked at %v", back.Asked)
	}
	if back := recall(written(record{Phase: idling}), t0); back.Asked != 0 || back.Cordoned != 0 {
		t.Error("what never was came back as something")
	}
}

func TestAJournalThatCannotBeIsBentIntoOneThatCan(t *testing.T) {
	for _, row := range []struct {
		rule string
		odd  func(*types.NodeDrainJournal)
		good func(record) bool
	}{
		{"an unknown phase is no drain, and whatever there is is given back", func(j *types.NodeDrainJournal) { j.Phase = "Melting" }, func(r record) bool {
			return r.Phase == idling && r.Locked && r.Rebooted && r.Status == types.NodeDrainStatus{} && r.Serial == 7 && r.Adopted
		}},
		{"so is a status that EVE has not", func(j *types.NodeDrainJournal) { j.Status.Status = 200 }, func(r record) bool { return r.Phase == idling && r.Status.Status == 0 }},
		{"so is a requester that EVE has not", func(j *types.NodeDrainJournal) { j.Status.RequestedBy = 200 }, func(r record) bool { return r.Phase == idling && r.Status.RequestedBy == 0 }},
		{"a moment before the boot is none", func(j *types.NodeDrainJournal) { j.Said, j.Ended = -1, math.MinInt64 }, func(r record) bool { return r.Said == 0 && r.Ended == 0 }},
		{"a moment to come is now", func(j *types.NodeDrainJournal) {
			j.Asked, j.Cordoned, j.Standing, j.Silent = math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64
		}, func(r record) bool {
			return r.Asked == t0 && r.Cordoned == t0 && r.Standing == t0 && r.Silent == t0
		}},
		{"a drain that nobody asked for was asked for now", func(j *types.NodeDrainJournal) { j.Asked = 0 }, func(r record) bool { return r.Asked == t0 }},
		{"a drain that empties without a cordon passes the gates", func(j *types.NodeDrainJournal) { j.Cordoned = -5 }, func(r record) bool { return r.Phase == inGates && r.Asked == minus(6) }},
		{"a state that nobody has seen begins to stand now", func(j *types.NodeDrainJournal) { j.Standing = 0 }, func(r record) bool { return r.Standing == t0 }},
		{"counts are not negative", func(j *types.NodeDrainJournal) { j.Attempt, j.Losses, j.Refusals, j.Total = -1, -1, -1, -1 }, func(r record) bool {
			return r.Attempt == 0 && r.Losses == 0 && r.Refusals == 0 && r.Total == 0
		}},
		{"there is no sixth attempt", func(j *types.NodeDrainJournal) { j.Attempt = math.MaxInt }, func(r record) bool { return r.Attempt == attempts }},
	} {
		j := written(full())
		row.odd(&j)
		if r := recall(j, t0); !row.good(r) {
			t.Errorf("%s: %+v", row.rule, r)
		}
	}
}

func TestAJournalIsOfItsBootOnly(t *testing.T) {
	good := written(full())
	for _, row := range []struct {
		rule string
		odd  func(*types.NodeDrainJournal)
		want bool
	}{
		{"one of this boot", func(*types.NodeDrainJournal) {}, true},
		{"one of another", func(j *types.NodeDrainJournal) { j.BootID = "other" }, false},
		{"one from later than now", func(j *types.NodeDrainJournal) { j.Uptime++ }, false},
		{"one from the end of time", func(j *types.NodeDrainJournal) { j.Uptime = math.MaxInt64 }, false},
		{"one that was never written", func(j *types.NodeDrainJournal) { j.Serial = 0 }, false},
	} {
		j := good
		row.odd(&j)
		if got := ofThisBoot(j, good.BootID, t0); got != row.want {
			t.Errorf("%s: %v", row.rule, got)
		}
	}
}

func TestABootEndsTheDrain(t *testing.T) {
	want := record{
		Serial: 7, Adopted: true, Phase: idling, Reason: "the device has rebooted",
		Node: "n1", NodeBoot: "b", Locked: true, Rebooted: true, Left: true,
		Look: full().Look, // it names its boot
	}
	if d := cmp.Diff(want, full().afterBoot(), cmp.AllowUnexported(record{})); d != "" {
		t.Error(d)
	}
	r := full()
	r.Locked = false // the disk was full when it was taken
	if !r.afterBoot().Locked {
		t.Error("a lock from before the boot may be ours whatever the record says")
	}
}

func TestADrainOfWhichOnlyTheStatusIsLeft(t *testing.T) {
	for _, row := range []struct {
		s     types.DrainStatus
		phase types.DrainPhase
		next  types.DrainStatus // one of its requesters asks
	}{
		{types.DrainUnknown, idling, notRequested},
		{notSupported, idling, notRequested},
		{notRequested, idling, requested},
		{requested, inGates, starting},
		{starting, inGates, starting},
		{inCordoned, emptying, inCordoned},
		{failedCordon, noCordon, requested},
		{retrying, emptying, retrying},
		{failedDrain, notEmpty, requested},
		{complete9, completed, complete9},
		{200, idling, requested},
	} {
		r := fromStatus(types.NodeDrainStatus{Status: row.s, RequestedBy: osUpdate}, t0)
		if r.Phase != row.phase || r.Status.Status != row.s || !r.Locked {
			t.Errorf("%v: %+v", row.s, r)
		}
		if drains(r.Phase) && (r.Asked == 0 || r.Standing == 0) || r.Phase == emptying && r.Cordoned == 0 {
			t.Errorf("%v: times are missing: %+v", row.s, r)
		}
		if final(row.s) != slices.Contains(r.Told, osUpdate) {
			t.Errorf("%v: told is %v", row.s, r.Told)
		}
		f := calm(idling, who(byUpdate))
		f.rec = r
		if a := decide(f); a.published.Status != row.next {
			t.Errorf("%v: says %v", row.s, a.published.Status)
		}
		// Its requester may not have been heard of again yet.
		if _, stood := r.Requests[byUpdate]; stood != (row.phase != idling) {
			t.Errorf("%v: requests are %v", row.s, r.Requests)
		}
	}
	if r := fromStatus(types.NodeDrainStatus{Status: retrying, RequestedBy: deviceOp}, t0); len(r.Requests) != 1 || r.Requests[byDeviceOp].RequestedBy != deviceOp {
		t.Errorf("requests are %v", r.Requests)
	}
}
