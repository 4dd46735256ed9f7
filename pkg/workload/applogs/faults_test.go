package applogs

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/logjudge"
	"github.com/zedkube/zedkube/test/seeds"
)

// TestEveryLineComesOnceWhateverHappens lets agents be killed, streams be cut,
// servers be away and containers restart, at random.
func TestEveryLineComesOnceWhateverHappens(t *testing.T) {
	for seed := range seeds.Each(t, 12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 6))) })
		})
	}
}

func chaos(t *testing.T, r *rand.Rand) {
	names := []string{"a", "b", "c"}
	s := newStage(t, names...)
	s.tune = func(c *Component) { c.MaxRecord = 1024 << r.IntN(9) }
	s.start()
	synctest.Wait()
	wrote := map[string]int{}
	restarted := map[string]time.Time{}
	for range 150 {
		name := names[r.IntN(len(names))]
		switch what := r.IntN(20); what {
		case 6, 7:
			buried := s.dieAt(1 + r.IntN(12))
			for range r.IntN(300) {
				wrote[name]++
				s.kubelet.write(name, logjudge.Line(name, wrote[name], strings.Repeat("y", r.IntN(300)*r.IntN(2)*r.IntN(30))))
			}
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
			buried()
		case 0:
			s.kill()
			s.start()
			synctest.Wait()
		case 1:
			s.end()
			s.start()
			synctest.Wait()
		case 2, 3:
			s.kubelet.cut([]error{errCut, io.EOF}[r.IntN(2)])
		case 4:
			s.kubelet.do(func() { s.kubelet.down = errCut })
			s.kubelet.cut(errCut)
			time.Sleep(time.Duration(r.Int64N(int64(10 * time.Second))))
			s.kubelet.do(func() { s.kubelet.down = nil })
		case 5: // the kubelet keeps one instance: it is read before the next one ends
			if time.Since(restarted[name]) > 2*time.Minute {
				time.Sleep(time.Millisecond)
				s.kubelet.restart(name)
				restarted[name] = time.Now()
				time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
				s.show(names...)
			}
		default:
			for range r.IntN(40) {
				wrote[name]++
				s.kubelet.write(name, logjudge.Line(name, wrote[name], strings.Repeat("\x00\"x", r.IntN(30))))
				if r.IntN(3) == 0 {
					time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
				}
			}
		}
		time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	for _, name := range names {
		if err := s.judge.Verdict(name, 1, wrote[name]); err != nil {
			t.Error(err)
		}
	}
	s.unmarked(t)
	s.end()
}

func TestAKillBetweenAWriteAndItsNoteDoublesOneBatchAtMost(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 200)
		s.came(t, 200)
		var raw []byte
		s.pipe.mu.Lock()
		n := 0
		s.pipe.killer = func(arrived bool) {
			if n++; arrived && n == 6 {
				raw, _ = os.ReadFile(s.journal())
				s.pipe.dead = true
			}
		}
		s.pipe.mu.Unlock()
		s.says(201, 400)
		synctest.Wait()
		s.end()
		if err := os.WriteFile(s.journal(), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		s.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := s.judge.Came("c"); n != 400 {
			t.Errorf("%d lines came", n)
		}
		err := s.judge.Verdict("c", 1, 400)
		if err == nil {
			t.Fatal("nothing came twice: this test tests nothing")
		}
		if twice := strings.Count(err.Error(), "came 2 times"); twice*100 > batchSize {
			t.Errorf("%d lines came twice", twice)
		}
	})
}

func TestAfterARebootOnlyTheLastSecondsComeTwice(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		time.Sleep(2 * keepEvery)
		s.says(6, 7)
		synctest.Wait()
		kept, err := os.ReadFile(s.agent.Checkpoints)
		if err != nil {
			t.Fatal(err)
		}
		s.kill()
		_ = os.Remove(s.journal())
		if err := os.WriteFile(s.agent.Checkpoints, kept, 0o600); err != nil {
			t.Fatal(err)
		}
		s.start()
		time.Sleep(time.Minute)
		if err := s.judge.Verdict("c", 1, 5); err != nil {
			t.Error(err)
		}
		if n := s.judge.Came("c"); n != 7 {
			t.Errorf("%d lines came", n)
		}
		s.end()
		_ = os.Remove(s.journal()) // a reboot in good order
		s.start()
		s.says(8, 9)
		time.Sleep(time.Minute)
		if err := s.judge.Verdict("c", 8, 9); err != nil {
			t.Error(err)
		}
	})
}

// Each replacement is a sync, on a flash that lasts for so many of them.
func TestTheFileForTheNextBootIsWrittenSeldom(t *testing.T) {
	play(t, func(s *stage) {
		written, last := 0, os.FileInfo(nil)
		for n := 1; n <= 1800; n++ {
			s.says(n, n)
			time.Sleep(time.Second)
			synctest.Wait()
			now, err := os.Stat(s.agent.Checkpoints)
			if err != nil {
				continue // not yet
			}
			if last == nil || !os.SameFile(now, last) {
				written++
			}
			last = now
		}
		if written < 20 || written > 31 {
			t.Errorf("it was written %d times in half an hour of an application that writes all the time", written)
		}
	})
}

func TestFilesThatAreBrokenCostLinesTwiceButNothingElse(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "garbage": strings.Repeat("\xff{]", 10000), "a slot of another kind": `{"pod":5}`, "negative": `{"pod":"7e0f","container":"c","n":-1}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, "c")
				_ = os.MkdirAll(filepath.Join(s.dir, "persist"), 0o700)
				for _, path := range []string{s.journal(), filepath.Join(s.dir, "persist", "checkpoints")} {
					if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				s.start()
				s.says(1, 3)
				s.came(t, 3)
				s.kill()
				s.start()
				s.says(4, 5)
				s.came(t, 5)
				s.end()
			})
		})
	}
}

func TestAFullPipeStopsNothingButTheLogs(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 3)
		s.came(t, 3)
		s.pipe.mu.Lock()
		s.pipe.full = make(chan struct{})
		s.pipe.mu.Unlock()
		s.says(4, 5000)
		time.Sleep(time.Minute)
		if s.agent.Pulse.Stuck(time.Now()) {
			t.Error("the component is stuck")
		}
		if n := s.judge.Came("c"); n != 3 {
			t.Errorf("%d lines came", n)
		}
		full := s.pipe.full
		s.pipe.mu.Lock()
		s.pipe.full = nil
		s.pipe.mu.Unlock()
		close(full)
		time.Sleep(time.Minute)
		s.came(t, 5000)
		s.unmarked(t)
	})
}

func TestAStuckPipeDoesNotKeepTheAgentFromStopping(t *testing.T) {
	play(t, func(s *stage) {
		full := make(chan struct{})
		s.pipe.mu.Lock()
		s.pipe.full = full
		s.pipe.mu.Unlock()
		s.says(1, 500)
		synctest.Wait()
		start := time.Now()
		s.end()
		if d := time.Since(start); d > 2*patience {
			t.Errorf("it took %v", d)
		}
		close(full)
		synctest.Wait()
		s.start()
		time.Sleep(time.Minute)
		if n := s.judge.Came("c"); n != 500 {
			t.Errorf("%d lines came: %v", n, s.judge.Verdict("c", 1, 500))
		}
	})
}

func TestAnOutputThatFailsIsTriedAgain(t *testing.T) {
	play(t, func(s *stage) {
		fails := true
		s.pipe.mu.Lock()
		s.pipe.to = writerFunc(func(b []byte) (int, error) {
			if fails {
				return 0, errors.New("broken pipe")
			}
			return s.judge.Write(b)
		})
		s.pipe.mu.Unlock()
		s.says(1, 5)
		time.Sleep(time.Minute)
		s.pipe.mu.Lock()
		fails = false
		s.pipe.mu.Unlock()
		time.Sleep(time.Minute)
		s.came(t, 5)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestWhoWritesTooMuchIsCutShortAndTheRestIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "c", "d")
		s.tune = func(c *Component) { c.Rate, c.Burst = 1000, 10000 }
		s.start()
		for n := 1; n <= 1000; n++ {
			s.kubelet.write("c", logjudge.Line("c", n, strings.Repeat("x", 50)))
		}
		synctest.Wait()
		came := s.judge.Came("c")
		if came < 50 || came > 150 {
			t.Errorf("%d lines came", came)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		m := s.marks()
		if len(m) != 1 || !strings.HasPrefix(m[0], fmt.Sprintf("%d lines (", 1000-came)) || !strings.Contains(m[0], "1000 bytes per second") {
			t.Errorf("marks: %q", m)
		}
		s.kubelet.write("c", logjudge.Line("c", 1001, ""))
		synctest.Wait()
		if err := s.judge.Verdict("c", 1001, 1001); err != nil {
			t.Error(err)
		}
		s.end()
	})
}
