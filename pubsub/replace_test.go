package pubsub

import (
	"slices"
	"strings"
	"testing"
)

func TestARowsReplacementIsSeenWholeOrNotAtAll(t *testing.T) {
	var table Table[string]
	lists := []map[string]string{{"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "2", "d": "2"}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 2000 {
			_ = table.Replace(lists[i%2])
		}
	}()
	for {
		first := ""
		for _, v := range table.All() {
			if first == "" {
				first = v
			}
			if v != first {
				t.Fatalf("a mixture of two lists: %v", table.All())
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestOnlyWhatDiffersInAReplacementIsNews(t *testing.T) {
	var table Table[string]
	var pendingChanges News[string]
	var pick Pick[string]
	starred := func(v string) bool { return strings.HasPrefix(v, "*") }
	_ = table.Replace(map[string]string{"a": "*1", "b": "2", "c": "*3"})
	pendingChanges.Of(&table)
	pick.Of(&table, nil, starred)
	bell := make(chan struct{}, 1)
	table.Notify(bell)
	_ = table.Replace(map[string]string{"a": "*1", "b": "2", "c": "*3"})
	if len(bell) != 0 {
		t.Error("nothing changed, and it rang")
	}
	mine := map[string]string{"a": "*1", "b": "*2", "d": "*4"}
	_ = table.Replace(mine)
	rows, gone := pendingChanges.Of(&table)
	if len(bell) != 1 || len(rows) != 2 || rows["b"] != "*2" || rows["d"] != "*4" || !slices.Equal(gone, []string{"c"}) {
		t.Errorf("news are %v and %v without %d bells", rows, gone, len(bell))
	}
	if kept := pick.Of(&table, nil, starred); len(kept) != 3 || kept["c"] != "" {
		t.Errorf("picked are %v", kept)
	}
	_ = table.Publish("e", "5")
	if len(mine) != 3 {
		t.Error("the table changes the map that it was given")
	}
}
