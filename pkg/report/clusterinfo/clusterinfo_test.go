package clusterinfo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/loop"
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
	leader     pubsub.Table[types.KubeLeaderElectInfo]
	info       pubsub.Table[types.EdgeNodeInfo]
	membership pubsub.Table[types.ClusterMembership]
	members    pubsub.Table[types.ClusterMembers]
	tables     pubsub.Table[types.TableStatus]
	nodes      pubsub.Table[types.Node]
	appPods    pubsub.Table[types.Pod]
	vmis       pubsub.Table[types.VMI]
	counts     pubsub.Table[types.KubePodNameSpaceInfo]
	claims     pubsub.Table[types.Claim]
	volumes    pubsub.Table[types.Volume]
	disks      pubsub.Table[types.LonghornNode]
	daemons    pubsub.Table[types.DaemonSet]
	sections   pubsub.Table[types.ReportSection]
	report     counting
	published  pubsub.Writer[types.KubeClusterInfo] // in place of report; nil for not
	bus        *pubsub.Bus                          // of published
	health     pubsub.Table[types.KubeReportHealth]
	refuses    *refusing // in place of health; nil for not
	former     types.FormerReports
	atEnd      func() // nil for nothing
	logs       *logtest.Hook
}

// tell runs a component in fake time while play changes its inputs.
func tell(t *testing.T, setup, play func(*story)) { tellWith(t, nil, setup, play) }

// tellWith does it with this table of pod counts, nil for the story's own.
func tellWith(t *testing.T, counts pubsub.Reader[types.KubePodNameSpaceInfo], setup, play func(*story)) {
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		s := &story{T: t, logs: hook}
		s.report.bell = make(chan struct{}, 1)
		s.report.Notify(s.report.bell)
		if counts == nil {
			counts = &s.counts
		}
		setup(s)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		c := &Component{
			Log: log, Pulse: &loop.Pulse{}, Leader: &s.leader, Info: &s.info, Membership: &s.membership, Members: &s.members,
			Tables: &s.tables, Nodes: &s.nodes, AppPods: &s.appPods, VMIs: &s.vmis, PodCounts: counts, Claims: &s.claims,
			Volumes: &s.volumes, Disks: &s.disks, Daemons: &s.daemons, Sections: &s.sections, Report: &s.report, Health: &s.health,
			Former: s.former,
		}
		if s.published != nil {
			c.Report = s.published
		}
		if s.refuses != nil {
			c.Health = s.refuses
		}
		go func() { defer close(done); c.Run(ctx) }()
		synctest.Wait()
		play(s)
		cancel()
		<-done
		if _, ok := s.report.Get(types.Global); ok {
			s.Error("the report outlives its reporter")
		}
		if s.atEnd != nil {
			s.atEnd()
		}
	})
}

// leads makes this node the leader of a cluster of one node that is in view.
func leads(s *story) {
	_ = s.nodes.Publish("n1", types.Node{Name: "n1", Ready: types.ConditionTrue})
	s.seen(true)
	_ = s.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: true}) // last: it may look after each of them
}

// seen makes all tables whole, or not.
func (s *story) seen(whole bool) {
	for name := range all() {
		s.sees(name, whole)
	}
}

func (s *story) sees(table string, whole bool) {
	status := types.TableStatus{Complete: whole, Since: time.Now()}
	if !whole {
		status.Why = "the API server is silent"
	}
	_ = s.tables.Publish(table, status)
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
		time.Sleep(minPause)
		s.expect(51, "a second later")
		if n := s.report.rings - before; n != 2 {
			s.Errorf("%d publications for one burst", n)
		}
	})
}

func TestUnchangedClusterPublishesNothing(t *testing.T) {
	tell(t, leads, func(s *story) {
		time.Sleep(time.Second)
		before, health := s.report.rings, s.told()
		for i := range 100 {
			_ = s.nodes.Publish("n1", types.Node{Name: "n1", Ready: types.ConditionTrue, ResourceVersion: fmt.Sprint(i)})
			time.Sleep(5 * time.Second)
		}
		if n := s.report.rings - before; n != 0 {
			s.Errorf("%d publications of an unchanged cluster", n)
		}
		if d := cmp.Diff(health, s.told()); d != "" {
			s.Error("its health is told anew: want -, got +\n" + d)
		}
	})
}

func (s *story) told() types.KubeReportHealth {
	synctest.Wait()
	h, _ := s.health.Get(types.Global)
	return h
}

func TestWhatOtherReportsAreWorthIsStillSaidAtTheEnd(t *testing.T) {
	var ended types.KubeReportHealth
	tell(t, func(s *story) {
		leads(s)
		_ = s.sections.Publish(types.SectionServices, types.ReportSection{Name: types.SectionServices, Known: true})
		s.atEnd = func() { ended, _ = s.health.Get(types.Global) }
	}, func(s *story) { time.Sleep(time.Minute) })
	want := types.KubeReportHealth{Sections: []types.ReportSection{{Name: types.SectionServices, Known: true}}}
	if d := cmp.Diff(want, ended); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

func TestReportStandsWhileTheAPIIsSilentAndSaysHowOldItIs(t *testing.T) {
	tell(t, leads, func(s *story) {
		time.Sleep(90 * time.Second)
		s.pod("a")
		changed := time.Now().UTC()
		time.Sleep(10 * time.Second)
		synctest.Wait() // a step that has begun reads one table after the other
		before, _ := s.report.Get(types.Global)
		silent := time.Now().UTC()
		s.seen(false)
		_ = s.nodes.Unpublish("n1")
		_ = s.appPods.Unpublish("eve-kube-app/a")
		time.Sleep(time.Hour)
		after, _ := s.report.Get(types.Global)
		if d := cmp.Diff(before, after); d != "" {
			s.Error("want -, got +\n" + d)
		}
		for _, section := range s.told().Sections {
			if !section.StaleSince.Equal(silent) || section.Why != "the API server is silent" {
				s.Errorf("it says %+v", section)
			}
			if section.Name == types.SectionAppPods && (!section.Updated.Equal(changed) || section.Total != 1 || !section.Known) {
				s.Errorf("it says %+v, changed at %v", section, changed)
			}
		}
		s.seen(true)
		time.Sleep(minPause) // a step may have begun with the first table
		s.expect(0, "the API answers again")
		for _, section := range s.told().Sections {
			if !section.StaleSince.IsZero() {
				s.Errorf("it says %+v", section)
			}
		}
	})
}

func TestNothingIsCalledTrueBeforeItIsReported(t *testing.T) {
	tell(t, leads, func(s *story) {
		time.Sleep(90 * time.Second)
		s.sees(types.TableAppPods, false)
		synctest.Wait()
		_ = s.appPods.Publish("eve-kube-app/a", appPod("a"))
		s.expect(0, "the list is not whole")
		s.sees(types.TableAppPods, true)
		time.Sleep(minPause)
		s.expect(1, "it is whole")
	})
}

func TestAFollowerTellsOnlyOfItsOwnReports(t *testing.T) {
	services := types.ReportSection{Name: types.SectionServices, Known: true}
	tell(t, func(s *story) {
		_ = s.sections.Publish(services.Name, services)
		_ = s.health.Publish(types.Global, types.KubeReportHealth{Reports: true, Sections: []types.ReportSection{{Name: "former"}}})
	}, func(s *story) {
		if d := cmp.Diff(types.KubeReportHealth{Sections: []types.ReportSection{services}}, s.told()); d != "" {
			s.Error("want -, got +\n" + d)
		}
		leads(s)
		time.Sleep(time.Second)
		if h := s.told(); !h.Reports || len(h.Sections) != len(made())+1 {
			s.Errorf("a leader tells %+v", h)
		}
	})
}

func TestAFollowerLogsOnceThatASectionIsOld(t *testing.T) {
	services := types.ReportSection{Name: types.SectionServices, Known: true, StaleSince: time.Unix(1e9, 0), Why: "the API server says no"}
	tell(t, func(s *story) { _ = s.sections.Publish(services.Name, services) }, func(s *story) {
		for i := range 5 {
			s.sees(types.TableNodes, i%2 == 0)
			time.Sleep(time.Minute)
		}
		services.StaleSince = time.Time{}
		_ = s.sections.Publish(services.Name, services)
		time.Sleep(time.Minute)
		var said []string
		for _, e := range s.logs.AllEntries() {
			said = append(said, e.Message)
		}
		want := []string{"a section of the report is stale: the API server says no", "the section of the report is current again"}
		if d := cmp.Diff(want, said); d != "" {
			s.Error("want -, got +\n" + d)
		}
	})
}

func TestAFormerReportStandsUntilANewOneCanBeMade(t *testing.T) {
	tell(t, func(s *story) {
		_ = s.report.Table.Publish(types.Global, types.KubeClusterInfo{
			Nodes: []types.KubeNodeInfo{{Name: "n1"}}, Storage: types.KubeStorageInfo{Health: types.ServiceStatusHealthy, Volumes: []types.KubeVolumeInfo{{Name: "v"}}},
		})
		leads(s)
		s.sees(types.TableClaims, false)
		s.sees(types.TableLonghornNodes, false)
	}, func(s *story) {
		time.Sleep(time.Minute)
		s.expect(0, "the pods are known")
		r, _ := s.report.Get(types.Global)
		if len(r.Storage.Volumes) != 1 || r.Storage.Health != types.ServiceStatusHealthy {
			s.Errorf("of storage it says %+v", r.Storage)
		}
		for _, section := range s.told().Sections {
			unknown := slices.Contains([]string{types.SectionStorage, types.SectionAllocated, types.SectionStorageHealth}, section.Name)
			if section.Known == unknown {
				s.Errorf("it says %+v", section)
			}
		}
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
			if strings.HasPrefix(e.Message, "the report is truncated") || e.Message == "the report is complete again" {
				cuts = append(cuts, e.Level)
			}
		}
		if d := cmp.Diff([]logrus.Level{logrus.WarnLevel, logrus.InfoLevel}, cuts); d != "" {
			s.Error("want -, got +\n" + d)
		}
	})
}
