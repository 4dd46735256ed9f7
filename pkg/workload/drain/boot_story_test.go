package drain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// phasesOf brings a drain into each of its phases.
var phasesOf = map[string]func(*stage){
	"at the gates": func(s *stage) {
		s.held("n2")
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainStarting, deviceOp)
	},
	"while pods go": func(s *stage) {
		s.kube.Block(appZero, true)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainRetrying, deviceOp)
	},
	"after COMPLETE": func(s *stage) {
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	},
	"after FAILEDCORDON": func(s *stage) {
		s.kube.FailVerb("cordon", types.ErrRefused)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainFailedCordon, deviceOp)
		s.kube.FailVerb("cordon", nil)
	},
	"after FAILEDDRAIN": func(s *stage) {
		s.hour = time.Second
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(40 * time.Second)
		s.is(types.DrainFailedDrain, deviceOp)
	},
	"after a dead API": func(s *stage) {
		s.kube.SetFault(kubetest.Refused)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(310 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.kube.SetFault(kubetest.None)
		time.Sleep(5 * time.Second)
		s.cordoned(true, true)
	},
}

func TestANewBootEndsTheDrainInWhateverPhase(t *testing.T) {
	for name, until := range phasesOf {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				if name == "after FAILEDDRAIN" {
					until(s)
				} else {
					stop := s.run()
					until(s)
					stop()
				}
				s.reboot("boot-2") // the row still says Ready, of the old boot
				undone := len(s.kube.Calls("uncordon")) + len(s.kube.Calls("freelock"))
				stop := s.run()
				time.Sleep(time.Minute)
				s.is(types.DrainNotRequested, nobody)
				stop() // and once more before the Node is back
				s.kube.ChangeNode("n1", func(n *types.Node) { n.Ready = types.ConditionUnknown })
				defer s.run()()
				time.Sleep(time.Minute)
				if n := len(s.kube.Calls("uncordon")) + len(s.kube.Calls("freelock")); n != undone && strings.HasPrefix(name, "after COMPLETE") {
					t.Errorf("%d things given back before the Node was Ready", n-undone)
				}
				s.ready()
				time.Sleep(40 * time.Second)
				if s.kube.Lock().Holder == "n2" {
					s.kube.SetLock(types.DrainLock{})
				}
				s.nothingLeft()
				s.path("2")
			})
		})
	}
}

func TestARequestThatStandsAtTheBootStartsADrainOfItsOwn(t *testing.T) {
	story(t, 1, func(s *stage) {
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		stop()
		s.reboot("boot-2")
		s.ready()
		defer s.run()()
		time.Sleep(time.Second)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("2345" + "79")
	})
}

func TestCordonsOfOthersAndKeptOnesSurviveTheBoot(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*stage)
		ours   bool
	}{
		"an operator's": {func(s *stage) {
			s.kube.ChangeNode("n1", func(n *types.Node) { n.Unschedulable, n.CordonedBy, n.TaintedAt = true, nil, time.Now() })
		}, false},
		"a kept one": {func(s *stage) {
			s.kube.ChangeNode("n1", func(n *types.Node) { n.CordonKept = true })
		}, true},
		"a tie-breaker's by label": {func(s *stage) {
			s.kube.ChangeNode("n1", func(n *types.Node) { n.TieBreaker = true })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				stop := s.run()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(5 * time.Second)
				row.change(s)
				stop()
				s.reboot("boot-2")
				s.ready()
				defer s.run()()
				time.Sleep(10 * time.Minute)
				s.cordoned(true, row.ours)
				if l := s.kube.Lock(); l.Holder != "" {
					t.Error("the lock is kept for a cordon that is none of a drain's")
				}
			})
		})
	}
}

func TestAKeptCordonIsKeptForOneDrainOnly(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.kube.ChangeNode("n1", func(n *types.Node) { n.CordonKept = true })
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.cordoned(true, true)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		if n, _ := s.nodes.Get("n1"); n.CordonKept {
			t.Error("the next drain did not take it over")
		}
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(40 * time.Second)
		s.nothingLeft()
	})
}

func TestAKeptCordonThatIsUndoneByHandIsForgotten(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.ChangeNode("n1", func(n *types.Node) { n.Unschedulable, n.CordonKept = false, true })
		defer s.run()()
		time.Sleep(20 * time.Second)
		if n, _ := s.nodes.Get("n1"); n.CordonKept || len(s.kube.Calls("unkeep")) != 1 {
			t.Errorf("%+v after %d calls", n, len(s.kube.Calls("unkeep")))
		}
	})
}

func TestACordonOfEVEsZedkubeIsUndoneOnceAndSaidSo(t *testing.T) {
	legacy := func(s *stage, when time.Time) {
		s.kube.ChangeNode("n1", func(n *types.Node) { n.Unschedulable, n.CordonedBy, n.Agent, n.TaintedAt = true, nil, nil, when })
	}
	for name, row := range map[string]struct {
		tainted time.Duration // before the boot
		change  func(*types.Node)
		undone  bool
	}{
		"from before this boot":           {time.Minute, func(*types.Node) {}, true},
		"with a clock that has jumped":    {-time.Hour, func(*types.Node) {}, false},
		"on a Node that had our stamp":    {time.Minute, func(n *types.Node) { n.Agent = &types.AgentStamp{} }, false},
		"of a tie-breaker":                {time.Minute, func(n *types.Node) { n.TieBreaker = true }, false},
		"of which nobody knows its begin": {time.Minute, func(n *types.Node) { n.TaintedAt = time.Time{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				legacy(s, s.booted.Add(-row.tainted))
				s.kube.ChangeNode("n1", row.change)
				stop := s.run()
				time.Sleep(time.Minute)
				s.cordoned(!row.undone, false)
				events := 0
				for _, e := range s.kube.Events() {
					if e.Reason == "FormerCordonUndone" {
						events++
					}
				}
				if (events == 1) != row.undone {
					t.Errorf("%d Events", events)
				}
				stop()
				legacy(s, s.booted.Add(-time.Minute)) // never again, not even by another process
				defer s.run()()
				time.Sleep(time.Minute)
				s.cordoned(true, false)
			})
		})
	}
}

func TestACordonLostAfterCompleteIsMadeAgain(t *testing.T) {
	story(t, 1, func(s *stage) {
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.schedulable()
		time.Sleep(5 * time.Second)
		s.cordoned(true, true)
		stop()
		s.schedulable()
		defer s.run()()
		time.Sleep(5 * time.Second)
		s.cordoned(true, true)
		s.is(types.DrainComplete, deviceOp)
		s.path("234579")
	})
}

func TestTheCordonOfAFormerBootIsUndoneWhileAnotherNodeHasTheLock(t *testing.T) {
	lost := fmt.Errorf("patch: %w", types.ErrNoAnswer)
	for name, row := range map[string]struct{ lock, uncordon error }{
		"":                                     {nil, nil},
		"though that is not answered for long": {nil, lost},
		"after a lock write that was lost":     {lost, lost},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				stop := s.run()
				phasesOf["after a dead API"](s)
				stop()
				s.reboot("boot-2")
				s.kube.FailVerb("setlock", row.lock)
				s.kube.SetLock(types.DrainLock{})
				if row.lock == nil {
					s.held("n2")
				}
				s.request(&s.zedagent, deviceOp) // before the API server is asked for anything
				defer s.run()()
				time.Sleep(500 * time.Millisecond)
				s.held("n2")
				s.kube.FailVerb("setlock", nil)
				time.Sleep(time.Minute)
				s.cordoned(true, true) // its Node is not Ready in this boot
				if s.ready(); row.uncordon != nil {
					s.kube.FailVerb("uncordon", row.uncordon)
					time.Sleep(time.Hour)
					s.is(types.DrainStarting, deviceOp) // the API server is not dead, and n2 has the lock
					s.kube.FailVerb("uncordon", nil)
				}
				time.Sleep(30 * time.Second)
				s.cordoned(false, false)
				s.is(types.DrainStarting, deviceOp)
				s.phase(types.PhaseGates, "node n2 drains and has not rebooted yet")
				s.kube.SetLock(types.DrainLock{})
				time.Sleep(30 * time.Second)
				s.cordoned(true, true)
				s.is(types.DrainComplete, deviceOp)
			})
		})
	}
}

func TestTheCordonOfAFormerBootIsUndoneWhileItsDrainWaitsWithoutTheLock(t *testing.T) {
	for name, row := range map[string]struct {
		begins, ends func(*stage)
		why          string
	}{
		"for a cordon that may be a drain without the lock": {
			func(s *stage) { s.cordonedElsewhere(0) },
			func(s *stage) { s.node("n2", types.ConditionTrue) },
			"node n2 is cordoned",
		},
		"for the quorum of etcd": {
			func(s *stage) { s.node("n3", types.ConditionUnknown) },
			func(s *stage) { s.node("n3", types.ConditionTrue) },
			"no quorum: n3 is not",
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				stop := s.run()
				phasesOf["after a dead API"](s)
				stop()
				s.kube.SetLock(types.DrainLock{})
				s.reboot("boot-2")
				row.begins(s)
				s.request(&s.zedagent, deviceOp)
				defer s.run()()
				time.Sleep(time.Minute)
				s.cordoned(true, true)
				s.ready()
				time.Sleep(5 * time.Second)
				s.cordoned(false, false)
				time.Sleep(time.Hour)
				s.is(types.DrainStarting, deviceOp)
				s.phase(types.PhaseGates, row.why)
				row.ends(s)
				time.Sleep(time.Minute)
				s.cordoned(true, true)
				s.is(types.DrainComplete, deviceOp)
				var said []string
				for _, e := range s.kube.Events() {
					if e.Reason == "Uncordoned" {
						said = append(said, e.Message)
					}
				}
				if d := cmp.Diff([]string{"node uncordoned: its drain has not begun, and waits"}, said); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func TestWhenACordonOfAFormerBootIsUndoneAtTheGates(t *testing.T) {
	waits := func(holder string, since time.Duration) func(*facts) {
		return func(f *facts) {
			f.lockLease.Holder, f.gates, f.waiting = holder, "node n2 drains", minus(since)
			f.node.Unschedulable, f.node.CordonedBy = true, &types.Cordon{By: "zedkube"}
		}
	}
	unlocked := func(f *facts) { f.unlocked = "node n3 is cordoned" }
	later := func(f *facts) { f.retry = map[verb]time.Duration{uncordon: f.now + time.Second} }
	for name, row := range map[string]struct {
		f    facts
		verb verb
	}{
		"another node has the lock":                 {calm(types.PhaseGates, waits("n2", 0)), uncordon},
		"and another one may drain without it":      {calm(types.PhaseGates, waits("n2", 0), unlocked), uncordon},
		"the lock is asked for until the next time": {calm(types.PhaseGates, waits("n2", 0), later), enter},
		"which may not be had beside a third one":   {calm(types.PhaseGates, waits("n2", 0), unlocked, later), none},
		"no node has the lock, for a moment":        {calm(types.PhaseGates, waits("", settle-1)), enter},
		"or for longer":                             {calm(types.PhaseGates, waits("", settle)), uncordon},
		"this node has it":                          {calm(types.PhaseGates, waits("n1", time.Hour)), enter},
	} {
		var a action
		if gates(row.f, &a); a.verb != row.verb {
			t.Errorf("%s: %v", name, a.verb)
		}
	}
}
