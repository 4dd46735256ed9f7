package history

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	l := New()
	l.Add(Event{Kind: AgentUp, Node: "n1"})
	l.Add(Event{Kind: Drain, Node: "n1", Drain: &types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: types.DrainRequesterUpdate}})
	l.Add(Event{Kind: Looked, Node: "n1", Look: &Look{From: 3, Pods: []string{"a"}}})
	l.Insert(Event{At: -time.Second, Kind: Called, Text: "get nodes/: 200"})
	events := l.Events()
	if len(events) != 4 || events[0].Kind != Called {
		t.Fatalf("not in order: %+v", events)
	}
	path := filepath.Join(t.TempDir(), "history")
	if err := Write(path, events); err != nil {
		t.Fatal(err)
	}
	read, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(events, read); d != "" {
		t.Error(d)
	}
}
