package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/test/screen"
	"github.com/zedkube/zedkube/types"
)

// TestTheRecordingIsOfThisDemo fails where the demo prints something else than
// what was recorded: then it is time for `make recording`.
func TestTheRecordingIsOfThisDemo(t *testing.T) {
	path := filepath.Base(screen.Recording)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 300_000 {
		t.Errorf("%s has %d bytes, which is much in a repository", path, info.Size())
	}
	moments, err := screen.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{firstStep}
	for _, s := range (&stage{}).steps() {
		want = append(want, s.name)
	}
	states := map[string]bool{}
	for s := types.DrainUnknown; s < 20; s++ {
		states[s.String()] = true
	}
	var steps []string
	pages := 0
	for _, m := range moments {
		if m.Step != "" {
			steps = append(steps, m.Step)
		}
		if m.Failed {
			t.Errorf("a step failed when it was recorded: %s%s", m.Step, m.Detail)
		}
		if head := (&stage{}).table(); len(m.Table) > 0 && m.Table[0] != head[0] {
			t.Errorf("the table begins with %q, that of the demo with %q", m.Table[0], head[0])
		}
		if text, ok := strings.CutPrefix(m.Text, "NodeDrainStatus "); ok {
			if state, _, _ := strings.Cut(text, " for "); !states[state] {
				t.Errorf("%q is no state of a drain", state)
			}
		}
		if strings.Contains(m.Page, "event: overview\n") {
			pages++
		}
	}
	if d := cmp.Diff(want, steps); d != "" {
		t.Errorf("the steps of the demo -, recorded + (make recording):\n%s", d)
	}
	if pages == 0 {
		t.Error("the page was not recorded")
	}
	if last := moments[len(moments)-1].At; last < 5 || last > 600 {
		t.Errorf("the recorded run takes %g s", last)
	}
}
