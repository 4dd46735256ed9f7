package applogs

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/types"
)

// late starts the agent after the container has written for a while.
func late(t *testing.T, keeps int, before func(s *stage), then func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "c")
		s.kubelet.keeps = keeps
		before(s)
		s.show("c")
		s.start()
		time.Sleep(time.Minute)
		then(s)
		s.end()
	})
}

// rotations writes lines, of which the last are in the newest file.
func (s *stage) rotations(files, first int) {
	for n := range files {
		s.says(first+2*n, first+1+2*n)
		time.Sleep(time.Second)
		s.kubelet.rotate("c")
	}
	s.says(first+2*files, first+2*files)
	time.Sleep(10 * time.Second)
}

func TestALogThatWasRotatedBeforeItsFirstReadIsReadFromItsBeginning(t *testing.T) {
	for name, c := range map[string]struct {
		before func(s *stage)
		known  int // lines until then
		last   int // line that is written afterwards
	}{
		"once":          {func(s *stage) { s.rotations(1, 1) }, 3, 8},
		"several times": {func(s *stage) { s.rotations(4, 1) }, 9, 14},
		"and nothing was written since": {func(s *stage) {
			s.says(1, 8)
			s.kubelet.rotate("c")
		}, 8, 9},
		"and the container ended": {func(s *stage) {
			s.rotations(2, 1)
			s.kubelet.stop("c")
		}, 5, 5},
		"and nothing was written before it ended": {func(s *stage) {
			s.says(1, 8)
			s.kubelet.rotate("c")
			time.Sleep(time.Second)
			s.kubelet.stop("c")
		}, 8, 8},
		"and it was restarted": {func(s *stage) {
			s.rotations(2, 1)
			s.kubelet.restart("c")
			time.Sleep(time.Second)
			s.rotations(2, 6)
		}, 10, 12},
	} {
		t.Run(name, func(t *testing.T) {
			late(t, 4, c.before, func(s *stage) {
				s.says(c.known+1, c.last)
				time.Sleep(time.Minute)
				s.came(t, c.last)
				s.unmarked(t)
			})
		})
	}
}

// TestALogWhoseFirstReadFindsNothing has a log without a stream be rotated between the read
// that finds it empty and the next one.
func TestALogWhoseFirstReadFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 3)
		c.kubelet.keeps = 4
		c.tune = func(a *Component) { a.Streams = 1 }
		c.start()
		c.wait(time.Second)
		c.write(10)
		for _, name := range c.names {
			c.kubelet.rotate(name)
		}
		c.write(60)
		c.wait(maxPoll)
		c.verdict(t)
		c.end()
	})
}

func TestARunThatWasRotatedBeforeItsFirstReadIsReadFromItsBeginning(t *testing.T) {
	play(t, func(s *stage) {
		s.kubelet.keeps = 4
		s.says(1, 5)
		s.came(t, 5)
		s.outage(func() {
			s.kubelet.restart("c")
			time.Sleep(time.Second)
			s.rotations(3, 6)
		})
		s.show("c")
		time.Sleep(time.Minute)
		s.came(t, 12)
		s.unmarked(t)
	})
}

func TestWhatIsNotKeptOfALogBeforeItsFirstReadKeepsNothingElseBack(t *testing.T) {
	late(t, 0, func(s *stage) { s.rotations(2, 1) }, func(s *stage) {
		if err := s.judge.Verdict("c", 5, 5); err != nil {
			t.Error(err)
		}
	})
	late(t, 1, func(s *stage) { s.rotations(3, 1) }, func(s *stage) {
		if err := s.judge.Verdict("c", 5, 7); err != nil {
			t.Error(err)
		}
	})
}

// unopened is a kubelet that lists rotated files and opens none.
type unopened struct{ *kubelet }

func (unopened) LogFile(context.Context, types.Node, types.Pod, string, types.LogFile) (io.ReadCloser, error) {
	return nil, fmt.Errorf("open: %w", errCut)
}

// unlisted is a kubelet that fails to list rotated files a few times.
type unlisted struct {
	*kubelet
	left atomic.Int32
}

func (u *unlisted) LogFiles(ctx context.Context, n types.Node, p types.Pod, c string) ([]types.LogFile, error) {
	if u.left.Add(-1) >= 0 {
		return nil, fmt.Errorf("list: %w", errCut)
	}
	return u.kubelet.LogFiles(ctx, n, p, c)
}

func TestAListThatFailsOnceAtTheFirstReadLosesNothing(t *testing.T) {
	late(t, 4, func(s *stage) {
		u := &unlisted{kubelet: s.kubelet}
		u.left.Store(1)
		s.tune = func(a *Component) { a.Kube = u }
		s.rotations(2, 1)
	}, func(s *stage) {
		s.came(t, 5)
		s.unmarked(t)
	})
}

func TestRotatedFilesThatCannotBeReadBeforeTheFirstLineAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "c")
		s.kubelet.keeps = 4
		s.tune = func(a *Component) { a.Kube = unopened{s.kubelet} }
		s.rotations(2, 1)
		s.start()
		time.Sleep(time.Minute)
		if err := s.judge.Verdict("c", 5, 5); err != nil {
			t.Error(err)
		}
		if m := s.marks(); len(m) != 1 || !strings.HasPrefix(m[0], "lines from the beginning to 2000-01-01T00:00:02Z may be missing") {
			t.Errorf("marks: %q", m)
		}
		s.end()
	})
}

func TestARotatedFileThatBreaksOffAtTheFirstReadIsReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "c")
		s.kubelet.keeps = 4
		s.tune = func(a *Component) { a.Kube = &torn{s.kubelet, 2} }
		for n := range 20 {
			s.says(n+1, n+1)
			time.Sleep(10 * time.Millisecond)
		}
		s.kubelet.rotate("c")
		time.Sleep(time.Second)
		s.says(21, 21)
		s.start()
		time.Sleep(time.Minute)
		s.came(t, 21)
		s.unmarked(t)
		s.end()
	})
}
