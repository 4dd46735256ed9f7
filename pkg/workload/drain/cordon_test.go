package drain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestOnlyANoIsARefusalOfTheCordon(t *testing.T) {
	for name, err := range map[string]error{
		"a connection that fails": &net.OpError{Op: "dial", Err: errors.New("no route")},
		"a conflict":              errors.New("the object has been modified"),
		"an overloaded server":    errors.New("too many requests"),
		"no time left":            context.DeadlineExceeded,
		"no kubeconfig":           types.ErrNoAPI,
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.FailVerb("cordon", fmt.Errorf("patch: %w", err))
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Minute)
				s.is(types.DrainStarting, deviceOp)
				if n := len(s.kube.Calls("cordon")); n > 70 {
					t.Errorf("%d tries in ten minutes", n)
				}
				s.kube.FailVerb("cordon", nil)
				time.Sleep(15 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				if s.failures() != 1 {
					t.Errorf("%d failures logged", s.failures())
				}
			})
		})
	}
}

func TestRefusedCordonsFailTheDrain(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.FailVerb("cordon", fmt.Errorf("patch: %w", types.ErrRefused))
		defer s.run()()
		start := time.Now()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Minute)
		s.is(types.DrainFailedCordon, deviceOp)
		if n := len(s.kube.Calls("cordon")); n != maxRefusals {
			t.Errorf("%d cordons", n)
		}
		if d := s.status.when(start, types.NodeDrainStatus{Status: types.DrainFailedCordon, RequestedBy: deviceOp}); d < 9*cordonEvery || d > 10*cordonEvery {
			t.Errorf("FAILEDCORDON after %s", d)
		}
		s.kube.FailVerb("cordon", nil)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.is(types.DrainFailedCordon, deviceOp)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

// schedulable is what kubectl uncordon leaves.
func (s *stage) schedulable() {
	_ = s.nodes.Publish("n1", types.Node{Name: "n1", Ready: types.ConditionTrue})
}

func TestACordonThatIsUndoneInMidDrainIsMadeAgainThreeTimes(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		for range maxLosses {
			time.Sleep(20 * time.Second)
			s.schedulable()
			time.Sleep(2 * time.Second)
			s.is(types.DrainRetrying, deviceOp)
			s.cordoned(true, true)
		}
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		s.schedulable()
		time.Sleep(2 * time.Second)
		s.is(types.DrainFailedDrain, deviceOp)
		s.cordoned(false, false)
		s.path("234578")
		if n := len(s.kube.Calls("cordon")); n != 1+maxLosses {
			t.Errorf("%d cordons", n)
		}
	})
}

func TestACordonThatIsUndoneBeforeTheTableShowsItIsMadeAgain(t *testing.T) {
	const now = time.Hour
	s := state{rec: record{Phase: types.PhaseEmptying}, mem: memory{drainMemory: drainMemory{cordonAgain: now - time.Second}}}
	f := facts{observed: observed{known: true}}
	if s.countCordonLoss(&f); s.rec.Losses != 0 {
		t.Error("the table may not have caught up with the cordon")
	}
	s.applyResult(now, call{verb: check}, outcome{check: checked{uncordoned: true}})
	if s.mem.check.open(now) {
		t.Error("the drain may end")
	}
	f.memory = s.mem
	if s.countCordonLoss(&f); s.rec.Losses != 0 || f.cordoned() {
		t.Errorf("%d losses, cordoned at %s", s.rec.Losses, s.mem.cordonAgain)
	}
	if s.applyResult(now, call{verb: check}, outcome{check: checked{uncordoned: true}}); s.mem.unseen != 1 {
		t.Errorf("one cordon was undone %d times", s.mem.unseen)
	}
}

// dropping is a webhook that admits cordons without what they ask for.
type dropping struct{ *kubetest.Cluster }

func (dropping) Cordon(context.Context, string, types.Cordon) error { return nil }

func TestADrainWhoseCordonsAreNeverThereFails(t *testing.T) {
	story(t, 0, func(s *stage) {
		s.via = dropping{s.kube}
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainFailedDrain, deviceOp)
		if p, _ := s.progress.Get(types.Global); !strings.Contains(p.Reason, "undone by another client 4 times") {
			t.Error(p.Reason)
		}
	})
}

// hooked tells of each cordon that has succeeded.
type hooked struct {
	*kubetest.Cluster
	cordoned func(nth int)
	cordons  int
}

func (h *hooked) Cordon(ctx context.Context, node string, by types.Cordon) error {
	err := h.Cluster.Cordon(ctx, node, by)
	h.cordons++
	h.cordoned(h.cordons)
	return err
}

// undo is kubectl uncordon on n1.
func (s *stage) undo() {
	s.kube.ChangeNode("n1", func(n *types.Node) { n.Unschedulable, n.CordonedBy = false, nil })
}

// The watch hangs. Meanwhile the node is cordoned, looked at, and uncordoned.
func TestNoDrainIsCompleteWhoseCordonTheTableDoesNotShow(t *testing.T) {
	story(t, 0, func(s *stage) {
		var shown pubsub.Table[types.Node]
		bring := func() {
			for name, n := range s.nodes.All() {
				_ = shown.Publish(name, n)
			}
		}
		bring()
		s.via = &hooked{Cluster: s.kube, cordoned: func(nth int) {
			if nth == 1 {
				time.AfterFunc(time.Second, s.undo)
				time.AfterFunc(1500*time.Millisecond, bring)
			} else {
				time.AfterFunc(10*time.Millisecond, bring)
			}
		}}
		s.status.before = s.neverUnlocked
		c := s.component()
		c.Nodes = &shown
		defer s.start(c)()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(30 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.cordoned(true, true)
	})
}

// showLate has the agent see each change of the nodes a while later.
func (s *stage) showLate(c *Component, by time.Duration) (stop func()) {
	var shown pubsub.Table[types.Node]
	bring := func(nodes map[string]types.Node) {
		for name, n := range nodes {
			_ = shown.Publish(name, n)
		}
	}
	bring(s.nodes.All())
	c.Nodes = &shown
	bell, done := make(chan struct{}, 1), make(chan struct{})
	s.nodes.Notify(bell)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-bell:
				nodes := s.nodes.All()
				time.AfterFunc(by, func() { bring(nodes) })
			}
		}
	}()
	return func() { close(done) }
}

// The drain is kept from its end by a volume, and another client undoes its cordon twice.
func TestACordonIsLostAsOftenAsItIsUndone(t *testing.T) {
	story(t, 0, func(s *stage) {
		s.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{
			{Name: "pv-1", State: "attached", Running: true, Robustness: "degraded", Wanted: 2, Replicas: []types.Replica{{Node: "n1", Mode: "RW", Running: true}, {Node: "n2", Mode: "WO", Running: true}}},
		}})
		s.via = &hooked{Cluster: s.kube, cordoned: func(nth int) {
			if nth <= 2 {
				time.AfterFunc(50*time.Millisecond, s.undo)
			}
		}}
		c := s.component()
		defer s.showLate(c, 3*time.Second)()
		defer s.start(c)()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainRetrying, deviceOp)
		s.cordoned(true, true)
		if p, _ := s.progress.Get(types.Global); p.Journal.Losses > 2 {
			t.Errorf("counted %d times: %s", p.Journal.Losses, p.Reason)
		}
	})
}

func TestADrainTakesNoLongerThanTheTableThatShowsItsCordon(t *testing.T) {
	for _, late := range []time.Duration{0, 300 * time.Millisecond, 3 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			story(t, 0, func(s *stage) {
				s.kube.SetLatency(30 * time.Millisecond)
				c := s.component()
				defer s.showLate(c, late)()
				defer s.start(c)()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(late + 2500*time.Millisecond)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

// The look at everything is over when the cordon is undone and a pod comes, of which the watch tells late. The answer to
// the next cordon is lost.
func TestNoDrainIsCompleteByALookFromBeforeItsCordonWasUndone(t *testing.T) {
	story(t, 0, func(s *stage) {
		var shown pubsub.Table[types.Pod]
		for key, p := range s.pods.All() {
			_ = shown.Publish(key, p)
		}
		s.via = &hooked{Cluster: s.kube, cordoned: func(nth int) {
			if nth == 1 {
				time.AfterFunc(500*time.Millisecond, func() {
					p := types.Pod{Namespace: "eve-kube-app", Name: "late", UID: "late", NodeName: "n1", Phase: types.PodRunning}
					_ = s.pods.Publish(p.Key(), p)
					time.AfterFunc(5*time.Second, func() { _ = shown.Publish(p.Key(), p) })
					s.kube.LoseAnswer("cordon")
					s.undo()
				})
			}
		}}
		s.status.before = func(is types.NodeDrainStatus) {
			if _, there := s.pods.Get("eve-kube-app/late"); is.Status == types.DrainComplete && there {
				t.Errorf("complete with a pod that came while the node was schedulable; history %s", s.status.path())
			}
		}
		c := s.component()
		c.NodePods = &shown
		defer s.start(c)()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(20 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestACordonUndoneWhileTheAgentWasAwayIsMadeAgainBeforeTheEnd(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.interrupted()
		s.schedulable()
		s.kube.Block(appZero, false)
		defer s.run()()
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.cordoned(true, true)
		s.path("234579")
	})
}

func TestAForcedStateIsNoCordon(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.write(s.force, `{"Status":5}`)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainCordoned, deviceOp)
		s.remove(s.force)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.cordoned(true, true)
		if cordon, evict := s.kube.Calls("cordon"), s.kube.Calls("evict"); len(cordon) != 1 || len(evict) != 1 || evict[0].At.Before(cordon[0].At) {
			t.Errorf("cordons %v, evictions %v", cordon, evict)
		}
	})
}

func TestAnUncordonThatNobodyNeedsAnyMoreFailsNoMore(t *testing.T) {
	story(t, 1, func(s *stage) {
		n := types.Node{Name: "n1", Ready: types.ConditionTrue, Unschedulable: true, CordonedBy: &types.Cordon{By: "zedkube"}}
		_ = s.nodes.Publish("n1", n)
		s.kube.FailVerb("uncordon", types.ErrRefused)
		defer s.run()()
		time.Sleep(time.Hour)
		if n := len(s.kube.Calls("uncordon")); n < 100 || n > 400 {
			t.Errorf("%d tries in an hour", n)
		}
		s.schedulable()
		time.Sleep(time.Minute)
		if s.failures() != 1 || !s.logged("step succeeds again") {
			t.Errorf("%d failures logged, over: %v", s.failures(), s.logged("step succeeds again"))
		}
	})
}

// lateAnswers obeys, but the answers are lost.
type lateAnswers struct{ *kubetest.Cluster }

func (l lateAnswers) Cordon(ctx context.Context, node string, by types.Cordon) error {
	_ = l.Cluster.Cordon(context.WithoutCancel(ctx), node, by)
	<-ctx.Done()
	return ctx.Err()
}

func TestACordonWhoseAnswerWasLostIsUndoneAfterTheWithdrawal(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.SetLatency(2 * time.Second)
		s.via = lateAnswers{s.kube}
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		for len(s.kube.Calls("cordon")) == 0 {
			time.Sleep(time.Second)
		}
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(500 * time.Millisecond)
		s.is(types.DrainNotRequested, nobody)
		time.Sleep(20 * time.Second)
		if n := len(s.kube.Calls("cordon")); n != 1 {
			t.Errorf("%d cordons", n)
		}
		s.cordoned(false, false)
	})
}

// latePods lets a pod come between the answer of a list and its arrival.
type latePods struct {
	*kubetest.Cluster
	come func()
}

func (l *latePods) PodsToEvict(ctx context.Context, node string) ([]types.Pod, error) {
	pods, err := l.Cluster.PodsToEvict(ctx, node)
	if l.come != nil {
		l.come()
		l.come = nil
	}
	return pods, err
}

func TestNoDrainIsCompleteWithAPodThatTheLastListDidNotSee(t *testing.T) {
	come := func(s *stage) {
		p := types.Pod{Namespace: "eve-kube-app", Name: "late", UID: "late", NodeName: "n1"}
		_ = s.pods.Publish(p.Key(), p)
	}
	for when, tell := range map[string]func(*stage){
		"while the answer is under way": func(s *stage) { s.via = &latePods{s.kube, func() { come(s) }} },
		"just before the end":           func(s *stage) { time.AfterFunc(edge-100*time.Millisecond, func() { come(s) }) },
	} {
		t.Run(when, func(t *testing.T) {
			story(t, 0, func(s *stage) {
				tell(s)
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				if n := len(s.kube.Calls("evict")); n != 1 {
					t.Errorf("%d evictions of a late pod", n)
				}
			})
		})
	}
}
