package applogs

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/logjudge"
	"github.com/zedkube/zedkube/types"
)

// TestRotatedLogsWithoutAStreamAreWhole has 100 containers write a line each
// second for ten minutes and more, where 64 logs can be followed, and the
// kubelet rotate each of them every three and a half minutes.
func TestRotatedLogsWithoutAStreamAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 100)
		c.kubelet.keeps = 4
		c.start()
		c.write(60)
		asked := map[string]int{}
		c.kubelet.do(func() { maps.Copy(asked, c.kubelet.asked) })
		for second := range 630 {
			for i, name := range c.names {
				if (second+2*i)%210 == 0 {
					c.kubelet.rotate(name)
				}
			}
			c.write(1)
		}
		worst := 0
		c.kubelet.do(func() {
			for _, name := range c.names {
				worst = max(worst, c.kubelet.asked[name]-asked[name])
			}
		})
		c.wait(maxPoll)
		c.verdict(t)
		minutes := 630. / 60
		t.Logf("no line was older than %s; %.1f requests a minute of one container", c.slow, float64(worst)/minutes)
		if c.slow > time.Minute {
			t.Errorf("a line was %s old", c.slow)
		}
		if float64(worst) > 3*minutes {
			t.Errorf("a container was asked for %d times in %.1f minutes", worst, minutes)
		}
		c.end()
	})
}

// outage keeps the agent from the logs while they change.
func (s *stage) outage(meanwhile func()) {
	s.kubelet.do(func() { s.kubelet.down = errCut })
	s.kubelet.cut(errCut)
	time.Sleep(10 * time.Second)
	meanwhile()
	time.Sleep(10 * time.Second)
	s.kubelet.do(func() { s.kubelet.down = nil })
	time.Sleep(time.Minute)
}

func TestWhatWasRotatedAwayIsReadFromTheFilesThatAreKept(t *testing.T) {
	for name, story := range map[string]func(s *stage){
		"once": func(s *stage) {
			s.says(6, 9)
			s.kubelet.rotate("c")
			time.Sleep(time.Second)
			s.says(10, 12)
		},
		"several times": func(s *stage) {
			for n := range 3 {
				s.says(6+2*n, 7+2*n)
				time.Sleep(time.Second)
				s.kubelet.rotate("c")
			}
			s.says(12, 12)
		},
		"and nothing was written since": func(s *stage) {
			s.says(6, 12)
			s.kubelet.rotate("c")
		},
		"all but what is known": func(s *stage) {
			s.kubelet.rotate("c")
			time.Sleep(time.Second)
			s.says(6, 12)
		},
		"and the container ended": func(s *stage) {
			s.says(6, 12)
			s.kubelet.rotate("c")
			s.kubelet.stop("c")
			s.show("c")
		},
		"and the container was restarted": func(s *stage) {
			s.says(6, 9)
			s.kubelet.rotate("c")
			time.Sleep(time.Second)
			s.says(10, 11)
			s.kubelet.restart("c")
			time.Sleep(time.Second)
			s.says(12, 12)
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.kubelet.keeps = 4
				s.says(1, 5)
				s.came(t, 5)
				s.outage(func() { story(s) })
				s.show("c")
				time.Sleep(time.Minute)
				s.came(t, 12)
				s.unmarked(t)
			})
		})
	}
}

// ahead writes a line while the clock is two hours ahead.
func (s *stage) ahead(n int) {
	s.kubelet.do(func() { s.kubelet.logs["c"].now.add(time.Now().Add(2*time.Hour), logjudge.Line("c", n, "")+"\n") })
}

func TestWhatWasRotatedAwayIsReadWhereTheClockWasSetBack(t *testing.T) {
	rotates := func(s *stage) {
		s.says(6, 8)
		s.kubelet.rotate("c")
		time.Sleep(time.Second)
		s.says(9, 12)
	}
	for name, c := range map[string]struct {
		before, meanwhile, then func(s *stage)
	}{
		"before the last known line": {
			before:    func(s *stage) { s.says(3, 5) },
			meanwhile: rotates,
		},
		"after the last known line": {
			before:    func(s *stage) { s.ahead(3); s.ahead(4); s.ahead(5) },
			meanwhile: rotates,
		},
		"and it was rotated several times": {
			before: func(s *stage) { s.ahead(3); s.ahead(4); s.ahead(5) },
			meanwhile: func(s *stage) {
				for n := range 3 {
					s.says(6+2*n, 7+2*n)
					time.Sleep(time.Second)
					s.kubelet.rotate("c")
				}
				s.says(12, 12)
			},
		},
		"and nothing was written at first": {
			before: func(s *stage) { s.says(3, 5) },
			meanwhile: func(s *stage) {
				s.says(6, 8)
				s.kubelet.rotate("c")
			},
			then: func(s *stage) { s.says(9, 12) },
		},
		"and the container ended": {
			before: func(s *stage) { s.says(3, 5) },
			meanwhile: func(s *stage) {
				rotates(s)
				s.kubelet.stop("c")
				s.show("c")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.kubelet.keeps = 4
				s.ahead(1)
				s.ahead(2)
				c.before(s)
				s.came(t, 5)
				time.Sleep(time.Second)
				s.outage(func() { c.meanwhile(s) })
				if c.then != nil {
					c.then(s)
				}
				time.Sleep(time.Minute)
				s.came(t, 12)
				s.unmarked(t)
			})
		})
	}
}

func TestALogThatIsNeverSilentIsReadOnWhereTheClockWasSetBack(t *testing.T) {
	play(t, func(s *stage) {
		s.kubelet.keeps = 4
		s.ahead(1)
		s.says(2, 5)
		s.came(t, 5)
		s.outage(func() { s.kubelet.rotate("c") })
		for n := 6; n <= 200; n++ {
			time.Sleep(time.Second)
			s.says(n, n)
		}
		s.came(t, 200)
		s.unmarked(t)
	})
}

func TestWhatIsNotKeptIsMarkedWhereTheClockWasSetBack(t *testing.T) {
	play(t, func(s *stage) {
		s.ahead(1)
		s.says(2, 5)
		s.came(t, 5)
		s.outage(func() {
			s.says(6, 8)
			s.kubelet.rotate("c")
			time.Sleep(time.Second)
			s.says(9, 12)
		})
		time.Sleep(2 * time.Minute)
		if err := s.judge.Verdict("c", 9, 12); err != nil || s.judge.Came("c") != 9 {
			t.Errorf("%d lines came: %v", s.judge.Came("c"), err)
		}
		if m := s.marks(); len(m) != 1 || !strings.Contains(m[0], rotated) {
			t.Errorf("marks: %q", m)
		}
	})
}

// reversed is a kubelet that gives the one line of a log an earlier time with each request.
type reversed struct {
	*kubelet
	from  time.Time
	asked int
}

func (r *reversed) Logs(context.Context, types.Pod, types.LogOptions) (io.ReadCloser, error) {
	if r.asked++; r.asked > 10000 {
		return nil, errCut // a loop without a pause ends
	}
	at := r.from.Add(-time.Duration(r.asked) * time.Millisecond)
	return io.NopCloser(strings.NewReader(at.UTC().Format(time.RFC3339Nano) + " " + logjudge.Line("c", 1, "") + "\n")), nil
}

func TestAKubeletWhoseTimesMakeNoSenseIsAskedLessAndLessOften(t *testing.T) {
	for name, ends := range map[string]bool{"of a log that goes on": false, "of one that has ended": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, "c")
				s.kubelet.keeps = 4
				kube := &reversed{kubelet: s.kubelet, from: time.Now().Add(time.Minute)}
				s.tune = func(c *Component) { c.Kube = kube }
				s.says(1, 1)
				s.kubelet.rotate("c")
				if ends {
					s.kubelet.stop("c")
					s.show("c")
				}
				s.start()
				time.Sleep(time.Hour)
				s.end()
				if kube.asked < 10 || kube.asked > 500 {
					t.Errorf("it was asked %d times in an hour", kube.asked)
				}
			})
		})
	}
}

func TestOfManyRotatedFilesTheOldestMayBeGone(t *testing.T) {
	play(t, func(s *stage) {
		s.kubelet.keeps = 2
		s.says(1, 5)
		s.came(t, 5)
		s.outage(func() {
			for n := range 4 {
				s.says(6+2*n, 7+2*n)
				time.Sleep(time.Second)
				s.kubelet.rotate("c")
			}
			s.says(14, 14)
		})
		if err := s.judge.Verdict("c", 10, 14); err != nil {
			t.Error(err)
		}
		m := s.marks()
		if len(m) != 1 || !strings.HasPrefix(m[0], "lines from 2000-01-01T00:00:00Z to 2000-01-01T00:00:12Z may be missing") {
			t.Errorf("marks: %q", m)
		}
	})
}

func TestASilentLogThatWasRotatedIsNotAskedForAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 3)
		c.kubelet.keeps = 4
		c.tune = func(a *Component) { a.Streams = 1 }
		c.start()
		c.write(10)
		c.wait(time.Minute)
		for _, name := range c.names {
			c.kubelet.rotate(name)
		}
		c.wait(time.Minute)
		before, _ := c.kubelet.opens()
		c.wait(10 * time.Minute)
		if after, _ := c.kubelet.opens(); after-before > 2*10*3 {
			t.Errorf("two silent logs were asked for %d times in ten minutes", after-before)
		}
		c.write(1)
		c.wait(time.Minute)
		c.verdict(t)
		c.end()
	})
}

// torn is a kubelet whose rotated files cannot be read to their end at first.
type torn struct {
	*kubelet
	times int
}

func (k *torn) LogFile(ctx context.Context, node types.Node, pod types.Pod, container string, file types.LogFile) (io.ReadCloser, error) {
	body, err := k.kubelet.LogFile(ctx, node, pod, container, file)
	if k.times--; k.times < 0 || err != nil {
		return body, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(body, 700), failing{}), body}, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, fmt.Errorf("read: %w", errCut) }

func TestARotatedFileThatBreaksOffIsReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "c")
		s.kubelet.keeps = 4
		s.tune = func(a *Component) { a.Kube = &torn{s.kubelet, 3} }
		s.start()
		s.says(1, 5)
		s.came(t, 5)
		s.outage(func() {
			for n := range 20 {
				s.says(6+n, 6+n)
				time.Sleep(10 * time.Millisecond)
			}
			s.kubelet.rotate("c")
			time.Sleep(time.Second)
			s.kubelet.write("c", logjudge.Line("c", 26, ""))
		})
		s.came(t, 26)
		s.unmarked(t)
		s.end()
	})
}
