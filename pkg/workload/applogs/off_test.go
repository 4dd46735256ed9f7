package applogs

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/logjudge"
)

// wanted says whether the controller wants the application's log.
func (s *stage) wanted(is bool) {
	cfg, _ := s.configs.Get(appID)
	cfg.DisableLogs = !is
	_ = s.configs.Publish(appID, cfg)
	synctest.Wait()
}

func TestALogThatNobodyWantsIsNotRead(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 3)
		s.came(t, 3)
		time.Sleep(time.Minute)
		s.wanted(false)
		time.Sleep(time.Minute)
		before, _ := s.kubelet.opens()
		s.says(4, 6)
		time.Sleep(time.Hour)
		if after, _ := s.kubelet.opens(); after != before || len(s.kubelet.streams) > 0 || s.judge.Came("c") != 3 {
			t.Errorf("asked %d times, %d streams are open, %d lines came", after-before, len(s.kubelet.streams), s.judge.Came("c"))
		}
		s.kubelet.restart("c")
		s.says(7, 7)
		s.show("c")
		time.Sleep(10 * time.Second)
		s.wanted(true)
		time.Sleep(time.Second)
		s.says(8, 9)
		time.Sleep(time.Minute)
		if err := s.judge.Verdict("c", 8, 9); err != nil || s.judge.Came("c") != 5 {
			t.Errorf("%d lines came: %v", s.judge.Came("c"), err)
		}
		s.unmarked(t)
	})
}

func TestNothingOfATimeWithoutLogsIsToldAfterARestartOrADeletion(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 3)
		s.came(t, 3)
		s.wanted(false)
		s.says(4, 6)
		time.Sleep(time.Minute)
		s.kill()
		s.start()
		time.Sleep(time.Minute)
		s.kill()
		s.wanted(true) // while there is no agent
		s.says(7, 9)
		time.Sleep(2 * time.Second)
		s.start()
		time.Sleep(2 * time.Second)
		s.says(10, 11)
		time.Sleep(time.Minute)
		if err := s.judge.Verdict("c", 10, 11); err != nil || s.judge.Came("c") != 5 {
			t.Errorf("%d lines came: %v", s.judge.Came("c"), err)
		}
		s.wanted(false)
		_ = s.configs.Unpublish(appID)
		time.Sleep(time.Minute)
		s.says(12, 14)
		time.Sleep(time.Minute)
		s.kill()
		s.start()
		time.Sleep(time.Minute)
		s.says(15, 16)
		time.Sleep(time.Minute)
		_ = s.pods.Unpublish("eve-kube-app/web-1")
		time.Sleep(time.Minute)
		if n := s.judge.Came("c"); n != 5 {
			t.Errorf("%d lines came of an application that was deleted", n)
		}
		s.unmarked(t)
	})
}

func TestALogThatEndsWhileNobodyWantsItLeavesNoMark(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 2)
		s.came(t, 2)
		s.wanted(false)
		s.says(3, 4)
		time.Sleep(time.Second)
		s.wanted(true)
		time.Sleep(10 * time.Second)
		s.kubelet.stop("c")
		s.show("c")
		time.Sleep(time.Minute)
		s.kubelet.restart("c")
		s.kubelet.write("c", logjudge.Line("c", 5, strings.Repeat("x", 100)))
		s.show("c")
		time.Sleep(time.Minute)
		if err := s.judge.Verdict("c", 5, 5); err != nil || s.judge.Came("c") != 3 {
			t.Errorf("%d lines came: %v", s.judge.Came("c"), err)
		}
		s.unmarked(t)
	})
}

func TestALogThatNobodyWantsLeavesNoMarkWhereItsPodGoesMeanwhile(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 3)
		s.came(t, 3)
		s.wanted(false)
		time.Sleep(time.Minute)
		s.kill()
		_ = s.pods.Unpublish("eve-kube-app/web-1")
		s.start()
		time.Sleep(30 * time.Minute)
		s.unmarked(t)
	})
}

func TestADeletedApplicationWithoutLogsHasNone(t *testing.T) {
	play(t, func(s *stage) {
		s.says(1, 3)
		s.came(t, 3)
		s.wanted(false)
		time.Sleep(time.Minute)
		_ = s.configs.Unpublish(appID)
		time.Sleep(time.Minute)
		s.says(4, 6)
		time.Sleep(time.Minute)
		if n := s.judge.Came("c"); n != 3 {
			t.Errorf("%d lines came", n)
		}
	})
}
