package clusterinfo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestAFormerReportIsNotCalledTrueByWhatIsSeenSince(t *testing.T) {
	tell(t, func(s *story) {
		_ = s.report.Table.Publish(types.Global, types.KubeClusterInfo{AppPods: []types.KubePodInfo{{Name: "former"}}})
		leads(s)
		s.sees(types.TableNodes, false)
	}, func(s *story) {
		began := time.Now()
		time.Sleep(time.Hour)
		s.expect(1, "the nodes are not known")
		for _, section := range s.told().Sections {
			if section.Known || section.StaleSince.IsZero() || section.StaleSince.After(began) || section.Why == "" {
				s.Errorf("of what is not reported it says %+v", section)
			}
		}
		s.sees(types.TableNodes, true)
		time.Sleep(time.Second)
		s.expect(0, "the nodes are known")
		for _, section := range s.told().Sections {
			if !section.Known || !section.StaleSince.IsZero() {
				s.Errorf("of what is reported it says %+v", section)
			}
		}
	})
}

// A report that was called true half a minute before the former run was last
// seen is no older than that, and never younger.
func TestAFormerReportIsAsOldAsWhatIsKnownOfTheFormerRun(t *testing.T) {
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of fake time
	former := types.FormerReports{
		Alive: began.Add(-46 * time.Second), Stale: map[string]time.Time{types.SectionAppPods: began.Add(-time.Hour), types.SectionStorage: {}},
	}
	tell(t, func(s *story) {
		s.former = former
		_ = s.report.Table.Publish(types.Global, types.KubeClusterInfo{AppPods: []types.KubePodInfo{{Name: "former"}}})
		leads(s)
		s.sees(types.TableNodes, false)
	}, func(s *story) {
		time.Sleep(10 * time.Second)
		for _, section := range s.told().Sections {
			want := former.Alive
			if section.Name == types.SectionAppPods {
				want = began.Add(-time.Hour)
			}
			if !section.StaleSince.Equal(want) {
				s.Errorf("of what a former run left it says %+v, want stale since %s", section, want)
			}
		}
		s.sees(types.TableNodes, true)
		time.Sleep(10 * time.Second)
		failed := time.Now()
		for _, table := range []string{types.TableAppPods, types.TableLonghornSnapshots} {
			s.sees(table, false)
		}
		time.Sleep(time.Second)
		for _, section := range s.told().Sections {
			fails := slices.Contains([]string{types.SectionAppPods, types.SectionNamespaces, types.SectionAllocated}, section.Name)
			if fails != section.StaleSince.Equal(failed) || !fails && !section.StaleSince.IsZero() {
				s.Errorf("of what it has seen itself it says %+v; some lists fail since %s", section, failed)
			}
		}
	})
}

// givenUp is a table that is emptied just as it is looked at, as when this
// node leads no more.
type givenUp struct {
	pubsub.Table[types.KubePodNameSpaceInfo]
	empty func()
}

func (g *givenUp) All() map[string]types.KubePodNameSpaceInfo {
	if g.empty != nil {
		g.empty()
	}
	return g.Table.All()
}

func TestATableThatIsGivenUpDuringALookIsNotReportedAsEmpty(t *testing.T) {
	for name, after := range map[string]func(*story){
		"given up":             func(s *story) { _ = s.tables.Unpublish(types.TablePodCounts) },
		"kept anew":            func(s *story) { _ = s.tables.Unpublish(types.TablePodCounts); s.sees(types.TablePodCounts, true) },
		"kept anew, not whole": func(s *story) { s.sees(types.TablePodCounts, false) },
	} {
		var counts givenUp
		tellWith(t, &counts, func(s *story) {
			leads(s)
			_ = counts.Publish("a", types.KubePodNameSpaceInfo{Name: "a", PodCount: 1})
		}, func(s *story) {
			time.Sleep(10 * time.Second)
			counts.empty = func() {
				after(s)
				_ = counts.Unpublish("a")
				counts.empty = nil
			}
			rings := s.report.rings
			_ = counts.Publish("a", types.KubePodNameSpaceInfo{Name: "a", PodCount: 2})
			s.pods()
			if r, _ := s.report.Get(types.Global); len(r.PodNsInfo) != 1 || s.report.rings != rings {
				s.Errorf("%s: of namespaces it says %+v", name, r.PodNsInfo)
			}
			for _, section := range s.told().Sections {
				if stale := section.Name == types.SectionNamespaces; section.StaleSince.IsZero() == stale {
					s.Errorf("%s: it says %+v", name, section)
				}
			}
		})
	}
}

func TestHealthFollowsWhetherThereIsLonghornAtAll(t *testing.T) {
	tell(t, func(s *story) {
		leads(s)
		_ = s.tables.Publish(types.TableLonghornNodes, types.TableStatus{Complete: true, Absent: true, Since: time.Now()})
	}, func(s *story) {
		health := func(when string, want types.ServiceStatus) {
			s.pods()
			if r, _ := s.report.Get(types.Global); r.Storage.Health != want {
				s.Errorf("%s: health is %v, want %v", when, r.Storage.Health, want)
			}
		}
		health("without Longhorn", types.ServiceStatusUnset)
		time.Sleep(10 * time.Second)
		s.sees(types.TableLonghornNodes, true)
		health("with its kinds and nothing that runs", types.ServiceStatusFailed)
		time.Sleep(10 * time.Second)
		_ = s.tables.Publish(types.TableLonghornNodes, types.TableStatus{Complete: true, Absent: true, Since: time.Now()})
		health("after it is gone", types.ServiceStatusUnset)
	})
}

func TestAnEntryThatCannotBeReportedKeepsNoneOut(t *testing.T) {
	a := decide(leading(func(f *facts) {
		f.appPods = podTable(appPod("a"), appPod("b", func(p *types.Pod) { p.Reason = strings.Repeat("x", maxEntry) }),
			appPod("c"), appPod("d", func(p *types.Pod) { p.RestartedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }), appPod("e"))
	}))
	var names []string
	for _, p := range a.publish.AppPods {
		names = append(names, p.Name)
	}
	if d := cmp.Diff([]string{"a", "c", "e"}, names); d != "" {
		t.Error("want -, got +\n" + d)
	}
	if s := section(t, a, types.SectionAppPods); s.Total != 5 || s.Truncated != 2 {
		t.Errorf("it says %+v", s)
	}
}

func TestVolumesOfOneFormerClaimKeepTheirOrder(t *testing.T) {
	all := map[string]types.Volume{}
	for _, name := range strings.Split("abcdefgh", "") {
		all[name] = types.Volume{Name: name, LastClaim: "eve-kube-app/v-pvc-0", Created: then, Used: int64(name[0])}
	}
	want := volumes(facts{volumes: all})
	for range 20 {
		if d := cmp.Diff(want, volumes(facts{volumes: maps.Clone(all)})); d != "" {
			t.Fatal("want -, got +\n" + d)
		}
	}
}

// refusing is a topic that takes nothing.
type refusing struct {
	pubsub.Table[types.KubeReportHealth]
}

func (r *refusing) Publish(string, types.KubeReportHealth) error { return errors.New("no room") }

func TestAPauseBetweenTwoLooksDoesNotMakeAFailureGood(t *testing.T) {
	tellWith(t, nil, func(s *story) {
		leads(s)
		s.refuses = &refusing{}
	}, func(s *story) {
		for i := range 100 {
			time.Sleep(100 * time.Millisecond)
			s.pod(fmt.Sprint(i))
		}
		for _, e := range s.logs.AllEntries() {
			if e.Message == "step succeeds again" {
				s.Fatal("it is said to work while it fails")
			}
		}
	})
}
