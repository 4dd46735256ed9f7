//go:build linux

package applogs

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

// killPoints lets agents, kubelets and cables be lost for a moment, and the
// control plane of a host once.
func (s *stage) killPoints(t *testing.T, n int) {
	for i := range n {
		t.Logf("%s: %s", time.Now().Format(rig.Clock), s.point(t, i%3))
		rig.Pause(t, time.Duration(s.rand.IntN(1500))*time.Millisecond)
	}
	began := time.Now()
	s.Cluster.StopControlPlane(1)
	rig.Pause(t, 3*time.Second)
	if err := s.Cluster.StartControlPlane(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s had no API server for %s", s.Name(1), rig.Since(began))
	s.claims.agent(0, false)
	s.Fleet.Members[0].StopProgram()
	s.startAgent(t, 0)
	s.rests(t)
}

// rests: nothing is fenced, each application has one pod, whose node alone claims
// it, and all that was printed is told.
func (s *stage) rests(t *testing.T) {
	t.Helper()
	for i := range s.Fleet.Members {
		rig.Until(t, 60*time.Second, func() string {
			if node := s.node(t, i); node == nil || isFenced(node) {
				return s.Name(i) + " is fenced"
			}
			return ""
		})
	}
	for _, a := range s.apps {
		rig.Until(t, 60*time.Second, func() string { return cmp.Or(s.runsOn(t, a, 0, 1, 2), s.isClaimed(t, a)) })
	}
	s.isTold(t, 60*time.Second)
	for _, a := range s.apps {
		s.allIsWell(t, a)
	}
}

// isClaimed says what is wrong with the claims of an application that has one
// pod, "" for nothing.
func (s *stage) isClaimed(t *testing.T, a *app) string {
	_, at, what := s.onlyPod(t, a)
	if what != "" {
		return what
	}
	for i := range s.Fleet.Members {
		status, _ := told[types.ENClusterAppStatus](s, i, "ENClusterAppStatus", a)
		if status.ScheduledOnThisNode != (i == at) {
			return fmt.Sprintf("%s runs on %s; %s says %+v", a.cfg.DisplayName, s.Name(at), s.Name(i), status)
		}
	}
	return ""
}

// point is one loss of a kind, shorter than the cluster takes to notice.
func (s *stage) point(t *testing.T, kind int) string {
	t.Helper()
	i := s.rand.IntN(3)
	short := func(most int) { rig.Pause(t, time.Duration(s.rand.IntN(most))*time.Millisecond) }
	agent := func() {
		s.killAgent(i)
		short(800)
		s.startAgent(t, i)
	}
	what := ""
	switch kind {
	case 0:
		agent()
		return "the agent of " + s.Name(i) + " is killed"
	case 1:
		what = "the kubelet of " + s.Name(i) + " is stopped"
		s.Cluster.StopKubelet(i)
		defer func() {
			if err := s.Cluster.StartKubelet(i); err != nil {
				t.Error(err)
			}
		}()
	case 2:
		what = s.Name(i) + " is cut"
		s.cut(t, i)
		defer s.heal(t, i)
	}
	short(1500)
	if s.rand.IntN(2) == 0 {
		what += ", and its agent is killed"
		agent()
	}
	short(1500)
	return what
}
