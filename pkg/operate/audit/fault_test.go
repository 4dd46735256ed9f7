package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestWhatCannotBeWrittenIsWrittenLater(t *testing.T) {
	s := newStage(t)
	way := filepath.Dir(s.Record.Dir)
	s.Record.Dir = filepath.Join(way, "persist", "audit")
	if err := os.WriteFile(filepath.Join(way, "persist"), nil, 0o600); err != nil { // no directory
		t.Fatal(err)
	}
	for i := range maxWaiting {
		s.does("evict", fmt.Sprintf("pod/%d", i), nil)
	}
	if err := os.Remove(filepath.Join(way, "persist")); err != nil {
		t.Fatal(err)
	}
	_ = s.Step(t.Context())
	all, problems, err := Read(s.Record.Dir)
	if err != nil || problems.Lost != maxWaiting || len(all) != maxWaiting/2 {
		t.Errorf("%d operations, %+v, %v", len(all), problems, err)
	}
	for i, o := range all {
		if o.Target != fmt.Sprintf("pod/%d", maxWaiting/2+i) || o.Outcome == "" {
			t.Fatalf("operation %d is %+v", i, o)
		}
	}
}
