package applogs

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/logjudge"
	"github.com/zedkube/zedkube/types"
)

// play runs a story in fake time with one container c, whose log is judged.
func play(t *testing.T, tell func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "c")
		s.start()
		synctest.Wait()
		tell(s)
		s.end()
	})
}

// says writes the lines first to last.
func (s *stage) says(first, last int) {
	for n := first; n <= last; n++ {
		s.kubelet.write("c", logjudge.Line("c", n, ""))
	}
}

func (s *stage) came(t *testing.T, last int) {
	t.Helper()
	synctest.Wait()
	if err := s.judge.Verdict("c", 1, last); err != nil {
		t.Error(err)
	}
}

func (s *stage) unmarked(t *testing.T) {
	t.Helper()
	if m := s.marks(); len(m) > 0 {
		t.Errorf("marks: %q", m)
	}
}

func TestLinesComeAtOnceAndOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 3)
		s.came(t, 3)
		time.Sleep(time.Hour)
		s.says(4, 5)
		s.came(t, 5)
		s.unmarked(t)
	})
}

func TestALogThatFallsSilentInFullFlowIsSoonAskedForAgain(t *testing.T) {
	play(t, func(s *stage) {
		pad := strings.Repeat("x", 1<<10)
		for n := 1; n <= 1200; n++ {
			s.kubelet.write("c", logjudge.Line("c", n, pad))
		}
		synctest.Wait()
		s.kubelet.lag()
		for n := 1201; n <= 1210; n++ {
			s.kubelet.write("c", logjudge.Line("c", n, pad))
		}
		time.Sleep(turn + 2*minPause)
		s.came(t, 1210)
		s.unmarked(t)
		before, _ := s.kubelet.opens()
		time.Sleep(quiet - turn)
		if after, _ := s.kubelet.opens(); after != before {
			t.Errorf("it was asked for %d times more while it was quiet", after-before)
		}
	})
}

func TestALineComesOnlyWhenItIsWhole(t *testing.T) {
	play(t, func(s *stage) {
		line := logjudge.Line("c", 1, "")
		s.kubelet.do(func() { s.kubelet.logs["c"].now.add(time.Now(), line[:9]) })
		synctest.Wait()
		s.kubelet.cut(errCut)
		time.Sleep(time.Minute)
		s.kubelet.do(func() { s.kubelet.logs["c"].now.add(time.Now(), line[9:]+"\n") })
		s.came(t, 1)
	})
}

func TestTheLastLineOfAnInstanceComesWithoutAnEnd(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 2)
		s.kubelet.do(func() { s.kubelet.logs["c"].now.add(time.Now(), logjudge.Line("c", 3, "")) })
		s.kubelet.stop("c")
		s.show("c")
		time.Sleep(time.Minute)
		s.came(t, 3)
		time.Sleep(time.Hour)
		s.came(t, 3)
		s.unmarked(t)
	})
}

func TestLinesThatAreCutOffAreReadAgain(t *testing.T) {
	for name, err := range map[string]error{"with an error": errCut, "as if the log had ended": io.EOF} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				for i := range 20 {
					s.says(10*i+1, 10*i+10)
					if i%3 == 0 {
						synctest.Wait()
					}
					s.kubelet.cut(err)
					if i%2 == 0 {
						time.Sleep(time.Duration(i) * 100 * time.Millisecond)
					}
				}
				time.Sleep(2 * time.Minute)
				s.came(t, 200)
				s.unmarked(t)
			})
		})
	}
}

func TestWhatAnInstanceWroteBeforeItsEndComesBeforeWhatTheNextWrites(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		synctest.Wait()
		s.kubelet.do(func() { s.kubelet.down = errCut })
		s.kubelet.cut(errCut)
		time.Sleep(3 * time.Second)
		s.says(6, 9)
		time.Sleep(time.Millisecond)
		s.kubelet.restart("c")
		s.says(10, 12)
		s.kubelet.do(func() { s.kubelet.down = nil })
		time.Sleep(time.Second) // the API server still shows the first one
		s.says(13, 13)
		time.Sleep(time.Second)
		s.show("c")
		time.Sleep(time.Minute)
		s.came(t, 13)
		s.unmarked(t)
	})
}

func TestASilentInstanceDoesNotHideTheRestOfTheOneBefore(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		synctest.Wait()
		s.kubelet.cut(errCut)
		s.says(6, 9)
		s.kubelet.restart("c")
		time.Sleep(5 * time.Second)
		s.show("c")
		time.Sleep(5 * time.Second)
		s.came(t, 9)
		s.unmarked(t)
	})
}

func TestARotatedLogIsMarkedOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		s.came(t, 5)
		s.kubelet.do(func() { s.kubelet.down = errCut })
		s.kubelet.cut(errCut)
		time.Sleep(10 * time.Second)
		s.says(6, 9)
		s.kubelet.rotate("c")
		time.Sleep(10 * time.Second)
		s.says(10, 12)
		s.kubelet.do(func() { s.kubelet.down = nil })
		time.Sleep(time.Minute)
		s.says(13, 14)
		s.came(t, 5)
		if err := s.judge.Verdict("c", 10, 14); err != nil {
			t.Error(err)
		}
		m := s.marks()
		if len(m) != 1 || !strings.HasPrefix(m[0], "lines from 2000-01-01T00:00:00Z to 2000-01-01T00:00:20Z may be missing") || !strings.Contains(m[0], "gap 1") {
			t.Errorf("marks: %q", m)
		}
	})
}

func TestInstancesThatNobodyKeptAreMarkedWithTheirNumber(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		s.came(t, 5)
		s.kubelet.do(func() { s.kubelet.down = errCut })
		s.kubelet.cut(errCut)
		for range 4 {
			s.kubelet.restart("c")
			time.Sleep(10 * time.Second)
			s.says(100, 100)
		}
		s.kubelet.restart("c")
		time.Sleep(10 * time.Second)
		s.says(101, 102)
		s.show("c")
		s.kubelet.do(func() { s.kubelet.down = nil })
		time.Sleep(time.Minute)
		if err := s.judge.Verdict("c", 100, 102); err != nil {
			t.Error(err)
		}
		if m := s.marks(); len(m) != 1 || !strings.Contains(m[0], "3 complete runs") {
			t.Errorf("marks: %q", m)
		}
	})
}

func TestLinesOfOneMomentComeOnceEach(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 3)
		synctest.Wait()
		s.kill()
		s.says(4, 6) // in the same nanosecond
		s.start()
		s.came(t, 6)
		s.kubelet.cut(errCut)
		s.says(7, 9)
		time.Sleep(time.Minute)
		s.came(t, 9)
		s.unmarked(t)
	})
}

func TestAClockThatIsSetBackHidesNothing(t *testing.T) {
	play(t, func(s *stage) {
		ahead := func(n int, by time.Duration) {
			s.kubelet.do(func() { s.kubelet.logs["c"].now.add(time.Now().Add(by), logjudge.Line("c", n, "")+"\n") })
		}
		ahead(1, time.Hour)
		ahead(2, time.Hour)
		ahead(3, 0)
		s.came(t, 3)
		s.kubelet.cut(errCut)
		time.Sleep(time.Second)
		ahead(4, 0)
		time.Sleep(time.Minute)
		ahead(5, 0)
		s.came(t, 5)
		s.kubelet.cut(errCut)
		time.Sleep(2 * time.Hour)
		ahead(6, 0)
		s.came(t, 6)
		s.unmarked(t)
	})
}

func TestALogOfAPodThatIsGoneIsReadToItsEnd(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		synctest.Wait()
		_ = s.pods.Unpublish("eve-kube-app/web-1")
		synctest.Wait()
		s.says(6, 8)
		s.kubelet.stop("c")
		time.Sleep(time.Minute)
		s.came(t, 8)
		s.unmarked(t)
		if n := len(s.kubelet.streams); n != 0 {
			t.Errorf("%d streams are open", n)
		}
		time.Sleep(forgetAfter + 6*period)
		synctest.Wait()
		if len(s.agent.known) != 0 || len(s.agent.free) != maxLogs {
			t.Errorf("%d logs are still known", len(s.agent.known))
		}
	})
}

func TestAnOutageBeginsNoStorm(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		synctest.Wait()
		asked := 0
		s.kubelet.do(func() { s.kubelet.down = errCut })
		s.kubelet.cut(errCut)
		time.Sleep(10 * time.Minute)
		s.kubelet.do(func() { s.kubelet.down = nil; asked = s.kubelet.refused })
		s.says(6, 6)
		time.Sleep(maxPause * 2)
		s.came(t, 6)
		if asked < 5 || asked > 30 {
			t.Errorf("asked %d times in ten minutes in which nobody answered", asked)
		}
	})
}

func TestAStreamThatIsSilentForLongIsAskedForAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 1)
		synctest.Wait()
		before, _ := s.kubelet.opens()
		time.Sleep(time.Hour)
		if after, _ := s.kubelet.opens(); after-before < 4 || after-before > 7 {
			t.Errorf("asked %d times in an hour", after-before)
		}
		s.says(2, 2)
		s.came(t, 2)
	})
}

func TestOfALauncherPodOnlyTheGuestsConsoleIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "compute", guestConsole)
		cfg, _ := s.configs.Get(appID)
		cfg.FixedResources.VirtualizationMode = types.VirtualizationHVM
		_ = s.configs.Publish(appID, cfg)
		p, _ := s.pods.Get("eve-kube-app/web-1")
		p.AppDomain = appID + ".1.1"
		_ = s.pods.Publish(p.Key(), p)
		s.start()
		s.kubelet.write("compute", "libvirt")
		s.kubelet.write(guestConsole, logjudge.Line("g", 1, ""))
		synctest.Wait()
		if err := s.judge.Verdict("g", 1, 1); err != nil {
			t.Error(err)
		}
		if n := s.kubelet.asked["compute"]; n != 0 {
			t.Errorf("another log was asked for %d times", n)
		}
		s.end()
	})
}
