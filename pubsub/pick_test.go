package pubsub

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// renamed is a Reader that is no Table and says other things than the one in it.
type renamed struct{ Table[string] }

func (r *renamed) All() map[string]string { return map[string]string{"k": "yes", "l": "no"} }

// rang reports whether a bell rings, and ends that.
func rang(bell chan struct{}) bool {
	select {
	case <-bell:
		return true
	default:
		return false
	}
}

func TestAPickHoldsTheRowsThatAreWantedAndRingsForThemAlone(t *testing.T) {
	var table Table[string]
	var pick Pick[string]
	bell := make(chan struct{}, 1)
	pick.Notify(bell)
	is := func(word string) func(string) bool { return func(row string) bool { return row == word } }
	if got := pick.Of(&table, "yes", is("yes")); len(got) != 0 {
		t.Errorf("of an empty table: %v", got)
	}
	set := func(key, row string) func() { return func() { _ = table.Publish(key, row) } }
	for _, step := range []struct {
		what string
		do   func()
		want map[string]string
		ring bool
	}{
		{"a row that is wanted", set("a", "yes"), map[string]string{"a": "yes"}, true},
		{"one that is not", set("b", "no"), map[string]string{"a": "yes"}, false},
		{"the same again", set("a", "yes"), map[string]string{"a": "yes"}, false},
		{"one that becomes wanted", set("b", "yes"), map[string]string{"a": "yes", "b": "yes"}, true},
		{"one that is wanted no more", set("a", "no"), map[string]string{"b": "yes"}, true},
		{"the end of one that is not wanted", func() { _ = table.Unpublish("a") }, map[string]string{"b": "yes"}, false},
		{"the end of one that is", func() { _ = table.Unpublish("b") }, map[string]string{}, true},
	} {
		before := pick.Of(&table, "yes", is("yes"))
		kept := len(before)
		step.do()
		if rang(bell) != step.ring {
			t.Errorf("%s: does it ring? want %v", step.what, step.ring)
		}
		if d := cmp.Diff(step.want, pick.Of(&table, "yes", is("yes"))); d != "" {
			t.Errorf("%s: want -, got +\n%s", step.what, d)
		}
		if len(before) != kept {
			t.Errorf("%s changes what was looked at before", step.what)
		}
	}
	set("c", "yes")()
	set("d", "no")()
	if d := cmp.Diff(map[string]string{"d": "no"}, pick.Of(&table, "no", is("no"))); d != "" {
		t.Error("something else is wanted: want -, got +\n" + d)
	}
	_ = rang(bell)
	set("c", "yes yes")()
	if rang(bell) {
		t.Error("it rings for what was wanted before")
	}
}

func TestAPickOfAnotherReaderRingsWithAllOfIt(t *testing.T) {
	var other renamed
	var pick Pick[string]
	bell := make(chan struct{}, 1)
	pick.Notify(bell)
	for range 2 {
		got := pick.Of(&other, nil, func(row string) bool { return row == "yes" })
		if d := cmp.Diff(map[string]string{"k": "yes"}, got); d != "" {
			t.Error("want -, got +\n" + d)
		}
	}
	if _ = other.Publish("x", "new"); !rang(bell) {
		t.Error("it does not ring")
	}
}

func TestWhatWasLookedAtChangesNoMore(t *testing.T) {
	var table Table[int]
	_ = table.Publish("a", 1)
	before := table.All()
	_ = table.Publish("a", 2)
	_ = table.Publish("b", 1)
	middle := table.All()
	_ = table.Unpublish("a")
	for _, c := range []struct{ got, want map[string]int }{
		{before, map[string]int{"a": 1}}, {middle, map[string]int{"a": 2, "b": 1}}, {table.All(), map[string]int{"b": 1}},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Error("want -, got +\n" + d)
		}
	}
}
