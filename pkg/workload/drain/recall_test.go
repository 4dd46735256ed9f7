package drain

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestAFullDiskStopsNothingAndARestartGoesOnAllTheSame(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.journal.full.Store(true)
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(30 * time.Minute)
		s.is(types.DrainRetrying, deviceOp)
		before, _ := s.progress.Get(types.Global)
		stop()
		s.zedagent.notReceived.Store(true)
		_ = s.zedagent.Unpublish(types.Global)
		defer s.run()()
		time.Sleep(time.Minute)
		s.is(types.DrainRetrying, deviceOp)
		after, _ := s.progress.Get(types.Global)
		if d := after.Deadline.Sub(before.Deadline); d.Abs() > time.Second {
			t.Errorf("the deadline moved by %s", d)
		}
		if n := s.failures(); n != 2 {
			t.Errorf("the full disk was reported %d times by two processes", n)
		}
		s.journal.full.Store(false)
		s.kube.Block(appZero, false)
		time.Sleep(2 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		if j, ok := s.journal.Get(types.Global); !ok || j.Phase != types.PhaseComplete {
			t.Errorf("the journal says %q", j.Phase)
		}
		s.path("234579")
	})
}

func TestAFullDiskMakesNoStormOfRecords(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.journal.full.Store(true)
		s.kube.Block(appZero, true)
		var published atomic.Int64
		s.progress.before = func(types.NodeDrainProgress) { published.Add(1) }
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		published.Store(0)
		time.Sleep(10 * time.Minute)
		if published.Load() > 20 {
			t.Errorf("%d records in ten minutes of waiting", published.Load())
		}
	})
}

func TestWithOnlyThePublishedStatusLeftTheDrainGoesOn(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration
		want  types.DrainStatus
	}{
		"at its beginning": {10 * time.Millisecond, types.DrainRetrying},
		"in the middle":    {10 * time.Second, types.DrainRetrying},
		"after COMPLETE":   {20 * time.Second, types.DrainComplete},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, row.want == types.DrainRetrying)
				stop := s.run()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(row.after)
				stop()
				_, _ = s.journal.Unpublish(types.Global), s.progress.Unpublish(types.Global)
				r, _ := s.zedagent.Get(types.Global)
				_ = s.zedagent.Unpublish(types.Global)
				s.zedagent.notReceived.Store(true)
				defer s.run()()
				time.Sleep(10 * time.Second)
				s.is(row.want, deviceOp)
				s.zedagent.notReceived.Store(false)
				_ = s.zedagent.Publish(types.Global, r)
				time.Sleep(10 * time.Second)
				s.is(row.want, deviceOp)
				_ = s.zedagent.Unpublish(types.Global)
				time.Sleep(40 * time.Second)
				s.is(types.DrainNotRequested, nobody)
				s.nothingLeft()
				if err := inOrder(s.status.seen); err != nil {
					t.Errorf("%v; history %s", err, s.status.path())
				}
			})
		})
	}
}

func TestAFailedStatusAloneIsStillOfTheRequestThatStands(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hour = time.Second
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainFailedDrain, deviceOp)
		stop()
		_, _ = s.journal.Unpublish(types.Global), s.progress.Unpublish(types.Global)
		defer s.run()()
		time.Sleep(time.Hour)
		s.path("234578")
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainRetrying, deviceOp)
	})
}

func TestARequestThatVanishedWhileTheAgentWasAwayIsWithdrawnOnceThatIsSure(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.interrupted()
		_ = s.zedagent.Unpublish(types.Global)
		defer s.run()()
		time.Sleep(time.Second)
		s.is(types.DrainNotRequested, nobody)
		time.Sleep(40 * time.Second)
		s.nothingLeft()
	})
}

func TestANewRequestThatCameWhileTheAgentWasAwayStartsTheDrainThatFailed(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hour = time.Second
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainFailedDrain, deviceOp)
		stop()
		s.kube.Block(appZero, false)
		s.request(&s.zedagent, deviceOp)
		defer s.run()()
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("234578" + "34579")
	})
}

func TestAJournalThatNobodyCanBelieveIsNoneAndLosesNothing(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.interrupted()
		j, _ := s.journal.Get(types.Global)
		j.Phase, j.Serial = "Dancing", j.Serial+10
		_ = s.journal.Publish(types.Global, j)
		defer s.run()()
		time.Sleep(10 * time.Second)
		s.is(types.DrainRetrying, deviceOp)
		s.path("23457")
	})
}

func TestDeadlineAndAttemptsGoOnOverRestartsByTheBootClock(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hours(1)
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		for range 59 {
			time.Sleep(time.Minute)
			stop()
			stop = s.run()
		}
		defer func() { stop() }()
		if p := s.phase(types.PhaseEmptying, ""); p.Attempt != attempts || p.Pods.Total != 1 {
			t.Errorf("attempt %d, %d pods", p.Attempt, p.Pods.Total)
		}
		time.Sleep(61 * time.Second)
		s.is(types.DrainFailedDrain, deviceOp)
		s.path("234578")
	})
}
