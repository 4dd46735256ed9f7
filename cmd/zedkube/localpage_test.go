package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// neverLooked is a table whose publisher has not been heard.
type neverLooked struct {
	pubsub.Table[types.MetricsLook]
}

func (*neverLooked) Synced() bool { return false }

func TestWishesOfCommandsAndOfThePageAreOneTable(t *testing.T) {
	topic, page := &neverLooked{}, &pubsub.Table[types.MetricsLook]{}
	both := either[types.MetricsLook]{topic, page}
	if got := both.All(); len(got) != 0 {
		t.Errorf("of two empty tables: %v", got)
	}
	bell := make(chan struct{}, 1)
	both.Notify(bell)
	for key, table := range map[string]pubsub.Writer[types.MetricsLook]{"top": topic, "page": page} {
		if err := table.Publish(key, types.MetricsLook{}); err != nil {
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
	if diff := cmp.Diff(map[string]types.MetricsLook{"top": {}, "page": {}}, both.All()); diff != "" {
		t.Error(diff)
	}
	if _, ok := both.Get("nobody"); ok {
		t.Error("nobody is found")
	}
}
