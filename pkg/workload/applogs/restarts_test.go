package applogs

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/logjudge"
	"github.com/zedkube/zedkube/types"
)

func TestNewsOfARestartThatIsLateCostsNoLine(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		s.came(t, 5)
		s.kubelet.do(func() { s.kubelet.down = errCut })
		s.kubelet.cut(errCut)
		time.Sleep(3 * time.Second)
		s.says(6, 9)
		time.Sleep(time.Millisecond)
		s.kubelet.restart("c")
		s.says(10, 12)
		s.kubelet.do(func() { s.kubelet.down = nil })
		time.Sleep(time.Minute) // the API server still shows the first one
		s.show("c")
		time.Sleep(time.Minute)
		s.came(t, 12)
		s.unmarked(t)
	})
}

func TestLinesOfAClockThatWasSetBackAreAskedFor(t *testing.T) {
	play(t, func(s *stage) {
		s.kubelet.do(func() { s.kubelet.logs["c"].now.add(time.Now().Add(2*time.Hour), logjudge.Line("c", 1, "")+"\n") })
		s.came(t, 1)
		s.kubelet.cut(errCut)
		time.Sleep(time.Minute)
		s.says(2, 3)
		s.came(t, 3)
		s.unmarked(t)
	})
}

// limited is a kubelet that refuses a log once it was asked for so many times: a test of
// a loop without a pause ends.
type limited struct {
	*kubelet
	left atomic.Int32
}

func (l *limited) Logs(ctx context.Context, pod types.Pod, o types.LogOptions) (io.ReadCloser, error) {
	if l.left.Add(-1) < 0 {
		return nil, errCut
	}
	return l.kubelet.Logs(ctx, pod, o)
}

// limit makes the agent that is started next ask a limited kubelet. What it returns is to be
// called at the end.
func (s *stage) limit(most int32) (within func(t *testing.T)) {
	kube := &limited{kubelet: s.kubelet}
	kube.left.Store(most)
	s.tune = func(c *Component) { c.Kube = kube }
	return func(t *testing.T) {
		t.Helper()
		if left := kube.left.Load(); left < 0 {
			t.Errorf("the log was asked for more than %d times", most)
		}
	}
}

func TestARunWhoseClockWasSetBackALittleIsReadOnce(t *testing.T) {
	for name, ends := range map[string]bool{"and goes on": false, "and ends": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, "c")
				within := s.limit(20)
				s.start()
				s.says(1, 5)
				s.kubelet.do(func() {
					s.kubelet.logs["c"].now.add(time.Now().Add(settled-time.Second/2), logjudge.Line("c", 6, "")+"\n")
				})
				s.came(t, 6)
				s.kubelet.restart("c")
				s.says(7, 9)
				if ends {
					s.kubelet.stop("c")
				}
				s.show("c")
				time.Sleep(10 * time.Second)
				last := 9
				for range 3 {
					if !ends {
						s.says(last+1, last+2)
						last += 2
					}
					s.kubelet.cut(errCut)
					time.Sleep(time.Minute)
				}
				s.came(t, last)
				s.unmarked(t)
				within(t)
				s.end()
			})
		})
	}
}

func TestALineWithoutEndIsCutShortLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "c")
		s.tune = func(c *Component) { c.MaxRecord, c.Rate, c.Burst = 2000, 1000, 20000 }
		s.start()
		add := func(text string) { s.kubelet.do(func() { s.kubelet.logs["c"].now.add(time.Now(), text) }) }
		for range 20 {
			add(strings.Repeat("x", 50000))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		s.pipe.mu.Lock()
		wrote := 0
		for _, n := range s.pipe.writes {
			wrote += n
		}
		s.pipe.mu.Unlock()
		if wrote < 20000 || wrote > 80000 {
			t.Errorf("%d bytes came", wrote)
		}
		time.Sleep(time.Minute)
		add("\n")
		s.says(1, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := s.judge.Came("c"); n != 1 {
			t.Error("the line after it did not come")
		}
		if m := s.marks(); len(m) == 0 || len(m) > 4 || !strings.Contains(m[0], "left out") {
			t.Errorf("marks: %q", m)
		}
		s.end()
	})
}

func TestFilesThatAreNoFilesHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "c")
		kept := filepath.Join(s.dir, "persist", "checkpoints")
		_ = os.MkdirAll(filepath.Dir(kept), 0o700)
		for _, path := range []string{s.journal(), kept} {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		hand, err := os.OpenFile(kept, os.O_RDWR, 0) // someone could write
		if err != nil {
			t.Fatal(err)
		}
		defer hand.Close()
		s.start()
		s.says(1, 3)
		time.Sleep(time.Second)
		s.came(t, 3)
		s.end()
	})
}

func TestAPodThatWentWhileNobodyReadIsMarked(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		s.came(t, 5)
		s.kill()
		s.says(6, 9)
		_ = s.pods.Unpublish("eve-kube-app/web-1")
		time.Sleep(time.Minute)
		s.start()
		time.Sleep(forgetAfter + 6*period)
		synctest.Wait()
		if m := s.marks(); len(m) != 1 || !strings.Contains(m[0], "the pod is gone") || !strings.HasPrefix(m[0], "lines from 2000-01-01T00:00:00Z to ") {
			t.Errorf("marks: %q", m)
		}
	})
}

func TestAContainerThatOutlivesItsPodIsReadToItsEnd(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		s.came(t, 5)
		_ = s.pods.Unpublish("eve-kube-app/web-1")
		s.kubelet.do(func() { s.kubelet.down = types.ErrNoLog }) // to who asks anew; what is open goes on
		for i := 6; i <= 20; i++ {
			time.Sleep(10 * time.Second)
			s.says(i, i)
		}
		s.came(t, 20)
		if m := s.marks(); len(m) != 0 {
			t.Errorf("marks: %q", m)
		}
	})
}
