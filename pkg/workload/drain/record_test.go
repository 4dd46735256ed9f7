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
		serial: 7, adopted: true, phase: emptying, reason: "because",
		status:   types.NodeDrainStatus{Status: retrying, RequestedBy: osUpdate},
		requests: map[string]types.NodeDrainRequest{byUpdate: {RequestedAt: wall0, RequestedBy: osUpdate, Context: "image"}},
		failed:   []time.Time{wall0}, told: []types.DrainRequester{deviceOp},
		standing: minus(1), said: minus(2), asked: minus(6), cordoned: minus(5), ended: minus(3), silent: minus(4),
		attempt: 3, losses: 2, refusals: 4, node: "n1", nodeBoot: "b",
		locked: true, kept: true, dead: true, left: true, rebooted: true, unused: true, spent: map[string]string{"/tmp/f": "1"}, markers: map[string]string{"/tmp/m": "2"}, total: 300,
		ends: true, look: &types.StorageLook{BootID: "boot", Uptime: time.Hour, At: wall0, Volumes: []types.LeaveVolume{{UID: "u"}}, Omitted: 1},
	}
}

func TestEveryFieldOfTheRecordSurvivesTheJournal(t *testing.T) {
	want := full()
	for v, i := reflect.ValueOf(want), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("this test forgets %s", v.Type().Field(i).Name)
		}
	}
	j := want.journal("boot", t0)
	for v, i := reflect.ValueOf(j), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("nothing is written to %s", v.Type().Field(i).Name)
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
	if d := cmp.Diff(want, recall(back, t0), cmp.AllowUnexported(record{})); d != "" {
		t.Error(d)
	}
	if back.BootID != "boot" || back.Uptime != t0.Sub(boot) {
		t.Errorf("written in boot %q at %s", back.BootID, back.Uptime)
	}
}

func TestAMomentAtTheBootIsNotNoMoment(t *testing.T) {
	r := record{phase: inGates, asked: boot}
	if back := recall(r.journal("b", t0), t0); back.asked.IsZero() || back.asked.After(boot.Add(time.Second)) {
		t.Errorf("asked at %v", back.asked)
	}
	if back := recall(record{phase: idling}.journal("b", t0), t0); !back.asked.IsZero() || !back.cordoned.IsZero() {
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
			return r.phase == idling && r.locked && r.rebooted && r.status == types.NodeDrainStatus{} && r.serial == 7 && r.adopted
		}},
		{"so is a status that EVE has not", func(j *types.NodeDrainJournal) { j.Status.Status = 200 }, func(r record) bool { return r.phase == idling && r.status.Status == 0 }},
		{"so is a requester that EVE has not", func(j *types.NodeDrainJournal) { j.Status.RequestedBy = 200 }, func(r record) bool { return r.phase == idling && r.status.RequestedBy == 0 }},
		{"a moment before the boot is none", func(j *types.NodeDrainJournal) { j.Said, j.Ended = -1, math.MinInt64 }, func(r record) bool { return r.said.IsZero() && r.ended.IsZero() }},
		{"a moment to come is now", func(j *types.NodeDrainJournal) {
			j.Asked, j.Cordoned, j.Standing, j.Silent = math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64
		}, func(r record) bool {
			return r.asked.Equal(t0) && r.cordoned.Equal(t0) && r.standing.Equal(t0) && r.silent.Equal(t0)
		}},
		{"a drain that nobody asked for was asked for now", func(j *types.NodeDrainJournal) { j.Asked = 0 }, func(r record) bool { return r.asked.Equal(t0) }},
		{"a drain that empties without a cordon passes the gates", func(j *types.NodeDrainJournal) { j.Cordoned = -5 }, func(r record) bool { return r.phase == inGates && r.asked.Equal(minus(6)) }},
		{"a state that nobody has seen begins to stand now", func(j *types.NodeDrainJournal) { j.Standing = 0 }, func(r record) bool { return r.standing.Equal(t0) }},
		{"counts are not negative", func(j *types.NodeDrainJournal) { j.Attempt, j.Losses, j.Refusals, j.Total = -1, -1, -1, -1 }, func(r record) bool {
			return r.attempt == 0 && r.losses == 0 && r.refusals == 0 && r.total == 0
		}},
		{"there is no sixth attempt", func(j *types.NodeDrainJournal) { j.Attempt = math.MaxInt }, func(r record) bool { return r.attempt == attempts }},
	} {
		j := full().journal("boot", t0)
		row.odd(&j)
		if r := recall(j, t0); !row.good(r) {
			t.Errorf("%s: %+v", row.rule, r)
		}
	}
}

func TestAJournalIsOfItsBootOnly(t *testing.T) {
	good := full().journal("boot", t0)
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
		serial: 7, adopted: true, phase: idling, reason: "the device has rebooted",
		node: "n1", nodeBoot: "b", locked: true, rebooted: true, left: true,
		look: full().look, // it names its boot
	}
	if d := cmp.Diff(want, full().afterBoot(), cmp.AllowUnexported(record{})); d != "" {
		t.Error(d)
	}
	r := full()
	r.locked = false // the disk was full when it was taken
	if !r.afterBoot().locked {
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
		if r.phase != row.phase || r.status.Status != row.s || !r.locked {
			t.Errorf("%v: %+v", row.s, r)
		}
		if drains(r.phase) && (r.asked.IsZero() || r.standing.IsZero()) || r.phase == emptying && r.cordoned.IsZero() {
			t.Errorf("%v: times are missing: %+v", row.s, r)
		}
		if final(row.s) != slices.Contains(r.told, osUpdate) {
			t.Errorf("%v: told is %v", row.s, r.told)
		}
		f := calm(idling, who(byUpdate))
		f.rec = r
		if a := decide(f); a.published.Status != row.next {
			t.Errorf("%v: says %v", row.s, a.published.Status)
		}
		// Its requester may not have been heard of again yet.
		if _, stood := r.requests[byUpdate]; stood != (row.phase != idling) {
			t.Errorf("%v: requests are %v", row.s, r.requests)
		}
	}
	if r := fromStatus(types.NodeDrainStatus{Status: retrying, RequestedBy: deviceOp}, t0); len(r.requests) != 1 || r.requests[byDeviceOp].RequestedBy != deviceOp {
		t.Errorf("requests are %v", r.requests)
	}
}
