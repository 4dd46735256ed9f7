package members

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// removed checks that n3 alone is gone, once and with an event, and nothing is left.
func (s *stage) removed() {
	s.Helper()
	if s.there("n3") || !s.there("n1") || !s.there("n2") {
		s.Error("not the stale one alone is removed")
	}
	if lock := s.cluster.Lock(); lock.Holder != "" {
		s.Errorf("the lock is left %+v", lock)
	}
	if n := len(s.cluster.Events()); n != 1 {
		s.Errorf("%d events", n)
	}
}

func TestALostAnswerLeavesNothingBehind(t *testing.T) {
	for _, verb := range []string{"setlock", "deletenode", "freelock"} {
		t.Run(verb, func(t *testing.T) {
			play(t, func(s *stage) {
				s.cluster.LoseAnswer(verb)
				s.start("n1")
				s.after(2 * time.Minute)
				s.removed()
				if n := len(s.cluster.Calls("deletenode")); n != 1 {
					s.Errorf("%d deletions", n)
				}
			})
		})
	}
}

func TestALockThatCouldNotBeGivenBackIsGivenBackLater(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.FailVerb("freelock", errors.New("no"))
		a := s.start("n1")
		s.after(time.Minute)
		if s.there("n3") || s.cluster.Lock().Holder != "n1" {
			s.Fatal("it did not come to that")
		}
		if m := s.says(a); m.Why == "" {
			s.Error("nobody is told that the lock stays")
		}
		s.cluster.FailVerb("freelock", nil)
		s.after(2 * time.Minute)
		s.removed()
	})
}

// removal is that of n3 by an operator on n1.
func (s *stage) removal(kube Remover, why func() string) Removal {
	own, _ := s.nodes.Get("n1")
	dead, _ := s.nodes.Get("n3")
	return Removal{Remover: kube, Own: own, Node: dead, Late: true, Judge: func(context.Context, []types.Node) (string, error) { return why(), nil }}
}

// command is "zedkube nodes remove n3" on n1, beside the agent there.
func (s *stage) command(kube Remover) error {
	r := s.removal(kube, func() string { return "" })
	return s.cluster.Repair(s.Context(), "n1", func(ctx context.Context) error { _, _, err := r.Do(ctx); return err })
}

// noFree is the cluster as a command sees it that is killed before it gives the lock back.
type noFree struct{ *kubetest.Cluster }

func (noFree) FreeDrainLock(context.Context, types.DrainLock) error { return types.ErrNoAnswer }

func TestALockThatACommandLeftBehindIsFreed(t *testing.T) {
	play(t, func(s *stage) {
		s.start("n1", func(a *agent) { a.configure(uuid.Nil, "n1", "n2", "n3", "n4") })
		s.after(time.Minute)
		if err := s.command(noFree{s.cluster}); err == nil || s.there("n3") || s.cluster.Lock().Holder != "n1" {
			s.Fatalf("it did not come to that: %v", err)
		}
		s.after(period)
		if lock := s.cluster.Lock(); lock.Holder != "" {
			s.Errorf("the lock is left %+v", lock)
		}
	})
}

func TestTheLockOfACommandUnderWayIsNotTouched(t *testing.T) {
	play(t, func(s *stage) {
		done := make(chan error, 1)
		go func() { done <- s.command(&slow{Cluster: s.cluster, stays: 9 * time.Second}) }()
		for len(s.cluster.Calls("setlock")) == 0 {
			s.after(100 * time.Millisecond)
		}
		s.start("n1")
		for s.cluster.Repairer() != "" {
			if lock := s.cluster.Lock(); s.there("n3") && lock.Task != types.TaskMembers {
				s.Errorf("while the removal is under way the lock is %+v", lock)
			}
			s.after(500 * time.Millisecond)
		}
		if err := <-done; err != nil {
			s.Error(err)
		}
		s.removed()
	})
}

func TestALockIsRememberedAlsoWhereSomebodyElseWasFaster(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.FailVerb("deletenode", types.ErrConflict)
		s.cluster.FailVerb("freelock", errors.New("no"))
		a := s.start("n1")
		s.after(5 * time.Second)
		a.configure(uuid.Nil, "n1", "n2", "n3")
		s.cluster.FailVerb("freelock", nil)
		s.after(time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "" {
			s.Errorf("the lock is left %+v", lock)
		}
	})
}

func TestALockThatSomebodyTookAwayIsNotTouched(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		s.after(2 * time.Second)
		s.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "boot-n2"}) // an operator freed it
		s.after(10 * time.Second)
		if lock := s.cluster.Lock(); lock.Holder != "n2" {
			s.Errorf("the lock is now %+v", lock)
		}
		if m := s.says(a); !strings.Contains(m.Why, "drain lock") || !s.there("n3") {
			s.Errorf("says %+v", m)
		}
		s.cluster.SetLock(types.DrainLock{})
		s.after(2 * time.Minute)
		s.removed()
	})
}

func TestASilenceAtAnyTimeOfARemovalOnlyPutsItOff(t *testing.T) {
	for _, fault := range []kubetest.Fault{kubetest.Refused, kubetest.Hung} {
		for _, lasts := range []time.Duration{time.Second, 9 * time.Second, 2 * time.Minute} {
			for at := time.Duration(0); at < 6*time.Second; at += 500 * time.Millisecond {
				play(t, func(s *stage) {
					s.cluster.SetLatency(200 * time.Millisecond)
					s.start("n1")
					s.start("n2")
					s.after(at)
					s.cluster.SetFault(fault)
					s.after(lasts)
					s.cluster.SetFault(kubetest.None)
					s.after(4 * time.Minute)
					if s.there("n3") || s.cluster.Lock().Holder != "" {
						s.Errorf("fault %d after %s for %s: there %v, lock %+v", fault, at, lasts, s.there("n3"), s.cluster.Lock())
					}
				})
			}
		}
	}
}

func TestWhoLosesTheRightStopsAndGivesTheLockBack(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		s.after(2 * time.Second)
		s.cluster.SetRepairer("n2", time.Minute)
		s.cluster.SetRenewed("n2", time.Now()) // so that the removal would last longer
		s.after(5 * time.Second)
		if m := s.says(a); !strings.Contains(m.Why, "the last attempt failed") {
			s.Errorf("says %q", m.Why)
		}
		s.after(30 * time.Second)
		if !s.there("n3") || s.cluster.Lock().Holder != "" {
			s.Errorf("there %v, lock %+v", s.there("n3"), s.cluster.Lock())
		}
		if m := s.says(a); m.Why != "another node is repairing the cluster" {
			s.Errorf("says %q", m.Why)
		}
	})
}

// slow is a cluster whose Nodes stay for a while after their deletion, as k3s
// keeps them until etcd has let the member go.
type slow struct {
	*kubetest.Cluster
	stays time.Duration
	gone  time.Time
}

func (s *slow) DeleteNode(ctx context.Context, node types.Node) error {
	switch {
	case s.gone.IsZero():
		s.gone = time.Now().Add(s.stays)
		fallthrough
	case time.Now().Before(s.gone):
		time.AfterFunc(time.Until(s.gone), func() { _ = s.Cluster.DeleteNode(context.WithoutCancel(ctx), node) })
		return nil
	}
	return s.Cluster.DeleteNode(ctx, node)
}

func TestTheLockIsHeldUntilTheDeletedNodeIsGone(t *testing.T) {
	play(t, func(s *stage) {
		s.start("n1", func(a *agent) { a.kube = &slow{Cluster: s.cluster, stays: 8 * time.Second} })
		s.after(10 * time.Second)
		if !s.there("n3") || s.cluster.Lock().Task != types.TaskMembers {
			s.Errorf("while etcd lets the member go the lock is %+v", s.cluster.Lock())
		}
		s.after(20 * time.Second)
		s.removed()
	})
}

func TestANodeThatStaysAfterItsDeletionIsToldOf(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1", func(a *agent) { a.kube = &slow{Cluster: s.cluster, stays: time.Hour} })
		s.after(20 * time.Second)
		if m := s.says(a); !strings.Contains(m.Why, "until its member has left etcd") || m.Stale[0].Why != m.Why {
			s.Errorf("says %+v", m)
		}
		if s.cluster.Lock().Holder != "" || len(s.cluster.Events()) != 0 {
			s.Errorf("lock %+v, events %v", s.cluster.Lock(), s.cluster.Events())
		}
	})
}

func TestAStaleNodeThatStaysKeepsItsLock(t *testing.T) {
	for _, task := range []string{"", types.TaskK3s, types.TaskK3sChange, "of a later agent"} {
		play(t, func(s *stage) {
			s.cluster.SetLock(types.DrainLock{Holder: "n3", BootID: "boot-n3", Task: task, Volumes: map[string]int{"v": 2}})
			asked := 0
			_, why, err := s.removal(s.cluster, func() string {
				if asked++; asked == 1 {
					return ""
				}
				return "it is back"
			}).Do(s.Context())
			now := s.cluster.Lock()
			if why != "it is back" || err != nil || len(s.cluster.Calls("setlock")) != 2 || now.Holder != "n3" || now.Task != task || now.BootID != "boot-n3" || now.Volumes["v"] != 2 {
				s.Errorf("task %q: %q, %v, lock %+v", task, why, err, now)
			}
		})
	}
}

func TestADrainThatBeginsDuringARemovalWaits(t *testing.T) {
	for _, name := range []string{"n1", "n2"} {
		play(t, func(s *stage) {
			old := s.cluster.Lock() // what a drain has read
			s.start("n1")
			s.after(2 * time.Second)
			drain := types.DrainLock{Holder: name, BootID: "boot-" + name, Version: old.Version}
			if _, err := s.cluster.SetDrainLock(s.Context(), drain); !errors.Is(err, types.ErrConflict) {
				s.Errorf("the drain of %s takes the lock: %v", name, err)
			}
			s.after(time.Minute)
			s.removed()
		})
	}
}

func TestListsThatFlipRemoveNothingTwoNodesDisagreeOf(t *testing.T) {
	play(t, func(s *stage) {
		a := s.start("n1")
		for range 100 {
			a.configure(uuid.Nil, "n1", "n2", "n3")
			s.after(2 * time.Second)
			a.configure(uuid.Nil, "n1", "n2", "n4")
			s.after(2 * time.Second)
		}
		if !s.there("n3") {
			s.Error("it was removed on a word that did not last")
		}
		s.after(2 * time.Minute)
		s.removed()
	})
}

func TestWhatWaitsForLongIsLookedAtOnceAMinute(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "boot-n2"})
		s.start("n1")
		s.after(time.Hour)
		if n := len(s.cluster.Calls("repair")); n > 65 {
			s.Errorf("%d tries in an hour", n)
		}
	})
}
