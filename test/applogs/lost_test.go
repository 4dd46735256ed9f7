//go:build linux

package applogs

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
)

// scheduled is how long after its node's Ready condition turned Unknown an
// application may be without a replacement that has a node, on a quiet machine.
const scheduled = 60 * time.Second

// backWithin is how long a node may take to be in service again. A kubelet that
// was without an API server asks for its pods again up to a minute later, and only
// then stops what was replaced.
const backWithin = 2 * time.Minute

// harass kills an agent again and again at random moments, until stop is called.
func (s *stage) harass(t *testing.T, i int) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	kills := 0
	rng := seeds.Split(s.rand)
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second + time.Duration(rng.Int64N(int64(4*time.Second)))):
			}
			s.killAgent(i)
			kills++
			time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
			s.startAgent(t, i)
		}
	})
	return func() int { cancel(); done.Wait(); return kills }
}

// isLost waits until the cluster hears no more of a node, and returns since when.
func (s *stage) isLost(t *testing.T, i int) time.Time {
	t.Helper()
	var ready corev1.NodeCondition
	t.Logf("%s is Unknown after %s", s.Name(i), rig.Until(t, 40*time.Second, func() string {
		if ready = readiness(s.node(t, i)); ready.Status != corev1.ConditionUnknown {
			return s.Name(i) + " is " + string(ready.Status)
		}
		return ""
	}))
	return ready.LastTransitionTime.Time
}

// isReplaced waits until a copy of an application has a node other than the lost
// one, which is Unknown since at.
func (s *stage) isReplaced(t *testing.T, a *app, lost int, at time.Time) {
	t.Helper()
	rig.Until(t, scheduled, func() string {
		for _, p := range s.pods(t, a) {
			if p.DeletionTimestamp != nil || p.Spec.NodeName == "" || p.Spec.NodeName == s.Name(lost) {
				continue
			}
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
					if took := c.LastTransitionTime.Sub(at); took > rig.Patience*scheduled {
						t.Errorf("the replacement has a node %s after its node was Unknown", took)
					}
					return ""
				}
			}
		}
		return "no replacement: " + describe(s.pods(t, a))
	})
	t.Logf("the replacement of %s has a node %s after its node was Unknown", a.cfg.DisplayName, rig.Since(at))
}

// isTakenAway waits until a lost node is fenced and an application's old pod is gone.
func (s *stage) isTakenAway(t *testing.T, a *app, lost int, at time.Time) {
	t.Helper()
	rig.Until(t, 60*time.Second, func() string {
		if node := s.node(t, lost); node == nil || !isFenced(node) {
			return s.Name(lost) + " is not fenced"
		}
		return ""
	})
	t.Logf("%s is fenced %s after it was Unknown", s.Name(lost), rig.Since(at))
	rig.Until(t, 60*time.Second, func() string { return s.runsOn(t, a, 0, 1, 2) })
	t.Logf("the old pod is gone and the new one runs %s after it was Unknown", rig.Since(at))
}

// isBack waits until a node is ready and in service, and returns since when.
func (s *stage) isBack(t *testing.T, i int) time.Time {
	t.Helper()
	began := time.Now()
	rig.Within(t, backWithin, func() string {
		if node := s.node(t, i); readiness(node).Status != corev1.ConditionTrue {
			return s.Name(i) + " is not ready"
		}
		return ""
	})
	ready := rig.Since(began)
	rig.Within(t, backWithin, func() string {
		if node := s.node(t, i); node == nil || isFenced(node) {
			return s.Name(i) + " is still fenced"
		}
		return ""
	})
	t.Logf("%s is ready after %s, in service after %s", s.Name(i), ready, rig.Since(began))
	return time.Now()
}

// where waits until an application has one pod, and returns its name and on which device it is.
func (s *stage) where(t *testing.T, a *app) (name string, on int) {
	t.Helper()
	rig.Until(t, 60*time.Second, func() (what string) {
		name, on, what = s.onlyPod(t, a)
		return what
	})
	return name, on
}

// onlyPod is the name of the one pod of an application, and on which device it is; what says why there is none.
func (s *stage) onlyPod(t *testing.T, a *app) (name string, on int, what string) {
	pods := s.pods(t, a)
	for i := range s.Fleet.Members {
		if len(pods) == 1 && pods[0].Spec.NodeName == s.Name(i) {
			return pods[0].Name, i, ""
		}
	}
	return "", 0, fmt.Sprintf("%s has the pods %s", a.cfg.DisplayName, describe(pods))
}

// hostIsKilled: the copies elsewhere are told of from their first line, and when
// the host is back nothing of the old ones is told again.
func (s *stage) hostIsKilled(t *testing.T) {
	a := s.apps["mover"]
	_, lost := s.where(t, a)
	stop := s.harass(t, (lost+1)%3)
	s.kill(t, lost)
	at := s.isLost(t, lost)
	// Nobody calls a node gone whose witnesses are gone themselves.
	t.Logf("the agent of %s was killed %d times meanwhile", s.Name((lost+1)%3), stop())
	s.isReplaced(t, a, lost, at)
	s.isTakenAway(t, a, lost, at)
	told := s.books[lost].count(a)
	s.bootNode(t, lost)
	s.isBack(t, lost)
	s.isTold(t, 60*time.Second)
	if n := s.books[lost].count(a); n != told {
		t.Errorf("%d lines of what was there before are told again", n-told)
	}
	s.allIsWell(t, a)
}

// nodeIsCut: the copy there goes on alone, and stops before the node is in service
// again.
func (s *stage) nodeIsCut(t *testing.T, atLeast time.Duration) {
	a := s.apps["cutoff"]
	old, lost := s.where(t, a)
	began := time.Now()
	stop := s.harass(t, (lost+1)%3)
	s.cut(t, lost)
	at := s.isLost(t, lost)
	t.Logf("the agent of %s was killed %d times meanwhile", s.Name((lost+1)%3), stop())
	s.isReplaced(t, a, lost, at)
	s.isTakenAway(t, a, lost, at)
	rig.Pause(t, max(0, atLeast-time.Since(began)))
	if last, _ := s.beat(a, lost, old); time.Since(last) > alive {
		t.Errorf("on the cut node the old copy ended %s ago", rig.Since(last))
	}
	t.Logf("the cable is out for %s", rig.Since(began))
	s.heal(t, lost)
	healed := time.Now()
	back := s.isBack(t, lost)
	rig.Pause(t, 2*time.Second)
	last, _ := s.beat(a, lost, old)
	t.Logf("the old copy stopped %s after the cable was back, %s before the node was in service", last.Sub(healed).Round(time.Millisecond), back.Sub(last).Round(time.Millisecond))
	if last.After(back) {
		t.Error("the old copy went on when the node was in service again")
	}
	s.isTold(t, 60*time.Second)
	s.allIsWell(t, a)
	of := source{a.key(), "app"}
	if told := s.books[lost].latest(of); last.Sub(told) > 2*time.Second && !s.books[lost].closed(of, told) {
		t.Errorf("what the old copy printed from %s to %s is neither told nor marked", told.Format(rig.Clock), last.Format(rig.Clock))
	}
}
