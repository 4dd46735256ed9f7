package applogs

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/logjudge"
)

func TestARunWhoseLogIsRemovedIsMarkedWithThoseBeforeIt(t *testing.T) {
	for name, c := range map[string]struct {
		restarts int
		want     string
	}{
		"one run":    {2, "1 complete runs"},
		"three runs": {4, "3 complete runs"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.says(1, 5)
				s.kubelet.stop("c")
				s.show("c")
				time.Sleep(time.Minute)
				s.came(t, 5)
				for range c.restarts {
					s.kubelet.restart("c")
					s.kubelet.write("c", logjudge.Line("lost", 1, ""))
				}
				s.kubelet.do(func() { s.kubelet.logs["c"].last.removed = true })
				s.show("c")
				time.Sleep(time.Minute)
				s.says(6, 7)
				time.Sleep(time.Minute)
				s.came(t, 7)
				if m := s.marks(); len(m) != 1 || !strings.Contains(m[0], c.want) {
					t.Errorf("marks: %q", m)
				}
			})
		})
	}
}

func TestARunWhoseLogTheKubeletOnlyTalksAboutIsMarked(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 5)
		s.kubelet.stop("c")
		s.show("c")
		time.Sleep(time.Minute)
		s.came(t, 5)
		s.kubelet.restart("c")
		s.kubelet.write("c", logjudge.Line("lost", 1, ""))
		s.kubelet.restart("c")
		s.kubelet.do(func() {
			l := s.kubelet.logs["c"].last
			l.text, l.at = []string{"unable to retrieve container logs for " + l.id}, []time.Time{time.Now()}
		})
		s.show("c")
		time.Sleep(time.Minute)
		s.says(6, 7)
		time.Sleep(time.Minute)
		s.came(t, 7)
		if m := s.marks(); len(m) != 1 || !strings.Contains(m[0], "1 complete runs") {
			t.Errorf("marks: %q", m)
		}
	})
}
