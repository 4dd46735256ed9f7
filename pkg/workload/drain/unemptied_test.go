package drain

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// An operator's drain that has ended because the API server did not answer proves nothing about
// the cluster that answers again, even where the lock and the cordon cannot be made up for.
func TestADeviceThatJoinsADrainOfADeadAPIIsDrainedOnceItAnswers(t *testing.T) {
	for name, how := range map[string]struct {
		fail  string
		slow  time.Duration
		after time.Duration
	}{
		"its volumes cannot be listed": {fail: "storage", after: 2 * time.Hour},
		"the cordon is refused":        {fail: "cordon", after: 2 * time.Hour},
		"its answers are slow":         {slow: 2 * time.Second, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 3, func(s *stage) {
				s.kube.SetFault(kubetest.Refused)
				defer s.run()()
				s.request(&s.operator, nobody)
				time.Sleep(310 * time.Second)
				if p, _ := s.progress.Get(types.Global); p.Phase != types.PhaseComplete || !p.Journal.Dead {
					t.Fatalf("the operator's drain is %s: %s", p.Phase, p.Reason)
				}
				if how.fail != "" {
					s.kube.FailVerb(how.fail, errors.Join(types.ErrRefused, errors.New("conversion webhook failed")))
				}
				s.kube.SetLatency(how.slow)
				s.kube.SetFault(kubetest.None)
				time.Sleep(how.after)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(2 * time.Minute)
				if st, _ := s.status.Get(types.Global); st.Status == types.DrainComplete && len(s.kube.Calls("evict")) == 0 {
					t.Error("COMPLETE, and nothing was evicted")
				}
				if how.fail == "cordon" {
					s.is(types.DrainFailedCordon, deviceOp)
					return
				}
				s.kube.FailVerb(how.fail, nil)
				s.kube.SetLatency(0)
				time.Sleep(5 * time.Minute)
				if s.is(types.DrainComplete, deviceOp); len(s.kube.Calls("evict")) == 0 || s.kube.Lock().Holder != "n1" {
					t.Errorf("%d evictions under the lock of %q", len(s.kube.Calls("evict")), s.kube.Lock().Holder)
				}
			})
		})
	}
}

// othersCordoned cordons the other nodes, so that none takes pods, or uncordons them.
func (s *stage) othersCordoned(cordoned bool) {
	for _, n := range []string{"n2", "n3"} {
		s.kube.ChangeNode(n, func(n *types.Node) { n.Unschedulable = cordoned })
	}
}

func TestALeaveBesideAnotherRequestThatEvictedNothingWaitsForIt(t *testing.T) {
	for name, ask := range map[string]struct {
		request, withdraw func(s *stage)
	}{
		"an operator's": {func(s *stage) { s.request(&s.operator, nobody) }, func(s *stage) { _ = s.operator.Unpublish(types.Global) }},
		"an update":     {func(s *stage) { s.request(&s.baseos, osUpdate) }, func(s *stage) { _ = s.baseos.Unpublish(types.Global) }},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 2, func(s *stage) {
				s.othersCordoned(true)
				s.kube.Block(appZero, true)
				defer s.run()()
				ask.request(s)
				s.leaves()
				time.Sleep(time.Hour)
				p, _ := s.progress.Get(types.Global)
				if p.Phase != types.PhaseComplete || len(s.kube.Calls("deletenode")) != 0 || !strings.Contains(p.Reason, "once nobody else requests its drain") {
					t.Errorf("%s %s, %d deletions", p.Phase, p.Reason, len(s.kube.Calls("deletenode")))
				}
				ask.withdraw(s)
				time.Sleep(time.Hour)
				p, _ = s.progress.Get(types.Global)
				if p.Phase != types.PhaseEmptying || len(s.kube.Calls("deletenode")) != 0 || len(s.kube.Calls("evict")) == 0 {
					t.Errorf("the leave alone, and a budget: %s %s, %d deletions, %d evictions", p.Phase, p.Reason, len(s.kube.Calls("deletenode")), len(s.kube.Calls("evict")))
				}
				s.kube.Block(appZero, false)
				time.Sleep(time.Hour)
				if p, _ = s.progress.Get(types.Global); !p.Left {
					t.Errorf("without the budget: %s %s", p.Phase, p.Reason)
				}
			})
		})
	}
}

func TestALeaveBesideAnOperatorsDrainEvictsOnceAnotherNodeTakesPods(t *testing.T) {
	story(t, 2, func(s *stage) {
		s.kube.SetStorage(longhorn(vol("n1", map[string]string{"n1": "RW", "n2": "RW"})))
		s.othersCordoned(true)
		defer s.run()()
		s.request(&s.operator, nobody)
		s.leaves()
		time.Sleep(5 * time.Minute)
		if n := len(s.kube.Calls("evict")); n != 0 {
			t.Fatalf("%d evictions that no node takes", n)
		}
		s.othersCordoned(false)
		time.Sleep(time.Hour)
		if n := len(s.kube.Calls("evict")); n == 0 {
			p, _ := s.progress.Get(types.Global)
			t.Errorf("nothing is evicted: %s %s", p.Phase, p.Reason)
		}
	})
}

func TestWhatIsNotKnownYetTakesNoCompleteBack(t *testing.T) {
	story(t, 2, func(s *stage) {
		s.othersCordoned(true)
		stop := s.run()
		s.request(&s.operator, nobody)
		s.leaves()
		time.Sleep(10 * time.Minute)
		stop()
		_ = s.api.Publish(types.Global, types.APIStatus{})
		defer s.run()()
		time.Sleep(time.Second)
		_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
		time.Sleep(10 * time.Minute)
		if p, _ := s.progress.Get(types.Global); p.Phase != types.PhaseComplete || len(s.kube.Calls("evict")) != 0 {
			t.Errorf("%s %s, %d evictions", p.Phase, p.Reason, len(s.kube.Calls("evict")))
		}
	})
}

func TestALeaveAfterADrainOfADeadAPIEvicts(t *testing.T) {
	for name, alone := range map[string]bool{"beside the operator's request": false, "alone": true} {
		t.Run(name, func(t *testing.T) {
			story(t, 2, func(s *stage) {
				s.kube.SetFault(kubetest.Refused)
				s.kube.Block(appZero, true)
				defer s.run()()
				s.request(&s.operator, nobody)
				time.Sleep(310 * time.Second)
				s.kube.SetFault(kubetest.None)
				time.Sleep(time.Minute)
				if p, _ := s.progress.Get(types.Global); p.Phase != types.PhaseComplete || p.Journal.Dead {
					t.Fatalf("the lock and the cordon are made up for: %s %s, %+v", p.Phase, p.Reason, p.Journal)
				}
				s.leaves()
				if alone {
					_ = s.operator.Unpublish(types.Global)
				}
				time.Sleep(time.Hour)
				if p, _ := s.progress.Get(types.Global); len(s.kube.Calls("evict")) == 0 || len(s.kube.Calls("deletenode")) != 0 {
					t.Errorf("%s %s, %d evictions, %d deletions", p.Phase, p.Reason, len(s.kube.Calls("evict")), len(s.kube.Calls("deletenode")))
				}
			})
		})
	}
}
