package audit

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestAnOperationIsReadAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		end := s.Begin(types.Operation{Component: "drain", Op: "cordon", Target: "node/n1", By: "UPDATE,OPERATOR", Why: "a disk is changed"})
		began := time.Now()
		time.Sleep(1500 * time.Millisecond)
		end(types.OperationFailed, errors.New("no such node"))
		end(types.OperationOK, nil) // it has ended
		got := s.reads()
		if len(got) != 1 || got[0].ID == "" {
			t.Fatalf("read %+v", got)
		}
		want := types.Operation{
			ID: got[0].ID, At: began.UTC(), Node: "n1", Component: "drain", Op: "cordon", Target: "node/n1", By: "UPDATE,OPERATOR",
			Why: "a disk is changed", Outcome: types.OperationFailed, Took: 1500 * time.Millisecond, Error: "no such node",
		}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatIsUnderWayIsOnRecord(t *testing.T) {
	s := newStage(t)
	s.Begin(types.Operation{Op: "evict", Target: "pod/a"})
	s.does("cordon", "node/n1", nil)
	if diff := cmp.Diff([]string{"evict pod/a ", "cordon node/n1 ok"}, lines(s.reads())); diff != "" {
		t.Error(diff)
	}
}

func TestFilesAreForRootAlone(t *testing.T) {
	s := newStage(t)
	s.does("cordon", "node/n1", nil)
	for path, want := range map[string]os.FileMode{s.Record.Dir: 0o700 | os.ModeDir, s.Record.Dir + "/operations-00000001.jsonl": 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s is %v, %v", path, info.Mode(), err)
		}
	}
}

func TestATryThatIsRepeatedForDaysLeavesFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.does("cordon", "node/n1", nil)
		const tries = 2 * 24 * 60 * 12
		for range tries {
			s.does("evict", "pod/a", errBudget)
			_ = s.Step(t.Context())
			time.Sleep(5 * time.Second)
		}
		s.does("evict", "pod/a", nil)
		got := s.reads()
		if diff := cmp.Diff([]string{"cordon node/n1 ok", "evict pod/a refused x34560", "evict pod/a ok"}, lines(got)); diff != "" {
			t.Error(diff)
		}
		if last := got[1].Last; time.Since(last) != 5*time.Second {
			t.Errorf("the last try was at %v, not 5 s ago", last)
		}
		if raw, _ := os.ReadFile(s.Record.Dir + "/operations-00000001.jsonl"); len(raw) > 40_000 {
			t.Errorf("that took %d bytes", len(raw))
		} else {
			t.Logf("%d tries took %d bytes", tries, len(raw))
		}
	})
}

func TestOnlyWhatIsJustTheSameIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.does("cordon", "node/n1", nil)
		s.does("uncordon", "node/n1", nil)
		s.does("cordon", "node/n1", nil) // who did it last has to be seen
		s.does("evict", "pod/a", errBudget)
		s.does("evict", "pod/b", errBudget)
		s.does("evict", "pod/a", errBudget)
		s.does("evict", "pod/a", errors.New("something else"))
		time.Sleep(within)
		s.does("evict", "pod/a", errors.New("something else"))
		end := s.Begin(types.Operation{Component: "drain", Op: "evict", Target: "pod/b", By: "UPDATE", Why: "w"})
		end(types.OperationRefused, errBudget)
		_ = s.apply(action{counts: true, all: true})
		if diff := cmp.Diff([]string{
			"cordon node/n1 ok", "uncordon node/n1 ok", "cordon node/n1 ok",
			"evict pod/a refused x2", "evict pod/b refused", "evict pod/a refused", "evict pod/a refused", "evict pod/b refused",
		}, lines(s.reads())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatFailsInTurnsIsCountedAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		for range 100 {
			s.does("stamp", "node/n1", errBudget)
			s.does("witness", "node/n1", errBudget)
			time.Sleep(time.Minute)
		}
		s.does("cordon", "node/n1", nil)
		s.does("stamp", "node/n1", nil)
		s.does("cordon", "node/n1", nil)
		s.does("cordon", "node/n1", nil)
		_ = s.apply(action{counts: true, all: true})
		if diff := cmp.Diff([]string{
			"stamp node/n1 refused x100", "witness node/n1 refused x100",
			"cordon node/n1 ok", "stamp node/n1 ok", "cordon node/n1 ok x2",
		}, lines(s.reads())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestACountIsWrittenWithinAMinuteAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		for range 3 {
			s.does("evict", "pod/a", errBudget)
		}
		counted := func() int { return s.reads()[0].Times }
		if n := counted(); n != 0 {
			t.Errorf("it says %d at once", n)
		}
		time.Sleep(countEvery)
		_ = s.Step(t.Context())
		if n := counted(); n != 3 {
			t.Errorf("it says %d after a minute", n)
		}
		s.does("evict", "pod/a", errBudget)
		_ = s.apply(action{counts: true, all: true, sync: true})
		if n := counted(); n != 4 {
			t.Errorf("it says %d at the end", n)
		}
	})
}

func TestTextsAreBounded(t *testing.T) {
	s := newStage(t)
	long := strings.Repeat("ä", 1<<20) + "\xff"
	s.Begin(types.Operation{Op: long, Target: long, By: long, Why: long, Component: "x"})(types.OperationFailed, errors.New(long))
	raw, err := os.ReadFile(s.Record.Dir + "/operations-00000001.jsonl")
	if err != nil || len(raw) > 8<<10 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if got := s.reads(); len(got) != 1 || !strings.HasSuffix(got[0].Why, "…") {
		t.Errorf("read %+v", got)
	}
}

func TestManyTargetsAreNotRememberedForEver(t *testing.T) {
	s := newStage(t)
	for i := range 3 * maxChains {
		s.does("evict", "pod/"+strings.Repeat("x", i%7)+time.Duration(i).String(), nil)
	}
	if n := len(s.Record.last); n > maxChains || len(s.Record.latest) > maxChains {
		t.Errorf("%d targets are remembered", n)
	}
}
