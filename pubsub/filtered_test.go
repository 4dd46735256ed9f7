package pubsub

import (
	"strings"
	"testing"
)

func TestAFilteredTableHasAllRowsAndRingsForWhatItsReadersLookAt(t *testing.T) {
	var table Table[string]
	first := func(row string) string { before, _, _ := strings.Cut(row, " "); return before }
	filtered := table.Filter("owner.Table", func(was, is string) bool { return first(was) == first(is) })
	all, some := make(chan struct{}, 1), make(chan struct{}, 1)
	table.Notify(all)
	filtered.Notify(some)
	set := func(key, row string) func() { return func() { _ = table.Publish(key, row) } }
	replace := func(rows map[string]string) func() { return func() { _ = table.Replace(rows) } }
	for _, step := range []struct {
		what      string
		do        func()
		all, some bool
	}{
		{"a new row", set("a", "x 1"), true, true},
		{"the same again", set("a", "x 1"), false, false},
		{"a change that does not concern them", set("a", "x 2"), true, false},
		{"one that does", set("a", "y 2"), true, true},
		{"another row, the same in what they look at", set("b", "y 3"), true, true},
		{"a list with a change that does not concern them", replace(map[string]string{"a": "y 4", "b": "y 3"}), true, false},
		{"one with a change that does", replace(map[string]string{"a": "y 4", "b": "z 3"}), true, true},
		{"one with a new row", replace(map[string]string{"a": "y 4", "b": "z 3", "c": "y 4"}), true, true},
		{"one without a row", replace(map[string]string{"a": "y 4", "b": "z 3"}), true, true},
		{"the end of a row", func() { _ = table.Unpublish("b") }, true, true},
		{"the end of none", func() { _ = table.Unpublish("b") }, false, false},
		{"news without a change", table.wake, true, true},
	} {
		step.do()
		if got := rang(all); got != step.all {
			t.Errorf("%s: the table rings: %t", step.what, got)
		}
		if got := rang(some); got != step.some {
			t.Errorf("%s: it rings for readers of a part: %t", step.what, got)
		}
		if got := filtered.All()["a"]; got != table.All()["a"] {
			t.Errorf("%s: it has %q, the table %q", step.what, got, table.All()["a"])
		}
	}
	if row, ok := filtered.Get("a"); !ok || row != "y 4" || filtered.String() != "owner.Table" {
		t.Errorf("%q, %t, as %s", row, ok, filtered)
	}
}
