package drain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// held makes another node hold the lock, which it needs.
func (s *stage) held(by string) {
	s.kube.SetLock(types.DrainLock{Holder: by, BootID: "boot-1", Since: time.Now()})
}

// phase checks where the drain stands by its own record, and its reason.
func (s *stage) phase(want types.DrainPhase, reason string) types.NodeDrainProgress {
	s.t.Helper()
	p, _ := s.progress.Get(types.Global)
	if p.Phase != want || !strings.Contains(p.Reason, reason) {
		s.t.Errorf("phase %s: %q; want %s: %q", p.Phase, p.Reason, want, reason)
	}
	return p
}

func TestOneLostAnswerIsNoDeadAPI(t *testing.T) {
	for name, tell := range map[string]func(*stage){
		"of the lock, while quorum is missing": func(s *stage) {
			s.kube.LoseAnswer("setlock")
			s.request(&s.zedagent, deviceOp)
			time.Sleep(100 * time.Millisecond)
			s.node("n3", types.ConditionUnknown)
			s.node("n2", types.ConditionUnknown)
		},
		"of the lock's release, long before": func(s *stage) {
			s.kube.LoseAnswer("freelock")
			s.request(&s.zedagent, deviceOp)
			time.Sleep(5 * time.Second)
			_ = s.zedagent.Unpublish(types.Global)
			time.Sleep(time.Minute)
			s.held("n2")
			s.request(&s.zedagent, deviceOp)
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				defer s.run()()
				tell(s)
				time.Sleep(time.Hour)
				s.is(types.DrainStarting, deviceOp)
				s.phase(types.PhaseGates, "")
				s.kube.SetLock(types.DrainLock{})
				s.peers(types.ConditionTrue)
				time.Sleep(20 * time.Second)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

func TestWritesThatNobodyAnswersAreADeadAPIHoweverWellItReads(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.FailVerb("setlock", fmt.Errorf("patch: %w: 503", types.ErrNoAnswer))
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(299 * time.Second)
		s.is(types.DrainStarting, deviceOp)
		time.Sleep(12 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.kube.FailVerb("setlock", nil)
		time.Sleep(20 * time.Second)
		s.cordoned(true, true)
		s.is(types.DrainComplete, deviceOp)
	})
}

// What is only shown to people may fail for reasons of its own: a webhook on the
// status of nodes whose pod was just evicted answers 500 for ever.
func TestConditionsThatCannotBeShownAreNoDeadAPI(t *testing.T) {
	story(t, 2, func(s *stage) {
		for key := range s.pods.All() {
			s.kube.Block(key, true)
		}
		s.kube.FailVerb("conditions", fmt.Errorf("patch: %w: 500", types.ErrNoAnswer))
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		for key := range s.pods.All() {
			s.kube.Block(key, false)
		}
		time.Sleep(20 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestASilenceThatEndedWhileTheAgentWasAwayDoesNotCount(t *testing.T) {
	for name, seen := range map[string]bool{"the API answers at once": true, "the API was not asked yet": false} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, true)
				stop := s.run()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Second)
				s.kube.SetFault(kubetest.Refused)
				time.Sleep(10 * time.Second)
				stop()
				time.Sleep(time.Hour)
				s.kube.SetFault(kubetest.None)
				if !seen {
					_ = s.api.Unpublish(types.Global)
				}
				defer s.run()()
				time.Sleep(5 * time.Second)
				s.kube.SetFault(kubetest.None)
				time.Sleep(10 * time.Minute)
				s.is(types.DrainRetrying, deviceOp)
			})
		})
	}
}

func TestAnAPIThatComesBackJustInTimeIsNotSkipped(t *testing.T) {
	for name, at := range map[string]time.Duration{"at the gates": 0, "while pods go": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, true)
				defer s.run()()
				if at == 0 {
					s.kube.SetFault(kubetest.Hung)
				}
				s.request(&s.zedagent, deviceOp)
				time.Sleep(at)
				s.kube.SetFault(kubetest.Hung)
				time.Sleep(defaultSkipSilence - time.Second)
				s.kube.SetFault(kubetest.None)
				time.Sleep(time.Minute)
				s.is(types.DrainRetrying, deviceOp)
				s.kube.SetFault(kubetest.Refused) // a new silence begins anew
				time.Sleep(defaultSkipSilence - time.Second)
				s.is(types.DrainRetrying, deviceOp)
				time.Sleep(3 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				s.path("234579")
			})
		})
	}
}
