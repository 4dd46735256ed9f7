package drain

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestLostAnswersToWritesChangeNoOutcome(t *testing.T) {
	for _, verb := range []string{"cordon", "uncordon", "setlock", "freelock", "conditions", "evict", "event"} {
		for _, times := range []int{1, 3} {
			t.Run(fmt.Sprint(verb, " ", times), func(t *testing.T) {
				story(t, 2, func(s *stage) {
					for range times {
						s.kube.LoseAnswer(verb)
					}
					defer s.run()()
					s.request(&s.zedagent, deviceOp)
					time.Sleep(time.Minute)
					s.is(types.DrainComplete, deviceOp)
					s.path("234579")
					_ = s.zedagent.Unpublish(types.Global)
					time.Sleep(2 * time.Minute)
					s.nothingLeft()
				})
			})
		}
	}
}

// lateWrites carries writes out only after their caller has given up.
type lateWrites struct {
	*kubetest.Cluster
	verb string // "" for none
	by   time.Duration
}

func (l *lateWrites) late(ctx context.Context, verb string, act func(context.Context) error) error {
	if l.verb != verb {
		return act(ctx)
	}
	l.verb = ""
	time.AfterFunc(l.by, func() { _ = act(context.WithoutCancel(ctx)) })
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	return fmt.Errorf("%s: %w", verb, types.ErrNoAnswer)
}

func (l *lateWrites) Cordon(ctx context.Context, node string, by types.Cordon) error {
	return l.late(ctx, "cordon", func(ctx context.Context) error { return l.Cluster.Cordon(ctx, node, by) })
}

func (l *lateWrites) SetDrainLock(ctx context.Context, lock types.DrainLock) (set types.DrainLock, err error) {
	err = l.late(ctx, "setlock", func(ctx context.Context) error {
		set, err = l.Cluster.SetDrainLock(ctx, lock)
		return err
	})
	return set, err
}

func TestWritesThatArriveAfterTheWithdrawalAreUndone(t *testing.T) {
	for _, verb := range []string{"cordon", "setlock"} {
		for _, by := range []time.Duration{3 * time.Second, 14 * time.Second, 40 * time.Second} {
			t.Run(fmt.Sprint(verb, " ", by), func(t *testing.T) {
				story(t, 1, func(s *stage) {
					s.via = &lateWrites{s.kube, verb, by}
					defer s.run()()
					s.request(&s.zedagent, deviceOp)
					time.Sleep(time.Second)
					_ = s.zedagent.Unpublish(types.Global)
					time.Sleep(time.Second)
					s.is(types.DrainNotRequested, nobody)
					time.Sleep(2 * time.Minute)
					if verb == "setlock" && by > lateFor {
						return // a request does not live that long; the next start looks
					}
					s.nothingLeft()
				})
			})
		}
	}
}

func TestAWithdrawalIsAnsweredWithinASecondWhateverTheAPIDoes(t *testing.T) {
	for name, trouble := range map[string]func(*stage){
		"hung":           func(s *stage) { s.kube.SetFault(kubetest.Hung) },
		"refused":        func(s *stage) { s.kube.SetFault(kubetest.Refused) },
		"slow":           func(s *stage) { s.kube.SetLatency(8 * time.Second) },
		"for ever":       func(s *stage) { s.kube.SetLatency(time.Hour) },
		"unknown errors": func(s *stage) { s.kube.FailVerb("cordon", types.ErrNoAnswer) },
	} {
		for _, at := range []time.Duration{0, 50, 500, 1100, 2500, 7777, 23456, 61234, 299500, 301000, 400000} {
			t.Run(fmt.Sprint(name, " ", at*time.Millisecond), func(t *testing.T) {
				story(t, 20, func(s *stage) {
					defer s.run()()
					s.request(&s.zedagent, deviceOp)
					if at%2 == 1 {
						time.Sleep(100 * time.Millisecond)
					}
					trouble(s)
					time.Sleep(at * time.Millisecond)
					_ = s.zedagent.Unpublish(types.Global)
					time.Sleep(time.Second)
					s.is(types.DrainNotRequested, nobody)
					s.kube.SetFault(kubetest.None)
					s.kube.SetLatency(0)
					s.kube.FailVerb("cordon", nil)
					time.Sleep(2 * time.Minute)
					s.nothingLeft()
				})
			})
		}
	}
}
