package clustermetrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestTheOtherNodesAreAskedOnceAMinute(t *testing.T) {
	play(t, 3, func(s *stage) {
		s.sleep(2 * time.Second)
		asked := s.asked()
		if n := asked(); n != 2 {
			s.Errorf("%d questions at the start", n)
		}
		s.sleep(10 * time.Minute)
		if n := asked(); n < 18 || n > 20 {
			s.Errorf("%d questions in ten minutes", n)
		}
		for _, call := range s.cluster.Calls("nodestats") {
			if call.Object == name(0) {
				s.Error("the own node is asked as others are")
			}
		}
	})
}

func TestTheReportOfAKnownCluster(t *testing.T) {
	play(t, 2, func(s *stage) {
		at := time.Now().UTC()
		sample := []types.PodSample{{CPU: u(1)}, {CPU: u(3), MemoryWorking: u(4)}}
		_ = s.own.Publish(types.Global, types.KubeNodeMetrics{
			Node: name(0), At: at, Metrics: types.NodeMetrics{CPU: u(5)},
			Pods: []types.PodMetrics{{Namespace: types.NamespaceApps, Name: "labelled", Samples: sample}, {Namespace: "other", Name: "x", Samples: sample}},
		})
		_ = s.pods.Publish(types.NamespaceApps+"/labelled", types.Pod{VMI: "machine"})
		s.sleep(61 * time.Second)
		n1 := s.node(1)
		if since := time.Since(n1.At); since > time.Minute {
			s.Errorf("its values are %s old", since)
		}
		n1.At = time.Time{}
		got := s.says()
		got.Nodes[1] = n1
		want := types.KubeClusterMetrics{
			Nodes: []types.ClusterNodeMetrics{
				{Name: name(0), At: at, Cores: 4, CPU: u(5), Total: u(1 << 30)},
				{Name: name(1), Cores: 4, CPU: u(7), Memory: u(70), Total: u(1 << 30)},
			},
			Apps: []types.ClusterAppMetrics{{Name: "web-n001", Node: name(1), CPU: u(7), Memory: u(14)}},
			VMIs: []types.ClusterAppMetrics{{Name: "machine", Node: name(0), CPU: u(3), Memory: u(4)}, {Name: "vm-n001", Node: name(1), CPU: u(7), Memory: u(14)}},
		}
		if d := cmp.Diff(want, got); d != "" {
			s.Error(d)
		}
	})
}

func TestANodeThatFailsKeepsItsLastValues(t *testing.T) {
	play(t, 3, func(s *stage) {
		s.sleep(110 * time.Second)
		before := s.node(2)
		s.cluster.LoseKubelet(name(2))
		s.measure(1, 9)
		s.sleep(110 * time.Second)
		after := s.node(2)
		if after.Stale == "" || *after.CPU != *before.CPU || after.At.Before(before.At) || time.Since(after.At) < time.Minute {
			s.Errorf("it is %+v", after)
		}
		if n := s.node(1); n.Stale != "" || *n.CPU != 9 {
			s.Errorf("the other is %+v", n)
		}
		asked := s.asked()
		asked()
		s.sleep(time.Hour)
		if n := asked(); n < 55 || n > 60+14 {
			s.Errorf("%d questions in an hour", n)
		}
		s.measure(2, 11)
		s.sleep(6 * time.Minute)
		if n := s.node(2); n.Stale != "" || *n.CPU != 11 {
			s.Errorf("it is back: %+v", n)
		}
	})
}

func TestANodeThatIsGoneIsDropped(t *testing.T) {
	play(t, 3, func(s *stage) {
		s.sleep(110 * time.Second)
		_ = s.nodes.Unpublish(name(2))
		s.sleep(110 * time.Second)
		if m := s.says(); len(m.Nodes) != 2 || len(m.Apps) != 1 {
			s.Errorf("says %+v", m)
		}
	})
}

func TestANodeThatIsNotReadyIsNotAsked(t *testing.T) {
	play(t, 3, func(s *stage) {
		s.sleep(110 * time.Second)
		_ = s.nodes.Publish(name(2), types.Node{Name: name(2), Ready: types.ConditionUnknown})
		before := len(s.cluster.Calls("nodestats"))
		s.sleep(10 * time.Minute)
		for _, call := range s.cluster.Calls("nodestats")[before:] {
			if call.Object == name(2) {
				s.Fatal("it is asked")
			}
		}
		if n := s.node(2); n.Stale != "the node is not Ready" || n.CPU == nil {
			s.Errorf("it is %+v", n)
		}
	})
}

// The clock of the leader was an hour ahead, and is set back.
func TestWhatWasMeasuredByAClockThatWasAheadCountsNoLonger(t *testing.T) {
	now, vm := time.Now(), []app{{ClusterAppMetrics: types.ClusterAppMetrics{Name: "vm"}, vmi: true}}
	f := facts{now: now, seen: true, leads: true, nodes: map[string]types.Node{"n1": {Name: "n1", Ready: types.ConditionTrue}, "n2": {Name: "n2", Ready: types.ConditionUnknown}}}
	m := value(f, map[string]entry{
		"n1": {metrics: types.ClusterNodeMetrics{Name: "n1", At: now.Add(-time.Second)}, apps: vm},
		"n2": {metrics: types.ClusterNodeMetrics{Name: "n2", At: now.Add(time.Hour)}, apps: vm},
	})
	if len(m.VMIs) != 1 || m.VMIs[0].Node != "n1" {
		t.Errorf("%+v", m.VMIs)
	}
}

func TestAMachineThatWasFailedOverIsMeasuredWhereItRuns(t *testing.T) {
	play(t, 3, func(s *stage) {
		s.sleep(110 * time.Second)
		_ = s.nodes.Publish(name(2), types.Node{Name: name(2), Ready: types.ConditionUnknown})
		sample := types.PodSample{CPU: u(5), MemoryWorking: u(6)}
		s.cluster.Measure(name(1), types.KubeletStats{Pods: []types.PodStats{
			{Namespace: types.NamespaceApps, Name: launcher + "vm-n002-b7c4k", Sample: sample}, {Namespace: types.NamespaceApps, Name: "web-2", Sample: sample},
		}}, nil)
		machine := []types.ClusterAppMetrics{{Name: "vm-n002", Node: name(1), CPU: u(5), Memory: u(6)}}
		web := types.ClusterAppMetrics{Name: "web-2", Node: name(1), CPU: u(5), Memory: u(6)}
		lost := types.ClusterAppMetrics{Name: "web-n002", Node: name(2), CPU: u(7), Memory: u(14)} // whether it runs is not known yet
		for _, row := range []struct {
			after time.Duration
			apps  []types.ClusterAppMetrics
		}{{2 * time.Minute, []types.ClusterAppMetrics{web, lost}}, {10 * time.Minute, []types.ClusterAppMetrics{web}}} {
			s.sleep(row.after)
			m := s.says()
			if d := cmp.Diff(row.apps, m.Apps) + cmp.Diff(machine, m.VMIs); d != "" {
				s.Errorf("after another %s: %s", row.after, d)
			}
		}
		if n := s.node(2); n.CPU == nil || n.Stale == "" {
			s.Errorf("the node is %+v", n)
		}
	})
}

func TestOnlyTheLeaderAsksAndTells(t *testing.T) {
	play(t, 3, func(s *stage) {
		s.sleep(110 * time.Second)
		s.lead(false)
		asked := s.asked()
		asked()
		s.sleep(10 * time.Minute)
		if n := asked(); n != 0 {
			s.Errorf("%d questions", n)
		}
		if _, ok := s.metrics.Get(types.Global); ok {
			s.Error("it goes on telling")
		}
		s.lead(true)
		s.sleep(10 * time.Second)
		if n := s.node(1); n.At.IsZero() || time.Since(n.At) > time.Minute {
			s.Errorf("says %+v", n)
		}
	})
}

func TestASilentAPIServerIsNotAsked(t *testing.T) {
	play(t, 3, func(s *stage) {
		s.sleep(110 * time.Second)
		s.cluster.SetFault(kubetest.Hung)
		asked := s.asked()
		asked()
		s.sleep(10 * time.Minute)
		if n := asked(); n > 0 {
			s.Errorf("%d questions", n)
		}
		if n := s.node(1); n.Stale != "the API server does not answer" || n.CPU == nil || time.Since(n.At) < 9*time.Minute {
			s.Errorf("it is %+v", n)
		}
		s.cluster.SetFault(kubetest.None)
		s.sleep(110 * time.Second)
		if n := s.node(1); n.Stale != "" {
			s.Errorf("it is %+v", n)
		}
	})
}

func TestWhereNoKubeletAnswersOneIsTriedNowAndThen(t *testing.T) {
	play(t, 1, func(s *stage) {
		for i := range 500 {
			_ = s.nodes.Publish(name(i+1), types.Node{Name: name(i + 1), Ready: types.ConditionTrue})
		}
		s.sleep(time.Minute + time.Second) // the first look may have been before
		asked := s.asked()
		if n := asked(); n > 2*firstBatch {
			s.Errorf("%d questions at first", n)
		}
		s.sleep(time.Hour)
		if n := asked(); n < 10 || n > 20 {
			s.Errorf("%d questions in an hour", n)
		}
		for i := range 500 {
			s.measure(i+1, 1)
		}
		s.sleep(9 * time.Minute)
		for i := range 500 {
			if n := s.node(i + 1); n.Stale != "" {
				s.Fatalf("they answer, and it is %+v", n)
			}
		}
	})
}

func TestAThousandNodesAreAskedInTurn(t *testing.T) {
	for _, takes := range []time.Duration{0, 1500 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) { askThousand(t, takes) })
	}
}

func askThousand(t *testing.T, takes time.Duration) {
	play(t, 1000, func(s *stage) {
		s.cluster.SetLatency(takes)
		s.sleep(20 * time.Minute)
		calls := s.cluster.Calls("nodestats")
		for i := range calls {
			if i >= 5 && calls[i].At.Sub(calls[i-5].At) < time.Second {
				s.Fatalf("six questions within %s", calls[i].At.Sub(calls[i-5].At))
			}
			if i >= 4 && calls[i].At.Sub(calls[i-4].At) < takes*9/10 {
				s.Fatalf("more than four at once: five within %s", calls[i].At.Sub(calls[i-4].At))
			}
		}
		m := s.says()
		if len(m.Nodes) != 1000 || len(m.Apps) != 999 || m.Truncated != 0 {
			s.Fatalf("%d nodes, %d applications, %d left out", len(m.Nodes), len(m.Apps), m.Truncated)
		}
		for _, n := range m.Nodes[1:] {
			if n.Stale != "" || time.Since(n.At) > 9*time.Minute {
				s.Fatalf("%+v", n)
			}
		}
	})
}

func TestAHungKubeletDoesNotKeepOthersWaiting(t *testing.T) {
	play(t, 3, func(s *stage) {
		s.sleep(110 * time.Second)
		s.cluster.FailVerb("nodestats", errors.New(strings.Repeat("x", 1000)))
		s.cluster.SetLatency(time.Hour)
		s.sleep(10 * time.Minute)
		if n := s.node(1); n.Stale == "" || len(n.Stale) > maxText {
			s.Errorf("it is %+v", n)
		}
	})
}

func TestEveryPartStaysUnderItsLimit(t *testing.T) {
	f := facts{now: time.Now(), seen: true, nodes: map[string]types.Node{}}
	entries := map[string]entry{}
	big := uint64(1<<63 - 1)
	for i := range 5000 {
		node := fmt.Sprintf("%s%04d", strings.Repeat("n", 60), i)
		f.nodes[node] = types.Node{Name: node, Ready: types.ConditionTrue, Memory: 1 << 62}
		e := entry{metrics: types.ClusterNodeMetrics{Name: node, At: f.now, Stale: strings.Repeat("<", maxText), CPU: &big, Memory: &big}}
		for j := range 4 {
			e.apps = append(e.apps, app{ClusterAppMetrics: types.ClusterAppMetrics{Name: fmt.Sprintf("%04d-%d%s", i, j, strings.Repeat("a", 60)), CPU: &big, Memory: &big}, vmi: j%2 == 0})
		}
		entries[node] = e
	}
	v := value(f, entries)
	for part, entries := range map[string]any{"nodes": v.Nodes, "apps": v.Apps, "machines": v.VMIs} {
		if data, err := json.Marshal(entries); err != nil || len(data) > pubsub.MaxLarge || len(data) < pubsub.MaxLarge*9/10 {
			t.Errorf("%s: %d bytes, %v", part, len(data), err)
		}
	}
	if n := len(v.Nodes) + len(v.Apps) + len(v.VMIs) + v.Truncated; n != 25000 || !strings.HasSuffix(v.Nodes[0].Name, "0000") || !strings.HasPrefix(v.Apps[0].Name, "0000") {
		t.Errorf("%d entries in all, the first are %s, %s", n, v.Nodes[0].Name, v.Apps[0].Name)
	}
}
