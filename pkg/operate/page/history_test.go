package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// sampled are measurements of a node and of a pod with samples of n minutes.
func sampled(at time.Time, n int) types.KubeNodeMetrics {
	value := func(v uint64) *uint64 { return &v }
	m := types.KubeNodeMetrics{At: at, Metrics: types.NodeMetrics{Cores: 2, CPU: value(1e9), MemoryWorking: value(10), MemoryAvailable: value(30)}}
	m.Samples = []types.NodeSample{{At: at, NodeMetrics: m.Metrics}}
	pod := types.PodMetrics{Namespace: "eve-kube-app", Name: "cam-0"}
	for i := n - 1; i >= 0; i-- {
		pod.Samples = append(pod.Samples, types.PodSample{At: at.Add(-time.Duration(i) * time.Minute), CPU: value(5e8)})
	}
	m.Pods = append(m.Pods, pod, types.PodMetrics{Namespace: "kube-system", Name: "coredns", Samples: pod.Samples})
	return m
}

func TestSamplesAreKeptOnceAndBounded(t *testing.T) {
	var h history
	for i := range 300 {
		h.add(sampled(noon.Add(time.Duration(i)*time.Minute), 8), map[string]string{"eve-kube-app/cam-0": "cam"})
	}
	for key, l := range h.lines {
		if len(l.Points) != maxPoints || len(l.rounds) != maxPoints {
			t.Errorf("%s has %d points", key, len(l.Points))
		}
		for i := 1; i < len(l.Points); i++ {
			if l.Points[i][0]-l.Points[i-1][0] != 60_000 {
				t.Fatalf("%s: point %d is %v after the one before", key, i, l.Points[i][0]-l.Points[i-1][0])
			}
		}
	}
	if len(h.lines) != 3 {
		t.Errorf("%d series, want those of the node and of the application", len(h.lines))
	}
}

func TestWhoHasTheRestIsSentTheNewest(t *testing.T) {
	var h history
	h.add(sampled(noon, 2), map[string]string{"eve-kube-app/cam-0": "cam"})
	round := h.round
	h.add(sampled(noon.Add(time.Minute), 2), map[string]string{"eve-kube-app/cam-0": "cam"})
	at := float64(noon.Add(time.Minute).UnixMilli())
	want := measurements{Series: []series{
		{Kind: appCPU, Name: "cam", Pod: "eve-kube-app/cam-0", Max: 2, Points: []point{{at, 0.5}}},
		{Kind: nodeCPU, Max: 2, Points: []point{{at, 1}}},
		{Kind: nodeMemory, Max: 40, Points: []point{{at, 10}}},
	}}
	if diff := cmp.Diff(want, h.since(round)); diff != "" {
		t.Error(diff)
	}
	if all := h.since(0); !all.Whole || len(all.Series[0].Points) != 3 {
		t.Errorf("from the beginning: %+v", all)
	}
	if none := h.since(h.round); len(none.Series) != 0 {
		t.Errorf("after the newest: %+v", none)
	}
}

func TestManyPodsCostNoMoreThanSome(t *testing.T) {
	m := sampled(noon, 8)
	for i := range 500 {
		pod := m.Pods[0]
		pod.Name = fmt.Sprint("pod-", i)
		m.Pods = append(m.Pods, pod)
	}
	var h history
	h.add(m, nil)
	if len(h.lines) != maxSeries {
		t.Errorf("%d series are kept", len(h.lines))
	}
	h.add(sampled(noon.Add(time.Minute), 8), nil)
	if len(h.lines) != 3 {
		t.Errorf("%d series are kept of pods that have gone", len(h.lines)-3)
	}
}

func TestRequestsAreARate(t *testing.T) {
	var h history
	for i, total := range []uint64{100, 130, 5, 65} { // a count that falls has begun again
		h.count(noon.Add(time.Duration(i)*time.Minute), total)
		h.count(noon.Add(time.Duration(i)*time.Minute+time.Second), total+1) // too soon to tell
	}
	got := h.since(0).Series
	if len(got) != 1 || len(got[0].Points) != 2 || got[0].Points[0][1] != 0.5 || got[0].Points[1][1] != 1 {
		t.Errorf("rates %+v", got)
	}
}

func TestMeasurementsAreAskedForWhileSomebodyLooksAndForgottenAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.page.Requests = func() uint64 { s.mu.Lock(); defer s.mu.Unlock(); return s.asked }
		n := uint64(500_000_000)
		measure := func() {
			_ = s.metrics.Publish(types.Global, types.KubeNodeMetrics{At: time.Now(), Samples: []types.NodeSample{{At: time.Now(), NodeMetrics: types.NodeMetrics{CPU: &n}}}, Metrics: types.NodeMetrics{Cores: 4, CPU: &n}})
		}
		measure()
		b := s.ask("/api/events", false)
		if _, ok := s.looks.Get(lookKey); !ok {
			t.Error("nobody is asked to measure more often")
		}
		for range 4 {
			time.Sleep(5 * time.Second)
			s.set(func() { s.asked += 50 })
			measure()
		}
		time.Sleep(time.Second)
		events, _ := parse(t, b.took())
		var first, all int
		for _, e := range events {
			var m measurements
			if e.name != "metrics" {
				continue
			}
			if err := json.Unmarshal([]byte(e.data), &m); err != nil {
				t.Fatal(err)
			}
			if m.Whole {
				first++
			}
			for _, line := range m.Series {
				all += len(line.Points)
			}
		}
		if first != 1 || all < 7 || all > 10 {
			t.Errorf("%d times everything, %d points in all", first, all)
		}
		if row, _ := s.looks.Get(lookKey); time.Since(row.At) > 10*time.Second {
			t.Errorf("the wish is %s old", time.Since(row.At))
		}
		again := s.ask("/api/metrics-history", false)
		<-again.gone
		if got := again.took(); !strings.Contains(got, `"Kind":"requests"`) || !strings.Contains(got, `0.5]`) {
			t.Errorf("the history is %s", got)
		}
		b.leave()
		time.Sleep(keptFor + time.Second)
		if _, ok := s.looks.Get(lookKey); ok || len(s.page.history.lines) > 0 {
			t.Errorf("after all have gone %d series are kept, the wish: %v", len(s.page.history.lines), ok)
		}
	})
}
