//go:build linux

package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

// What the applications use.
const (
	burns  = 0.30
	holds  = 96 << 20
	writes = 32 << 20
	sends  = 8_000_000
)

// What is taken for the same: a kubelet tells times in seconds, and measures a
// CPU over some of them; a program has memory of its own, a datagram has a head.
const (
	cpuTolerance    = 0.10
	cpuOverhead     = 1.0 // seconds of CPU, of the pause container and of the start too
	memoryTolerance = 48 << 20
	netTolerance    = 1.10
	diskTolerance   = 1.25
)

// TestRealKubeletsAreTold tells one story: applications of known use on three
// hosts, somebody who looks at one of them, and what goes and comes there.
func TestRealKubeletsAreTold(t *testing.T) {
	rig.NeedsPods(t)
	s := newStage(t)
	tell := func(what string, story func(*testing.T)) {
		if !t.Failed() {
			began := time.Now()
			t.Run(what, story)
			t.Logf("%s: %s", what, rig.Since(began))
		}
	}
	top := s.looks(t, 0, "pods", "--json")
	tell("applications use what they were told to", s.usesAreKnown)
	tell("the kubelet says the same", s.kubeletAgrees)
	tell("the command shows it", func(t *testing.T) { s.topShows(t, top) })
	tell("a container that is restarted begins anew", s.restartsBeginAnew)
	tell("a pod that is deleted is gone", s.deletedIsGone)
	tell("a kubelet that is stopped is said to be", s.kubeletStops)
	tell("there are looks every five seconds while somebody looks, and once a minute otherwise", func(t *testing.T) { s.looksAreApart(t, top) })
	// Last: it asks once a minute, and has had the time by now.
	tell("the node that reports tells of all nodes", s.clusterIsWhole)
}

func (s *stage) create(t *testing.T, name string, node int, p devcluster.Prints) {
	t.Helper()
	app := devcluster.App{Name: name, Domain: name + ".1.1", Node: s.Fleet.Members[node].Name, Required: true, Prints: p}
	if err := s.Cluster.CreateApp(t.Context(), app); err != nil {
		t.Fatal(err)
	}
}

// createApps makes the applications, and waits until they run.
func (s *stage) createApps(t *testing.T) {
	t.Helper()
	s.create(t, "burner", 0, devcluster.Prints{Load: devcluster.Load{CPU: burns}})
	s.create(t, "holder", 0, devcluster.Prints{Load: devcluster.Load{Memory: holds}})
	s.create(t, "writer", 0, devcluster.Prints{Load: devcluster.Load{Disk: writes, Net: sends, To: s.Cluster.Nodes[0].IP + ":9"}})
	s.create(t, "restless", 0, devcluster.Prints{Rate: 2, Exit: 40, Load: devcluster.Load{CPU: 0.05}})
	s.create(t, "elsewhere", 1, devcluster.Prints{})
	for _, name := range []string{"burner", "holder", "writer", "elsewhere"} {
		if _, err := s.Cluster.WaitRunning(t.Context(), "app="+name, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// pod is the newest word of an application's pod on node 0.
func (s *stage) pod(app string) (types.PodMetrics, bool) {
	for _, p := range s.watched[0].last().Pods {
		if strings.HasPrefix(p.Name, app+"-") {
			return p, true
		}
	}
	return types.PodMetrics{}, false
}

func last[T any](samples []T) (v T) {
	if len(samples) > 0 {
		v = samples[len(samples)-1]
	}
	return v
}

// within says what a value lacks to be between two others, "" for nothing.
func within(what string, v *uint64, least, most float64) string {
	if v == nil || float64(*v) < least || float64(*v) > most {
		return fmt.Sprintf("%s is %s, want %.0f to %.0f", what, text(v), least, most)
	}
	return ""
}

// burnerUses says what a sample of the burner is other than what the kernel
// says that it had, "" for nothing.
func (s *stage) burnerUses(v types.PodSample) string {
	had := s.burner.cores(v.At, 10*time.Second)
	whole := s.burner.used(v.At).Seconds()
	if had < 0.02 {
		return fmt.Sprintf("the burner has had %.3f cores", had)
	}
	return cmp.Or(
		within("the burner's CPU", v.CPU, (had-cpuTolerance)*1e9, (had+cpuTolerance)*1e9),
		within("the burner's CPU in all", v.CPUSeconds, (whole-cpuOverhead)*1e9, (whole+cpuOverhead)*1e9),
	)
}

func (s *stage) usesAreKnown(t *testing.T) {
	lacks := ""
	took := rig.Within(t, 2*time.Minute, func() (lack string) {
		defer func() {
			if lacks != lack {
				t.Logf("%s %s", time.Now().Format("15:04:05.0"), lack)
				lacks = lack
			}
		}()
		burner, _ := s.pod("burner")
		holder, _ := s.pod("holder")
		writer, _ := s.pod("writer")
		wrote := types.ContainerSample{}
		if len(writer.Containers) == 1 {
			wrote = last(writer.Containers[0].Samples)
		}
		return cmp.Or(
			s.burnerUses(last(burner.Samples)),
			within("holder's memory", last(holder.Samples).MemoryWorking, holds, holds+memoryTolerance),
			within("writer's bytes sent", last(writer.Samples).NetworkSent, sends, sends*netTolerance),
			s.ifKnown(t, "container_fs_writes_bytes_total", within("writer's bytes written", wrote.WrittenBytes, writes, writes*diskTolerance), wrote.WrittenBytes),
			within("writer's file system", wrote.FSUsed, writes, writes*diskTolerance),
		)
	})
	writer, _ := s.pod("writer")
	t.Logf("all is known after %s; bytes written: %s", took, text(last(writer.Containers[0].Samples).WrittenBytes))
}

// ifKnown lets a value be absent that the kubelet does not have either.
func (s *stage) ifKnown(t *testing.T, series, wrong string, v *uint64) string {
	if v != nil || wrong == "" {
		return wrong
	}
	raw, err := s.Cluster.Client().CoreV1().RESTClient().Get().
		AbsPath("/api/v1/nodes", s.Fleet.Members[0].Name, "proxy/metrics/cadvisor").DoRaw(t.Context())
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, series+"{") && strings.Contains(line, `container="app"`) && strings.Contains(line, `pod="writer-`) {
			return wrong + "; the kubelet: " + line
		}
	}
	return "" // it leaves it out, and so does the agent
}

// kubeletAgrees compares for as long as the kubelet measures once more.
func (s *stage) kubeletAgrees(t *testing.T) {
	c := &compared{same: map[string]bool{}, wrong: map[string]bool{}, was: map[string]bool{}}
	took := rig.Within(t, time.Minute, func() string {
		k, err := s.kubeletSays(t, 0)
		if err != nil {
			return err.Error()
		}
		c.compare(k, s.watched[0].all())
		for _, want := range []string{"burner CPUSeconds", "burner CPU", "burner/app CPUSeconds", "burner/app MemoryWorking", "holder CPUSeconds", "holder/app MemoryWorking", "writer/app CPUSeconds"} {
			if !c.same[want] {
				return want + " was never the same"
			}
		}
		return ""
	})
	for wrong := range c.wrong {
		t.Error(wrong)
	}
	t.Logf("%d values are the same after %s; the kubelet leaves out %v", len(c.same), took, slices.Sorted(maps.Keys(c.was)))
}

func (s *stage) topShows(t *testing.T, top *onlooker) {
	var oldest time.Duration
	rig.Within(t, time.Minute, func() string {
		for name, r := range top.sees(t) {
			oldest = max(oldest, time.Since(r.At))
			if strings.HasPrefix(name, "burner-") && len(r.CPUs) >= 3 {
				return within("burner's CPU on the screen", r.CPU, 0.02e9, (burns+cpuTolerance)*1e9)
			}
		}
		return "burner has no three samples on the screen"
	})
	t.Logf("the oldest sample that was shown was %s old", oldest.Round(time.Second))
	t.Logf("another node knows all nodes after %s", rig.Within(t, 2*time.Minute, func() string { // it gives a kubelet 5 s
		out, err := s.Fleet.Members[1].Command("top", "nodes", "--once", "--json")
		if err != nil {
			return err.Error()
		}
		rows := table(t, out)
		for _, m := range s.Fleet.Members {
			if r := rows[m.Name]; r.CPU == nil || r.Memory == nil || *r.CPU == 0 || r.Old {
				return fmt.Sprintf("%s: %s is shown as %+v", s.Fleet.Members[1].Name, m.Name, r)
			}
		}
		return ""
	}))
	s.goldenIs(t, "top", "--sort", "name", "--ascii=false")
	s.goldenIs(t, "top-pods", "pods", "--sort", "name", "--ascii=false")
	s.goldenIs(t, "top-containers", "containers", "--sort", "name", "--ascii=false")
	s.goldenIs(t, "top-jsonpath", "--once", "--sort", "name", "-o", `jsonpath={.Of} {.Agent.Runs}{range .Rows[*]}{"\n"}{.Name}{end}`)
}

// restartsBeginAnew: no history of a container has what was before its start.
func (s *stage) restartsBeginAnew(t *testing.T) {
	t.Logf("seen after %s", rig.Within(t, time.Minute, func() string {
		starts := map[time.Time]bool{}
		for _, m := range s.watched[0].all() {
			for _, p := range m.Pods {
				if !strings.HasPrefix(p.Name, "restless-") {
					continue
				}
				for _, c := range p.Containers {
					starts[c.Started] = true
					var before uint64
					for _, sample := range c.Samples {
						if sample.At.Before(c.Started.Truncate(time.Second)) || sample.CPUSeconds != nil && *sample.CPUSeconds < before {
							t.Fatalf("a sample is of an instance before: %+v", c)
						}
						if sample.CPUSeconds != nil {
							before = *sample.CPUSeconds
						}
					}
				}
			}
		}
		if len(starts) < 2 {
			return fmt.Sprintf("it has started %d times", len(starts))
		}
		return ""
	}))
}

func (s *stage) deletedIsGone(t *testing.T) {
	background := metav1.DeletePropagationBackground
	err := s.Cluster.Client().AppsV1().ReplicaSets(devcluster.AppNamespace).Delete(t.Context(), "holder", metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("gone after %s", rig.Within(t, time.Minute, func() string {
		if _, there := s.pod("holder"); there {
			return "holder is still told of"
		}
		return ""
	}))
}

func (s *stage) clusterIsWhole(t *testing.T) {
	took := rig.Until(t, 2*time.Minute, func() string { // a kubelet that gives no answer is asked again after a minute, then two, then four
		reporter := s.Fleet.Reporter()
		if reporter == nil {
			return "no node reports"
		}
		v, err := read[types.KubeClusterMetrics](filepath.Join(reporter.TopicDir("KubeClusterMetrics"), types.Global+".json"))
		if err != nil {
			return err.Error()
		}
		names := map[string]bool{}
		for _, n := range v.Nodes {
			names[n.Name] = n.CPU != nil && *n.CPU > 0 && n.Memory != nil && n.Total != nil && *n.Total > *n.Memory && n.Cores > 0 && !n.At.IsZero() && n.Stale == ""
		}
		for _, m := range s.Fleet.Members {
			if !names[m.Name] {
				return fmt.Sprintf("%s tells nothing whole of %s: %+v", reporter.Name, m.Name, v.Nodes)
			}
		}
		for _, a := range v.Apps {
			if strings.HasPrefix(a.Name, "burner-") && a.Node == s.Fleet.Members[0].Name {
				// On a busy machine its one thread makes up for the time that it lacked.
				return within("burner's CPU in the cluster", a.CPU, 0.02e9, (1+cpuTolerance)*1e9)
			}
		}
		return fmt.Sprintf("burner is not told of: %+v", v.Apps)
	})
	t.Logf("whole after %s", took)
}

func (s *stage) kubeletStops(t *testing.T) {
	s.Cluster.StopKubelet(0)
	t.Logf("stale after %s", rig.Within(t, 40*time.Second, func() string {
		if s.watched[0].last().Stale == "" {
			return "it is not said to be stale"
		}
		return ""
	}))
	stale := s.watched[0].last()
	out, err := s.Fleet.Members[0].Command("top", "pods", "--once")
	if err != nil || !strings.Contains(string(out), "this node's kubelet: ") || !strings.Contains(string(out), "burner-") {
		t.Errorf("%v: it does not say that the kubelet is away:\n%s", err, out)
	}
	if err := s.Cluster.StartKubelet(0); err != nil {
		t.Fatal(err)
	}
	t.Logf("%q; well again after %s", stale.Stale, rig.Within(t, 80*time.Second, func() string {
		if v := s.watched[0].last(); v.Stale != "" || !v.At.After(stale.At) {
			return "it is still stale: " + v.Stale
		}
		return ""
	}))
	if len(stale.Pods) == 0 {
		t.Error("what was known before is lost")
	}
}

// least is how far looks are apart at least that nobody waits for.
const least = 30 * time.Second

// looksAreApart looks at the times of all looks: of the first device, at which
// somebody looked, and of the last, at which nobody did.
func (s *stage) looksAreApart(t *testing.T, top *onlooker) {
	var often, seldom []time.Duration
	rig.Within(t, time.Minute, func() string { // the stories before may have left no time for more
		often, seldom = gaps(s.watched[0].all()), gaps(s.watched[2].all())
		if last := s.watched[2].last().At; len(often) < 5 || len(seldom) == 0 && time.Since(last) < least {
			return fmt.Sprintf("looks that somebody waited for are %v apart, the only one that nobody waited for was at %s", often, last.Format(rig.Clock))
		}
		return ""
	})
	slices.Sort(often)
	if middle := often[len(often)/2]; middle < 4500*time.Millisecond || middle > 6500*time.Millisecond {
		t.Errorf("looks that somebody waited for are %v apart", often)
	}
	// The one under way counts for as long as it lasts.
	seldom = append(seldom, rig.Since(s.watched[2].last().At))
	if slices.Min(seldom[:max(len(seldom)-1, 1)]) < least || slices.Max(seldom) > 80*time.Second {
		t.Errorf("looks that nobody waited for are %v apart", seldom)
	}
	t.Logf("often %v, seldom %v", often, seldom)
	top.kill() // with what it has left behind
	t.Logf("seldom again after %s", rig.Within(t, 40*time.Second, func() string {
		if v := s.watched[0].last(); time.Since(v.At) < 8*time.Second {
			return "the last look was " + rig.Since(v.At).String() + " ago"
		}
		return ""
	}))
}

// gaps are the times between looks that succeeded.
func gaps(all []types.KubeNodeMetrics) (apart []time.Duration) {
	var before types.KubeNodeMetrics
	for _, m := range all {
		if m.Stale != "" {
			before = types.KubeNodeMetrics{}
			continue
		}
		if !before.At.IsZero() && m.At.After(before.At) {
			apart = append(apart, m.At.Sub(before.At).Round(10*time.Millisecond))
		}
		before = m
	}
	return apart
}
