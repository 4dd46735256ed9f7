package pubsub

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewsIsWhatHasChangedSinceTheLastTime(t *testing.T) {
	var table Table[int]
	var pendingChanges News[int]
	says := func(when string, want map[string]int, wantGone ...string) {
		t.Helper()
		got, gone := pendingChanges.Of(&table)
		slices.Sort(gone)
		if d := cmp.Diff(want, got) + cmp.Diff(wantGone, gone); d != "" {
			t.Errorf("%s: want -, got +\n%s", when, d)
		}
	}
	_, _ = table.Publish("a", 1), table.Publish("b", 1)
	says("the first time all is new", map[string]int{"a": 1, "b": 1})
	says("then nothing", map[string]int{})
	_, _, _ = table.Publish("a", 1), table.Publish("b", 2), table.Publish("c", 1)
	says("but what has changed", map[string]int{"b": 2, "c": 1})
	_, _, _ = table.Unpublish("a"), table.Publish("d", 1), table.Unpublish("d")
	says("and what is gone", map[string]int{}, "a", "d")
	_, _ = table.Unpublish("b"), table.Publish("b", 3)
	says("what is back is there", map[string]int{"b": 3})
	_ = table.Publish("b", 4)
	pendingChanges.Drop(&table)
	says("after it was dropped all is new", map[string]int{"b": 4, "c": 1})
}

func TestOfAnotherReaderAllRowsAreNews(t *testing.T) {
	var other renamed
	var pendingChanges News[string]
	for _, when := range []string{"first", "again"} {
		if got, gone := pendingChanges.Of(&other); len(got) != 2 || len(gone) != 0 {
			t.Errorf("%s: %v, without %v", when, got, gone)
		}
	}
	pendingChanges.last["m"] = ""
	if _, gone := pendingChanges.Of(&other); !slices.Equal(gone, []string{"m"}) {
		t.Errorf("%v are gone", gone)
	}
	pendingChanges.last["m"] = ""
	pendingChanges.Drop(&other)
	if _, gone := pendingChanges.Of(&other); len(gone) != 0 {
		t.Errorf("after it was dropped %v are gone", gone)
	}
}
