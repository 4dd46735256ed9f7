//go:build linux

package hosts

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// nextReporter waits for another reporter than m, that has a report.
func (s *stage) nextReporter(t *testing.T, m *player.Member, since time.Time, limit time.Duration) *player.Member {
	t.Helper()
	var next *player.Member
	rig.Within(t, limit-time.Since(since), func() string {
		for _, next = range s.reigns.now() {
			if next != m {
				return ""
			}
		}
		return "nobody follows " + m.Name
	})
	t.Logf("%s follows %s after %s", next.Name, m.Name, time.Since(since).Round(time.Millisecond))
	rig.Until(t, 10*time.Second, func() string {
		if _, ok := next.Watch.Report.Get(types.Global); !ok {
			return next.Name + " leads and reports nothing"
		}
		return ""
	})
	return next
}

// follows waits until m takes part in the election behind the reporter.
func (s *stage) follows(t *testing.T, m, reporter *player.Member) {
	t.Helper()
	rig.Until(t, 30*time.Second, func() string {
		info, _ := m.Watch.Leader.Get(types.Global)
		if !info.InLeaderElection || info.IsStatsLeader || info.LeaderIdentity != reporter.Name {
			return m.Name + " does not follow " + reporter.Name
		}
		if _, ok := m.Watch.Report.Get(types.Global); ok {
			return m.Name + " reports and does not lead"
		}
		return ""
	})
}

func (s *stage) reporter(t *testing.T) *player.Member {
	t.Helper()
	var now []*player.Member
	rig.Within(t, failover, func() string {
		if now = s.reigns.now(); len(now) != 1 {
			return fmt.Sprintf("%d report", len(now))
		}
		return ""
	})
	return now[0]
}

func (s *stage) stoppedHandsOver(t *testing.T) {
	m := s.reporter(t)
	since := time.Now()
	go m.StopProgram() // it takes its time
	next := s.nextReporter(t, m, since, handover)
	m.StopProgram()
	if err := m.StartProgram(); err != nil {
		t.Fatal(err)
	}
	s.follows(t, m, next)
}

// killedAreFollowed kills the reporter's agent so many times.
func (s *stage) killedAreFollowed(t *testing.T, times int) {
	for range times {
		m := s.reporter(t)
		since := time.Now()
		m.KillProgram()
		s.reigns.killed(m)
		next := s.nextReporter(t, m, since, failover)
		if err := m.StartProgram(); err != nil {
			t.Fatal(err)
		}
		s.follows(t, m, next)
		seeds.Count(t, "kills", 1)
	}
}

// indexOf is the index of a member in the fleet.
func (s *stage) indexOf(m *player.Member) int {
	for i, other := range s.Fleet.Members {
		if m == other {
			return i
		}
	}
	return -1
}

// cutReporterFallsSilent pulls the reporter's cable, its API server's and etcd
// member's with it.
func (s *stage) cutReporterFallsSilent(t *testing.T) {
	m := s.reporter(t)
	i := s.indexOf(m)
	since := time.Now()
	if err := s.Cluster.CutNode(i); err != nil {
		t.Fatal(err)
	}
	var silent time.Time
	rig.Within(t, failover, func() string {
		if _, ok := m.Watch.Report.Get(types.Global); ok {
			if now := s.reigns.now(); slices.ContainsFunc(now, func(o *player.Member) bool { return o != m }) {
				t.Fatalf("another leads while the report of %s stands", m.Name)
			}
			return m.Name + " reports without a quorum"
		}
		silent = time.Now()
		return ""
	})
	t.Logf("%s fell silent after %s", m.Name, silent.Sub(since).Round(time.Millisecond))
	next := s.nextReporter(t, m, since, failover)
	if info, _ := m.Watch.Leader.Get(types.Global); info.IsStatsLeader {
		t.Errorf("%s says that it leads", m.Name)
	}
	if err := s.Cluster.HealNode(i); err != nil {
		t.Fatal(err)
	}
	s.follows(t, m, next)
	rig.Until(t, time.Minute, func() string { return s.lacksNow(t) })
}
