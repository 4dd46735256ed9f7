package pubsub

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// neverLooked is a table whose publisher has not been heard.
type neverLooked struct {
	Table[int]
}

func (*neverLooked) Synced() bool { return false }

func TestATopicAndATableAreOneTable(t *testing.T) {
	topic, page := &neverLooked{}, &Table[int]{}
	both := Joined[int]{topic, page, "page.Looks"}
	if got := both.All(); len(got) != 0 {
		t.Errorf("of two empty tables: %v", got)
	}
	bell := make(chan struct{}, 1)
	both.Notify(bell)
	for key, table := range map[string]Writer[int]{"top": topic, "page": page} {
		if err := table.Publish(key, 7); err != nil {
			t.Fatal(err)
		}
		select {
		case <-bell:
		default:
			t.Errorf("%s does not ring", key)
		}
		if _, ok := both.Get(key); !ok {
			t.Errorf("%s is not found", key)
		}
	}
	if diff := cmp.Diff(map[string]int{"top": 7, "page": 7}, both.All()); diff != "" {
		t.Error(diff)
	}
	if _, ok := both.Get("nobody"); ok {
		t.Error("nobody is found")
	}
}
