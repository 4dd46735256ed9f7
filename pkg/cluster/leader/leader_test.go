package leader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

var t0 = time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	ready := facts{now: t0, eligible: true, identity: "n1", answers: true}
	with := func(f facts, change func(*facts)) facts { change(&f); return f }
	since := t0.Add(-time.Hour)
	running := with(ready, func(f *facts) { f.running, f.runsAs, f.leader, f.leads, f.since = true, "n1", "n1", true, since })
	for _, row := range []struct {
		rule string
		f    facts
		want action
	}{
		{"an eligible node with a name runs", ready, action{start: true, info: types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true}}},
		{"without a name it waits", with(ready, func(f *facts) { f.identity = "" }), action{}},
		{"without an API it waits", with(ready, func(f *facts) { f.answers = false }), action{info: types.KubeLeaderElectInfo{InLeaderElection: true}}},
		{"without the controller's word it does not run", with(ready, func(f *facts) { f.eligible = false }), action{}},
		{"after a failure it waits", with(ready, func(f *facts) { f.next = t0.Add(time.Second) }), action{again: time.Second, info: types.KubeLeaderElectInfo{InLeaderElection: true}}},
		{"a leader says so", running, action{info: types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true, IsStatsLeader: true, LeaderIdentity: "n1"}}},
		{
			"one whose Lease is not seen yet looks again", with(running, func(f *facts) { f.since = time.Time{} }),
			action{again: seenWithin, info: types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true, IsStatsLeader: true, LeaderIdentity: "n1"}},
		},
		{"a silent API ends no election", with(running, func(f *facts) { f.answers = false }), action{info: types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true, IsStatsLeader: true, LeaderIdentity: "n1"}}},
		{"nor does a node table that is being built anew", with(running, func(f *facts) { f.identity = "" }), action{info: types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true, IsStatsLeader: true, LeaderIdentity: "n1"}}},
		{"a lost controller ends it", with(running, func(f *facts) { f.eligible = false }), action{stop: true, info: types.KubeLeaderElectInfo{ElectionRunning: true}}},
		{"a new name ends it", with(running, func(f *facts) { f.identity = "n9" }), action{stop: true, info: types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true}}},
		{"one that is ending leads no more", with(running, func(f *facts) { f.dropped = true }), action{info: types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true}}},
	} {
		t.Run(row.rule, func(t *testing.T) {
			row.want.info.LatestChange = t0
			if row.f.since.Equal(since) && row.want.info.LeaderIdentity != "" {
				row.want.info.LeaderSince = since
			}
			got := decide(row.f)
			if d := cmp.Diff(row.want, got, cmp.AllowUnexported(action{})); d != "" {
				t.Error(d)
			}
			row.f.published, row.f.now = got.info, t0.Add(time.Millisecond)
			if again := decide(row.f); again.info != got.info {
				t.Errorf("the same facts a moment later changed %v to %v", got.info, again.info)
			}
		})
	}
}

func TestANameOfAnotherDeviceIsNoIdentity(t *testing.T) {
	info := types.EdgeNodeInfo{DeviceName: "N_1", DeviceID: uuid.UUID{1}}
	if got := identity(nil, info); got != "n-1" {
		t.Errorf("without nodes: %q", got)
	}
	if got := identity(map[string]types.Node{"n-1": {Name: "n-1", UUID: uuid.UUID{2}.String()}}, info); got != "" {
		t.Errorf("another device's node: %q", got)
	}
	if got := identity(map[string]types.Node{"x": {Name: "x", UUID: info.DeviceID.String()}}, info); got != "x" {
		t.Errorf("own node under another name: %q", got)
	}
}

type stage struct {
	t      *testing.T
	agent  pubsub.Table[types.ZedAgentStatus]
	info   pubsub.Table[types.EdgeNodeInfo]
	nodes  pubsub.Table[types.Node]
	api    pubsub.Table[types.APIStatus]
	out    pubsub.Table[types.KubeLeaderElectInfo]
	kube   *kubetest.Cluster
	log    *test.Hook
	leases pubsub.Table[types.Lease]
}

func story(t *testing.T, tell func(s *stage, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t}
		logger, hook := test.NewNullLogger()
		s.log = hook
		s.kube = &kubetest.Cluster{Nodes: &s.nodes, API: &s.api}
		s.kube.SetFault(kubetest.None)
		_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
		c := &Component{
			Log: logger, Pulse: &loop.Pulse{}, Agent: &s.agent, Info: &s.info, Nodes: &s.nodes, API: &s.api,
			Kube: s.kube, Leader: &s.out, Leases: &s.leases, LeaseName: "stats",
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx) }()
		stop := func() { cancel(); <-done }
		defer stop()
		tell(s, stop)
	})
}

func (s *stage) config(v types.ConfigGetStatus) {
	_ = s.agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: v})
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

func (s *stage) is(want types.KubeLeaderElectInfo) time.Time {
	s.t.Helper()
	synctest.Wait()
	got, _ := s.out.Get(types.Global)
	at := got.LatestChange
	got.LatestChange = time.Time{}
	if got != want {
		s.t.Errorf("got %+v, want %+v", got, want)
	}
	return at
}

var leads = types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true, IsStatsLeader: true, LeaderIdentity: "n1"}

func TestANodeRunsWhileTheControllersWordIsKnown(t *testing.T) {
	story(t, func(s *stage, stop func()) {
		if s.is(types.KubeLeaderElectInfo{}).IsZero() {
			t.Error("no first value")
		}
		for _, good := range []types.ConfigGetStatus{types.ConfigGetSuccess, types.ConfigGetReadSaved} {
			s.config(good)
			at := s.is(leads)
			time.Sleep(time.Hour)
			if later := s.is(leads); !later.Equal(at) {
				t.Error("LatestChange moved by itself")
			}
			for _, bad := range []types.ConfigGetStatus{types.ConfigGetFail, types.ConfigGetTemporaryFail} {
				s.config(bad)
				if s.is(types.KubeLeaderElectInfo{}); s.kube.Leader() != "" {
					t.Error("the lease was not given back")
				}
			}
		}
		s.config(types.ConfigGetSuccess)
		stop()
		if s.kube.Leader() != "" {
			t.Error("the lease was not given back at the end")
		}
		s.is(types.KubeLeaderElectInfo{})
	})
}

func TestAnotherLeaderIsNamed(t *testing.T) {
	story(t, func(s *stage, _ func()) {
		s.kube.SetLeader("n2")
		s.config(types.ConfigGetSuccess)
		s.is(types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true, LeaderIdentity: "n2"})
		s.kube.SetLeader("")
		time.Sleep(2 * time.Second)
		s.is(leads)
	})
}

func TestAnElectionThatEndsIsTriedAgain(t *testing.T) {
	story(t, func(s *stage, _ func()) {
		s.config(types.ConfigGetSuccess)
		s.is(leads)
		s.kube.EndElections(errors.New("lease lost"))
		synctest.Wait()
		s.is(types.KubeLeaderElectInfo{InLeaderElection: true})
		time.Sleep(2 * time.Second)
		s.is(leads)

		s.kube.FailVerb("elect", errors.New("forbidden"))
		s.kube.EndElections(errors.New("lease lost"))
		time.Sleep(time.Hour)
		tries := s.kube.Calls("elect")
		if n := len(tries); n < 50 || n > 90 {
			t.Errorf("%d tries in an hour", n)
		}
		failures := 0
		for _, e := range s.log.AllEntries() {
			if e.Level == logrus.ErrorLevel {
				failures++
			}
		}
		if failures != 3 {
			t.Errorf("%d errors logged, want one for each of the three changes", failures)
		}
		s.kube.FailVerb("elect", nil)
		time.Sleep(time.Minute + time.Second)
		s.is(leads)
	})
}

func TestAnElectionWaitsForANameAndAnAPI(t *testing.T) {
	story(t, func(s *stage, _ func()) {
		_ = s.info.Unpublish(types.Global)
		s.kube.SetFault(kubetest.Refused)
		s.config(types.ConfigGetSuccess)
		time.Sleep(time.Hour)
		_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
		time.Sleep(time.Hour)
		if n := len(s.kube.Calls("elect")); n != 0 {
			t.Errorf("%d tries", n)
		}
		s.is(types.KubeLeaderElectInfo{InLeaderElection: true})
		s.kube.SetFault(kubetest.None)
		time.Sleep(time.Millisecond)
		s.is(leads)
	})
}

func TestTheLeaderIsShownSinceItTookTheLease(t *testing.T) {
	story(t, func(s *stage, stop func()) {
		took := time.Now().Add(-3 * time.Hour).UTC()
		s.config(types.ConfigGetSuccess)
		before, _ := s.out.Get(types.Global)
		if before.LeaderIdentity != "n1" || !before.LeaderSince.IsZero() {
			t.Errorf("before the Lease is seen: %+v", before)
		}
		_ = s.leases.Publish("stats", types.Lease{Name: "stats", Holder: "n1", Acquired: took})
		time.Sleep(seenWithin + time.Millisecond)
		synctest.Wait()
		if got, _ := s.out.Get(types.Global); !got.LeaderSince.Equal(took) || !got.LatestChange.Equal(before.LatestChange) {
			t.Errorf("since %s, want %s; latest change %s, was %s", got.LeaderSince, took, got.LatestChange, before.LatestChange)
		}
		_ = s.leases.Unpublish("stats") // the table begins again
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, _ := s.out.Get(types.Global); !got.LeaderSince.Equal(took) {
			t.Errorf("since %s while the Lease is not seen, want %s", got.LeaderSince, took)
		}
	})
}
