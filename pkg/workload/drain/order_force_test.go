package drain

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestAMaskThatIsTakenOffWhileTheAgentIsAwayEndsNoDrain(t *testing.T) {
	for _, forced := range []types.DrainStatus{types.DrainRequested, types.DrainCordoned, types.DrainFailedCordon, types.DrainFailedDrain} {
		t.Run(forced.String(), func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, true)
				stop := s.run()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Second)
				began, _ := s.progress.Get(types.Global)
				s.write(s.force, fmt.Sprintf(`{"Status":%d}`, forced))
				time.Sleep(10 * time.Second)
				s.is(forced, deviceOp)
				stop()
				s.remove(s.force)
				defer s.run()()
				time.Sleep(10 * time.Second)
				s.is(types.DrainRetrying, deviceOp)
				if p := s.phase(types.PhaseEmptying, ""); !p.Started.Equal(began.Started) {
					t.Errorf("started at %s, and again at %s", began.Started, p.Started)
				}
				if n := len(s.kube.Calls("uncordon")); n != 0 {
					t.Errorf("%d uncordons", n)
				}
			})
		})
	}
}

func TestBothForceFilesAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		card, other string
		want        types.DrainStatus
		left        int // of the files
	}{
		"the card's 9 goes before a mask, which shows then":  {`{"Status":9}`, `{"Status":7}`, types.DrainRetrying, 1},
		"the card's mask goes before a 9, which has to wait": {`{"Status":4}`, `{"Status":9}`, types.DrainStarting, 2},
		"the card's 9 goes before a 1, which disables then":  {`{"Status":9}`, `{"Status":1}`, types.DrainNotSupported, 1},
		"9 twice is 9":                     {`{"Status":9}`, `{"Status":9}`, types.DrainComplete, 0},
		"a card that says nothing is none": {`{"Status":`, `{"Status":9}`, types.DrainComplete, 1},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, true)
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Second)
				s.is(types.DrainRetrying, deviceOp) // and no step is between the two files
				s.write(s.force, row.card)
				s.write(s.otherForce(), row.other)
				time.Sleep(5 * time.Second)
				s.is(row.want, deviceOp)
				left := 0
				for _, path := range []string{s.force, s.otherForce()} {
					if _, err := os.Lstat(path); err == nil {
						left++
					}
				}
				if left != row.left {
					t.Errorf("%d files are left, want %d", left, row.left)
				}
			})
		})
	}
}

func TestASecond9ChangesNothing(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		for range 2 {
			s.write(s.force, `{"Status":9}`)
			time.Sleep(5 * time.Second)
			s.is(types.DrainComplete, deviceOp)
			s.cordoned(true, true)
			if _, err := os.Lstat(s.force); err == nil {
				t.Error("the file was not used up")
			}
		}
		s.path("234579")
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(40 * time.Second)
		s.nothingLeft()
	})
}
