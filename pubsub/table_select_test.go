package pubsub

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// renamed is a Reader that is no Table and says other things than the one in it.
type renamed struct{ Table[string] }

func (r *renamed) All() map[string]string { return map[string]string{"k": "yes", "l": "no"} }

func TestSelectReturnsTheRowsThatAreWanted(t *testing.T) {
	wanted := func(row string) bool { return row == "yes" }
	var table Table[string]
	if got := Select[string](&table, wanted); len(got) != 0 {
		t.Errorf("of an empty table: %v", got)
	}
	for key, row := range map[string]string{"a": "yes", "b": "no", "c": "yes"} {
		if err := table.Publish(key, row); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(map[string]string{"a": "yes", "c": "yes"}, Select[string](&table, wanted)); d != "" {
		t.Error("want -, got +\n" + d)
	}
	if d := cmp.Diff(map[string]string{"k": "yes"}, Select[string](&renamed{}, wanted)); d != "" {
		t.Error("of another Reader: want -, got +\n" + d)
	}
	if len(table.All()) != 3 {
		t.Errorf("the table has become %v", table.All())
	}
}
