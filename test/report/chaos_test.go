//go:build linux

package report

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// TestReportsAreHonest has the cluster change all the time while API servers fail
// and agents die, and judges everything that is reported meanwhile.
func TestReportsAreHonest(t *testing.T) {
	honest(t, lacking)
}

func honest(t *testing.T, long time.Duration) {
	l := &load{}
	s := newStage(t, 3, l.arrange)
	tr, err := follow(s.cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	r := read(s.folders())
	defer func() {
		r.end()
		tr.stop()
		verdict(t, tr, r, l)
	}()
	s.boot(t)
	for i := range s.fleet.Members {
		r.agent(s.name(i), true)
	}
	took := until(t, 2*time.Minute, func() string { return s.unequal(tr, r) })
	t.Logf("the report equals the cluster %s after the boot", took)

	changing, rest := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { l.run(changing) })
	began := time.Now()
	s.trouble(t, r, long)
	rest()
	working.Wait()
	t.Logf("%d changes of things in %s", tr.changes(), time.Since(began).Round(time.Second))
	took = until(t, 2*time.Minute, func() string { return s.unequal(tr, r) })
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
	for _, m := range s.fleet.Members {
		all[m.Name] = filepath.Join(m.Root, "run/zedkube")
	}
	return all
}

// unequal says how what is reported differs from the cluster, "" for not at all.
func (s *stage) unequal(tr *truth, r *reader) string {
	present := tr.present()
	reporter := ""
	for _, m := range s.fleet.Members {
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

// deal returns every fault in turn, in an order of its own each time around.
func deal() func() devcluster.Fault {
	all := []devcluster.Fault{
		devcluster.Refused, devcluster.Hung, devcluster.Hung, devcluster.Status(500), devcluster.Status(429), "503=0.3", "429=0.5",
		devcluster.Slow(2 * time.Second), devcluster.Expired, "500,only=get", "403,only=get+watch", "reset=2000",
	}
	var mu sync.Mutex
	next := len(all)
	return func() devcluster.Fault {
		mu.Lock()
		defer mu.Unlock()
		if next == len(all) {
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			next = 0
		}
		next++
		return all[next-1]
	}
}

// sources are the resources that a report is made of.
var sources = []string{
	"nodes", "pods", "virtualmachineinstances", "persistentvolumeclaims", "volumes", "engines", "replicas", "snapshots", "daemonsets",
	"services", "ingresses",
}

// lacking is how long some lists fail in each round, with room for what reports may
// go on telling as new to become too old.
const lacking = bound + slack + 7*time.Second

// trouble has the API servers fail and agents die for so long, half of the time in
// rounds in which nothing happens but that some lists fail; then all is well.
func (s *stage) trouble(t *testing.T, r *reader, long time.Duration) {
	next := deal()
	for over := time.Now().Add(long); time.Now().Before(over) && t.Context().Err() == nil; {
		s.lack(t)
		ctx, stop := context.WithTimeout(t.Context(), lacking)
		var working sync.WaitGroup
		for i := range s.cluster.Nodes {
			working.Go(func() { s.faults(ctx, t, i, next) })
		}
		working.Go(func() { s.deaths(ctx, t, r) })
		working.Wait()
		stop()
	}
}

// lack has some lists fail on every node, others on each.
func (s *stage) lack(t *testing.T) {
	for i := range s.cluster.Nodes {
		rand.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
		fault := devcluster.Fault(pick([]string{"500", "403", "429"}) + ",of=" + strings.Join(sources[:4], "+"))
		s.hear(s.name(i), "fault", string(fault))
		if err := s.cluster.SetNodeFault(i, fault); err != nil {
			t.Error(err)
		}
		s.cluster.CutWatches(i)
	}
	pause(t.Context(), lacking)
	for i := range s.cluster.Nodes {
		s.hear(s.name(i), "fault", "none")
		if err := s.cluster.SetNodeFault(i, devcluster.None); err != nil {
			t.Error(err)
		}
	}
}

// faults come and go on one node. Watches end with every other one.
func (s *stage) faults(ctx context.Context, t *testing.T, i int, next func() devcluster.Fault) {
	for ctx.Err() == nil {
		fault := next()
		long := time.Duration(3+rand.IntN(8)) * time.Second
		if fault == devcluster.Hung {
			long = time.Duration(15+rand.IntN(25)) * time.Second // longer than it goes unnoticed
		}
		s.hear(s.name(i), "fault", fmt.Sprintf("%s for %s", fault, long))
		if err := s.cluster.SetNodeFault(i, fault); err != nil {
			t.Error(err)
		}
		if rand.IntN(2) == 0 {
			s.cluster.CutWatches(i)
		}
		pause(ctx, long)
		s.hear(s.name(i), "fault", "none")
		if err := s.cluster.SetNodeFault(i, devcluster.None); err != nil {
			t.Error(err)
		}
		pause(ctx, time.Duration(1+rand.IntN(8))*time.Second)
	}
}

// deaths ends agents, mostly the one that reports, one way or another, and starts
// them again. All of them run when it is over.
func (s *stage) deaths(ctx context.Context, t *testing.T, r *reader) {
	for pause(ctx, time.Duration(4+rand.IntN(8))*time.Second) {
		i := rand.IntN(len(s.fleet.Members))
		for j, m := range s.fleet.Members {
			if report, _ := r.current(m.Name, clusterTopic); report != nil && rand.IntN(4) > 0 {
				i = j
			}
		}
		m := s.fleet.Members[i]
		if rand.IntN(2) == 0 {
			s.hear(m.Name, "death", "killed")
			m.KillProgram()
		} else {
			s.hear(m.Name, "death", "told to end")
			m.StopProgram()
		}
		r.agent(m.Name, false)
		pause(ctx, time.Duration(rand.IntN(6)*rand.IntN(6))*time.Second)
		r.agent(m.Name, true)
		if err := m.StartProgram(); err != nil {
			t.Error(err)
		}
		s.hear(m.Name, "death", "started again")
	}
}
