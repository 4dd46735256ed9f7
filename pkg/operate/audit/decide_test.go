package audit

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestDecide(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	broken := errors.New("no such disk")
	three := []segment{{"c", 3}, {"a", 1}, {"b", 2}}
	for name, row := range map[string]struct {
		facts facts
		want  action
	}{
		"nothing to do":                                   {facts{keep: 8}, action{}},
		"what is written is put on the disk":              {facts{dirty: true, keep: 8}, action{sync: true}},
		"but not within a second of the last time":        {facts{dirty: true, synced: ago(time.Second / 4), keep: 8}, action{again: 3 * time.Second / 4}},
		"a clock that was put back holds nothing up":      {facts{dirty: true, synced: now.Add(time.Hour), keep: 8}, action{sync: true}},
		"what could not be written is tried, and again":   {facts{waiting: 3, keep: 8}, action{write: true, again: writeAgain}},
		"a count that is due is written":                  {facts{counts: []time.Time{ago(time.Second)}, keep: 8}, action{counts: true}},
		"one that is not is waited for":                   {facts{counts: []time.Time{now.Add(time.Second), now.Add(time.Minute)}, keep: 8}, action{again: time.Second}},
		"the oldest files go":                             {facts{segments: three, keep: 1}, action{remove: []segment{{"a", 1}, {"b", 2}}}},
		"none goes where there are no more than are kept": {facts{segments: three, keep: 3}, action{}},
		"none goes where they could not be listed":        {facts{segments: three, keep: 1, err: broken}, action{err: broken}},
	} {
		row.facts.now = now
		got := decide(row.facts)
		if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(action{}, segment{}), cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) }), cmp.Comparer(func(a, b []types.Operation) bool { return len(a) == len(b) })); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCountsAreWrittenTheRarerTheLongerTheyGrow(t *testing.T) {
	first := time.Unix(1_000_000, 0)
	for since, want := range map[time.Duration]time.Duration{
		0: time.Minute, 5 * time.Minute: time.Minute, time.Hour: 6 * time.Minute, 24 * time.Hour: time.Hour,
	} {
		if got := nextCount(first, first.Add(since)).Sub(first.Add(since)); got != want {
			t.Errorf("after %v the next is in %v, not %v", since, got, want)
		}
	}
}
