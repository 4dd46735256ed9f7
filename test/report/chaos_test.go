//go:build linux

package report

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// TestReportsAreHonest has the cluster change all the time while API servers fail
// and agents die, and judges everything that is reported meanwhile.
func TestReportsAreHonest(t *testing.T) {
	honest(t, lacking)
}

func honest(t *testing.T, long time.Duration) {
	l := &load{}
	rng := seeds.Rand(t)
	s := newStage(t, devcluster.Options{Seed: rng.Uint64()}, l.arrange)
	tr, err := follow(s.Cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	r := read(s.folders())
	defer func() {
		r.end()
		tr.stop()
		verdict(t, tr, r, l)
	}()
	s.Boot(t)
	for i := range s.Fleet.Members {
		r.agent(s.Name(i), true)
	}
	took := rig.Within(t, 2*time.Minute, func() string { return s.unequal(tr, r) })
	t.Logf("the report equals the cluster %s after the boot", took)

	changing, rest := context.WithCancel(t.Context())
	var working sync.WaitGroup
	others := seeds.Split(rng)
	working.Go(func() { l.run(changing, others) })
	began := time.Now()
	s.trouble(t, rng, r, long)
	rest()
	working.Wait()
	t.Logf("%d changes of things in %s", tr.changes(), time.Since(began).Round(time.Second))
	took = rig.Within(t, 2*time.Minute, func() string { return s.unequal(tr, r) })
	t.Logf("the report equals the cluster %s after all that", took)
	s.restsQuietly(t, tr, r)
}

// verdict judges what was seen.
func verdict(t *testing.T, tr *truth, r *reader, l *load) {
	t.Helper()
	now := time.Now()
	var cluster []sighting
	reporters := map[string]int{}
	for _, s := range r.reports {
		if s.topic == clusterTopic {
			cluster = append(cluster, s)
			reporters[s.node]++
		}
	}
	found := slices.Concat(lies(tr.history, r.reports, r.opinions, now), overlaps(cluster, now), repeats(r.reports), r.wrongs)
	for i, what := range found {
		if i == 20 {
			t.Errorf("and %d more", len(found)-i)
			break
		}
		t.Error(what)
	}
	age, what := oldest(tr.history, r.reports, r.opinions, now)
	t.Logf("%d reports on the cluster by %v, %d on services, %d on health; what was told as new was %s old at most: %s",
		len(cluster), reporters, len(r.reports)-len(cluster), len(r.opinions), age.Round(time.Millisecond), what)
	t.Logf("one change took this test %s at most to note", tr.longest.Round(time.Millisecond))
	if len(reporters) < 2 {
		t.Errorf("only %v reported: no leader was followed", reporters)
	}
	if all := l.changes.Load(); len(l.errs) > int(all/20) {
		t.Errorf("%d of %d changes failed, the first: %v", len(l.errs), all, l.errs[0])
	}
}

// folders is where each node publishes.
func (s *stage) folders() map[string]string {
	all := map[string]string{}
	for _, m := range s.Fleet.Members {
		all[m.Name] = filepath.Join(m.Root, "run/zedkube")
	}
	return all
}

// unequal says how what is reported differs from the cluster, "" for not at all.
func (s *stage) unequal(tr *truth, r *reader) string {
	present := tr.present()
	reporter := ""
	for _, m := range s.Fleet.Members {
		report, health := r.current(m.Name, clusterTopic)
		services, _ := r.current(m.Name, serviceTopic)
		switch {
		case services == nil || health == nil:
			return m.Name + " tells no services, or nothing of its health"
		case health.Reports != (report != nil):
			return fmt.Sprintf("%s says %t of whether it reports", m.Name, health.Reports)
		}
		if what := differs(services.facts, present, serviceSections...); what != "" {
			return m.Name + " tells services: " + what
		}
		if what := stale(health); what != "" {
			return m.Name + ": " + what
		}
		if report == nil {
			continue
		}
		if reporter != "" {
			return m.Name + " and " + reporter + " report"
		}
		reporter = m.Name
		if what := differs(report.facts, present, clusterSections...); what != "" {
			return m.Name + " tells: " + what
		}
	}
	if reporter == "" {
		return "nobody reports"
	}
	return ""
}

func stale(health *types.KubeReportHealth) string {
	for _, s := range health.Sections {
		if !s.Known || !s.StaleSince.IsZero() || s.Truncated > 0 {
			return fmt.Sprintf("its health is %+v", s)
		}
	}
	return ""
}

// restsQuietly watches that nothing is published while nothing changes.
func (s *stage) restsQuietly(t *testing.T, tr *truth, r *reader) {
	t.Helper()
	pause(t.Context(), 4*time.Second) // what was equal may not have told of its health yet
	reports, opinions := r.told()
	count := tr.changes()
	pause(t.Context(), 8*time.Second)
	moreReports, moreOpinions := r.told()
	if moreReports > reports || moreOpinions > opinions {
		t.Errorf("%d reports and %d times health were published while nothing changed", moreReports-reports, moreOpinions-opinions)
	}
	if now := tr.changes(); now != count {
		t.Errorf("the cluster is not at rest: %d changes", now-count)
	}
}
