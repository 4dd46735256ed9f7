//go:build soak && failpoints

package applogs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/seeds"
)

const (
	victim  = "APPLOGS_KILLED_IN" // names the directory in which a process that kills itself has its files
	journal = "applogs/write to /run/zedkube.applogs"
	half    = 200 // lines
)

// in runs a story with the files in that directory, and the log of a container that has written.
func in(t *testing.T, dir string, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "c")
		s.tune = func(c *Component) {
			c.Journal, c.Checkpoints = filepath.Join(dir, DefaultJournal), filepath.Join(dir, DefaultCheckpoints)
		}
		for n := range half {
			s.says(n+1, n+1)
			time.Sleep(time.Millisecond)
		}
		tell(s)
	})
}

func TestSoakEachLineComesOnceWhereverTheAgentDiesAtItsJournal(t *testing.T) {
	if dir := os.Getenv(victim); dir != "" {
		out, err := os.OpenFile(filepath.Join(dir, "out"), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		in(t, dir, func(s *stage) {
			places := s.tune
			s.tune = func(c *Component) { places(c); c.Out = out }
			s.start()
			time.Sleep(time.Minute)
		})
		return
	}
	for range seeds.Each(t, 3) {
		for _, when := range []string{"/before", "/after"} {
			t.Run(journal+when, func(t *testing.T) {
				dir := t.TempDir()
				if err := errors.Join(os.MkdirAll(filepath.Join(dir, "run"), 0o700), os.MkdirAll(filepath.Join(dir, filepath.Dir(DefaultCheckpoints)), 0o700)); err != nil {
					t.Fatal(err)
				}
				agent.DiesAt(t, "TestSoakEachLineComesOnceWhereverTheAgentDiesAtItsJournal", journal+when, victim+"="+dir)
				seeds.Killed(t, journal+when)
				in(t, dir, func(s *stage) { s.goesOn(dir, when == "/before") })
			})
		}
	}
}

// goesOn starts the agent again. What was not noted when it died comes twice, at most a batch.
func (s *stage) goesOn(dir string, unnoted bool) {
	out, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil || len(out) == 0 || len(out) > batchSize {
		s.t.Fatalf("the process that died had written %d bytes, %v", len(out), err)
	}
	_, _ = s.judge.Write(out)
	s.start()
	time.Sleep(time.Minute)
	s.says(half+1, 2*half)
	time.Sleep(time.Minute)
	s.end()
	if n := s.judge.Came("c"); n != 2*half {
		s.t.Errorf("%d lines came", n)
	}
	s.unmarked(s.t)
	twice := 0
	if err := s.judge.Verdict("c", 1, 2*half); err != nil {
		twice = strings.Count(err.Error(), "came 2 times")
	}
	if want := strings.Count(string(out), "\n"); unnoted && twice != min(want, 20) || !unnoted && twice > 0 {
		s.t.Errorf("%d lines came twice, of %d that had come", twice, want)
	}
}
