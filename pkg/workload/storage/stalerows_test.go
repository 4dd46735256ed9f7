package storage

import (
	"errors"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// late is a level whose row still shows what was before the own write.
func late(uptime time.Duration, t levelKeeper) (levelKeeper, move) {
	m := t.next(desired{kept: true, wanted: "5", actual: "1", target: "5"}, uptime)
	return m.levelKeeper, m
}

func TestARowOlderThanTheOwnWriteIsNobodysChange(t *testing.T) {
	held := levelKeeper{}.next(desired{kept: true, wanted: "5", actual: "5", target: "5", reached: true}, 0).levelKeeper
	for from, tr := range map[string]levelKeeper{"a level that never was": {}, "one that somebody changed": held} {
		uptime := time.Hour
		tr, m := late(uptime, tr)
		tr.ended(outcome{changed: true}, false)
		for looks := 1; looks <= 5; looks++ {
			if tr, m = late(uptime+minPause-1, tr); m.begin || m.why != beingSet || m.again != 1 {
				t.Fatalf("%s, before look %d: %+v", from, looks, m)
			}
			uptime += minPause
			if tr, m = late(uptime, tr); !m.begin || m.putBack || m.flaw || m.why != beingSet {
				t.Fatalf("%s, look %d: %+v", from, looks, m)
			}
			tr.ended(outcome{}, false) // the server has it as it was set
		}
		m = tr.next(desired{kept: true, wanted: "5", actual: "5", target: "5", reached: true}, uptime)
		if m.why != "" || m.flaw {
			t.Errorf("%s, once the row has come: %+v", from, m)
		}
		if _, m = late(uptime+minPause, m.levelKeeper); !m.begin || m.why != contested {
			t.Errorf("%s, changed after that: %+v", from, m)
		}
	}
}

func TestWhatHadToBeSetTwiceWithoutBeingSeenWasChangedInBetween(t *testing.T) {
	tr, _ := late(time.Hour, levelKeeper{})
	tr.ended(outcome{changed: true}, false)
	tr, _ = late(time.Hour+minPause, tr)
	tr.ended(outcome{changed: true}, false)
	if _, m := late(time.Hour+minPause+1, tr); m.why != contested || !m.flaw || m.again != 2*minPause-1 {
		t.Errorf("%+v", m)
	}
}

func TestALookThatFailsLeavesOpenWhoChangedIt(t *testing.T) {
	tr, _ := late(time.Hour, levelKeeper{})
	tr.ended(outcome{changed: true}, false)
	tr, _ = late(time.Hour+minPause, tr)
	tr.ended(outcome{err: errors.Join(types.ErrConflict, errors.New("somebody was faster"))}, false)
	if tr, m := late(time.Hour+2*minPause, tr); !m.begin || tr.overwritten {
		t.Errorf("%+v", m)
	}
}

func TestANewTargetInheritsNoFight(t *testing.T) {
	tr, _ := late(time.Hour, levelKeeper{})
	tr.ended(outcome{changed: true}, false)
	tr, _ = late(time.Hour+minPause, tr)
	m := tr.next(desired{kept: true, wanted: "1", actual: "2", target: "1"}, time.Hour+minPause+1)
	if tr = m.levelKeeper; !m.cancel {
		t.Errorf("the write for the former target goes on: %+v", m)
	}
	tr.ended(outcome{changed: true}, true) // it had gone through already
	if m := tr.next(desired{kept: true, wanted: "1", actual: "1", target: "1", reached: true}, time.Hour+2*minPause); m.why != "" || m.flaw {
		t.Errorf("%+v", m)
	}
}
