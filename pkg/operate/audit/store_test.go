package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestAHundredThousandOperationsStayWithinBounds(t *testing.T) {
	s := newStage(t)
	const n = 100_000
	began := time.Now()
	for i := range n {
		s.does("evict", fmt.Sprintf("pod/eve-kube-app/cam-%d", i), nil)
		if i%1000 == 0 {
			_ = s.Step(t.Context())
		}
	}
	took := time.Since(began)
	_ = s.Step(t.Context())
	files, _ := segments(s.Record.Dir)
	var size int64
	for _, f := range files {
		info, err := os.Stat(filepath.Join(s.Record.Dir, f.name))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if len(files) > DefaultSegments || size > DefaultSegments*(DefaultSegment+4<<10) {
		t.Errorf("%d files have %d bytes", len(files), size)
	}
	began = time.Now()
	all := s.reads()
	t.Logf("%v for each operation; the last %d are kept in %d bytes and read in %v", took/n, len(all), size, time.Since(began))
	if len(all) < 5000 {
		t.Errorf("only %d operations are kept", len(all))
	}
	for i, o := range all {
		if want := fmt.Sprintf("pod/eve-kube-app/cam-%d", n-len(all)+i); o.Target != want || o.Outcome != types.OperationOK {
			t.Fatalf("operation %d is %+v, not of %s", i, o, want)
		}
	}
}

func TestReadersSeeWholeOperationsWhileOthersWrite(t *testing.T) {
	s := newStage(t)
	s.Record.Segment, s.Segments = 8<<10, 4
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					s.does("evict", fmt.Sprintf("pod/%d-%d", w, i), nil)
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	writers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = s.Step(t.Context())
				time.Sleep(time.Millisecond)
			}
		}
	})
	for range 3 {
		readers.Go(func() {
			for range 30 {
				all, problems, err := Read(s.Record.Dir)
				if err != nil || problems.Torn > 1 { // the one that is being written
					t.Errorf("read %d operations, %+v, %v", len(all), problems, err)
					return
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writers.Wait()
	_ = s.reads()
}

func TestTheOrderIsThatOfTheDeedsWhateverTheClockSays(t *testing.T) {
	s := newStage(t)
	at := time.Now().Add(24 * time.Hour) // before it was put back
	s.Record.note(types.Operation{ID: "a", At: at, Op: "cordon", Target: "node/n1", Outcome: types.OperationOK})
	s.does("uncordon", "node/n1", nil)
	got := s.reads()
	if diff := cmp.Diff([]string{"cordon node/n1 ok", "uncordon node/n1 ok"}, lines(got)); diff != "" || !got[0].At.After(got[1].At) {
		t.Errorf("%s%+v", diff, got)
	}
}

func TestATornLineCostsItselfOnly(t *testing.T) {
	s := newStage(t)
	s.does("cordon", "node/n1", nil)
	file := filepath.Join(s.Record.Dir, "operations-00000001.jsonl")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(raw) {
		if err := os.WriteFile(file, raw[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		next := &Record{Log: s.Log, Info: &s.info, Dir: s.Record.Dir, Segment: DefaultSegment} // after the power cut
		// The first line after it is not to be lost with it.
		next.Begin(types.Operation{Op: "uncordon", Target: "node/n1"})
		next.store.close()
		all, problems, err := Read(s.Record.Dir)
		last := all[len(all)-1]
		if err != nil || problems.Torn > 1 || last.Op != "uncordon" || len(all) > 2 {
			t.Fatalf("cut after %d bytes: %q, %+v, %v", cut, lines(all), problems, err)
		}
	}
}

func TestFilesThatSomebodyRemovedAreMadeAnew(t *testing.T) {
	s := newStage(t)
	s.does("cordon", "node/n1", nil)
	if err := os.RemoveAll(s.Record.Dir); err != nil {
		t.Fatal(err)
	}
	_ = s.Step(t.Context())
	s.does("uncordon", "node/n1", nil)
	if diff := cmp.Diff([]string{"uncordon node/n1 ok"}, lines(s.reads())); diff != "" {
		t.Error(diff)
	}
}

func TestACommandWritesBesideTheAgent(t *testing.T) {
	s := newStage(t)
	s.Record.Segment = 2 << 10
	command := &Record{Log: s.Log, Info: &s.info, Dir: s.Record.Dir, Segment: s.Record.Segment}
	for i := range 50 {
		s.does("evict", fmt.Sprintf("pod/%d", i), nil)
		command.Begin(types.Operation{Op: "free drain lock", Target: fmt.Sprintf("drain-lock/%d", i)})(types.OperationOK, nil)
	}
	command.store.close()
	if got := len(s.reads()); got != 100 {
		t.Errorf("%d operations of 100 are there", got)
	}
}

func TestWhatIsThereInsteadOfAFileIsLeftAlone(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		s := newStage(t)
		if err := os.MkdirAll(s.Record.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := put(filepath.Join(s.Record.Dir, "operations-00000003.jsonl")); err != nil {
			t.Fatal(err)
		}
		s.does("cordon", "node/n1", nil)
		if len(s.Record.store.waiting) == 0 || s.log.LastEntry() == nil {
			t.Errorf("%s: nothing is said of it", name)
		}
		if _, _, err := Read(s.Record.Dir); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestASyncComesWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.does("cordon", "node/n1", nil)
		_ = s.Step(t.Context())
		if s.Record.dirty {
			t.Error("the first line waits")
		}
		time.Sleep(100 * time.Millisecond)
		s.does("uncordon", "node/n1", nil)
		_ = s.Step(t.Context())
		if !s.Record.dirty {
			t.Error("each line is put on the disk by itself")
		}
		time.Sleep(time.Second)
		_ = s.Step(t.Context())
		if s.Record.dirty {
			t.Error("a line waits for more than a second")
		}
	})
}
