package clusterinfo

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// counting counts the publications that changed something.
type counting struct {
	pubsub.Table[types.KubeClusterInfo]
	bell  chan struct{}
	rings int
}

func (c *counting) Publish(key string, v types.KubeClusterInfo) error {
	err := c.Table.Publish(key, v)
	select {
	case <-c.bell:
		c.rings++
	default:
	}
	return err
}

type story struct {
	*testing.T
	leader  pubsub.Table[types.KubeLeaderElectInfo]
	nodes   pubsub.Table[types.Node]
	appPods pubsub.Table[types.Pod]
	allPods pubsub.Table[types.Pod]
	api     pubsub.Table[types.APIStatus]
	report  counting
	logs    *logtest.Hook
}

// tell runs a component in fake time while play changes its inputs.
func tell(t *testing.T, setup, play func(*story)) {
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		s := &story{T: t, logs: hook}
		s.report.bell = make(chan struct{}, 1)
		s.report.Notify(s.report.bell)
		setup(s)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		c := &Component{
			Log: log, Pulse: &loop.Pulse{}, Leader: &s.leader, Nodes: &s.nodes, AppPods: &s.appPods, AllPods: &s.allPods,
			API: &s.api, Report: &s.report,
		}
		go func() { defer close(done); c.Run(ctx) }()
		synctest.Wait()
		play(s)
		cancel()
		<-done
		if _, ok := s.report.Get(types.Global); ok {
			s.Error("the report outlives its reporter")
		}
	})
}

// leads makes this node the leader of a cluster of one node that is in view.
func leads(s *story) {
	_ = s.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: true})
	_ = s.nodes.Publish("n1", types.Node{Name: "n1", Ready: types.ConditionTrue})
	_ = s.api.Publish(types.Global, types.APIStatus{Synced: true, AllPods: true})
}

func (s *story) pod(name string) {
	p := appPod(name)
	_ = s.appPods.Publish(p.Key(), p)
	synctest.Wait()
}

// pods is how many pods the published report names, -1 without a report.
func (s *story) pods() int {
	synctest.Wait()
	r, ok := s.report.Get(types.Global)
	if !ok {
		return -1
	}
	return len(r.AppPods)
}

func (s *story) expect(want int, when string) {
	s.Helper()
	if got := s.pods(); got != want {
		s.Errorf("%s: got %d pods, want %d", when, got, want)
	}
}

func TestReportFollowsLeadership(t *testing.T) {
	tell(t, func(s *story) {
		_ = s.report.Table.Publish(types.Global, types.KubeClusterInfo{Nodes: []types.KubeNodeInfo{{Name: "former"}}})
	}, func(s *story) {
		s.expect(-1, "not the leader: what a former run left")
		leads(s)
		s.expect(0, "leader")
		_ = s.leader.Publish(types.Global, types.KubeLeaderElectInfo{})
		s.expect(-1, "leader no more, at once")
	})
}

func TestFirstChangeIsReportedAtOnceAndTheRestOncePerSecond(t *testing.T) {
	tell(t, leads, func(s *story) {
		time.Sleep(90 * time.Second) // not at a multiple of period, when it looks anyway
		before := s.report.rings
		s.pod("a")
		s.expect(1, "after a quiet second")
		for i := range 50 {
			time.Sleep(10 * time.Millisecond)
			s.pod(fmt.Sprintf("b%02d", i))
		}
		s.expect(1, "within the second")
		time.Sleep(pause)
		s.expect(51, "a second later")
		if n := s.report.rings - before; n != 2 {
			s.Errorf("%d publications for one burst", n)
		}
	})
}

func TestUnchangedClusterPublishesNothing(t *testing.T) {
	tell(t, leads, func(s *story) {
		before := s.report.rings
		for i := range 100 {
			_ = s.nodes.Publish("n1", types.Node{Name: "n1", Ready: types.ConditionTrue, ResourceVersion: fmt.Sprint(i)})
			time.Sleep(5 * time.Second)
		}
		if n := s.report.rings - before; n != 0 {
			s.Errorf("%d publications of an unchanged cluster", n)
		}
	})
}

func TestReportStandsWhileTheApiIsSilent(t *testing.T) {
	tell(t, leads, func(s *story) {
		time.Sleep(90 * time.Second)
		s.pod("a")
		before, _ := s.report.Get(types.Global)
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
		_ = s.nodes.Unpublish("n1")
		_ = s.appPods.Unpublish("eve-kube-app/a")
		time.Sleep(time.Hour)
		after, _ := s.report.Get(types.Global)
		if d := cmp.Diff(before, after); d != "" {
			s.Error("want -, got +\n" + d)
		}
		_ = s.api.Publish(types.Global, types.APIStatus{Synced: true, AllPods: true})
		s.expect(0, "the API answers again")
	})
}

func TestCutIsLoggedWhenItBeginsAndWhenItEnds(t *testing.T) {
	tell(t, leads, func(s *story) {
		for name, n := range huge().nodes {
			_ = s.nodes.Publish(name, n)
		}
		time.Sleep(time.Minute)
		for i := range 3 {
			s.pod(fmt.Sprint(i))
			time.Sleep(time.Minute)
		}
		for name := range huge().nodes {
			_ = s.nodes.Unpublish(name)
		}
		time.Sleep(time.Minute)
		var cuts []logrus.Level
		for _, e := range s.logs.AllEntries() {
			if _, ok := e.Data["namespaces"]; ok || e.Message == "the cluster's report is whole again" {
				cuts = append(cuts, e.Level)
			}
		}
		if d := cmp.Diff([]logrus.Level{logrus.WarnLevel, logrus.InfoLevel}, cuts); d != "" {
			s.Error("want -, got +\n" + d)
		}
	})
}
