package nodemetrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/base/samples"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestNobodyWatchingTheKubeletIsAskedTwiceAMinuteAndItIsPublishedOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.measure(1)
		looked := s.looked()
		published := 0
		for last := (time.Time{}); time.Since(s.began) < 10*time.Minute; {
			s.sleep(time.Second)
			if m, _ := s.metrics.Get(types.Global); !m.At.Equal(last) {
				last = m.At
				published++
			}
		}
		if n := looked(); n < 20 || n > 21 {
			s.Errorf("%d looks in ten minutes", n)
		}
		if n := len(s.cluster.Calls("kubeletcontainers")); n > 21 {
			s.Errorf("%d times for containers", n)
		}
		if published < 10 || published > 11 {
			s.Errorf("published %d times in ten minutes", published)
		}
		m := s.says()
		if m.Every != time.Minute || m.Node != "n1" || m.Metrics.Cores != 4 || m.Stale != "" || time.Since(m.At) > time.Minute || len(m.Pods) != 2 || len(s.app().Samples) != 1 || *s.app().Containers[0].Samples[0].ReadBytes != 1 {
			s.Errorf("says %+v", m)
		}
	})
}

func TestWhileSomebodyWatchesItIsAskedEveryFiveSeconds(t *testing.T) {
	play(t, func(s *stage) {
		s.measure(1)
		s.sleep(30 * time.Second)
		looked := s.looked()
		looked()
		s.watch(30 * time.Second)
		if n := looked(); n < 6 || n > 7 {
			s.Errorf("%d looks in half a minute", n)
		}
		if m := s.says(); m.Every != 5*time.Second || *s.app().Containers[0].Samples[0].ReadBytes != 1 {
			s.Errorf("says %+v", m)
		}
		s.sleep(10 * time.Second) // the last word is still good
		if n := looked(); n < 1 || n > 3 {
			s.Errorf("%d looks after the last word", n)
		}
		s.sleep(5 * time.Minute)
		if n := looked(); n > 11 {
			s.Errorf("%d looks in five minutes after the end", n)
		}
	})
}

func TestARowThatNobodyRenewsIsNoWatcher(t *testing.T) {
	play(t, func(s *stage) {
		s.measure(1)
		_ = s.looks.Publish("killed", types.MetricsLook{At: time.Now().Add(time.Hour)}) // whatever its clock says
		s.sleep(time.Minute)
		looked := s.looked()
		looked()
		for i := range 10 {
			_ = s.looks.Publish(fmt.Sprint("killed", i), types.MetricsLook{})
			_ = s.looks.Unpublish(fmt.Sprint("killed", i))
		}
		s.sleep(5 * time.Minute)
		if n := looked(); n > 11 {
			s.Errorf("%d looks in five minutes", n)
		}
	})
}

func TestTheLastEightSamplesOfApplicationsAreKept(t *testing.T) {
	play(t, func(s *stage) {
		for i := range 20 {
			s.measure(uint64(i + 1))
			s.watch(5 * time.Second)
		}
		p := s.app()
		if len(p.Samples) != 8 || len(p.Containers[0].Samples) != 8 {
			s.Fatalf("%d and %d samples", len(p.Samples), len(p.Containers[0].Samples))
		}
		if !slices.IsSortedFunc(p.Samples, func(a, b types.PodSample) int { return a.At.Compare(b.At) }) || *p.Samples[7].CPU < 19 {
			s.Errorf("%+v", p.Samples)
		}
		if cpu := p.Containers[0].Samples[7].CPU; cpu == nil || *cpu != 200_000_000 { // a second in five
			s.Errorf("the container uses %v nanocores", cpu)
		}
		if other := s.says().Pods[1]; len(other.Samples) != 1 || len(other.Containers[0].Samples) != 1 {
			s.Errorf("of another pod %d samples", len(other.Samples))
		}
		s.sleep(2 * time.Minute)
		if n := len(s.app().Samples); n != 1 {
			s.Errorf("with nobody watching %d samples are published", n)
		}
	})
}

func TestWithNobodyWatchingTheLastEightSamplesOfEverythingAreKept(t *testing.T) {
	play(t, func(s *stage) {
		for i := range 12 {
			s.measure(uint64(i+1), func(k *types.KubeletStats) { k.NodeAt = time.Now().UTC() })
			s.sleep(seldom)
		}
		m := s.keeps()
		if len(m.Samples) != 8 || *m.Samples[7].CPU != 12 || *m.Samples[0].CPU != 5 || m.Samples[0].Cores != 4 || len(m.Pods) != 2 {
			s.Fatalf("of the node: %+v", m.Samples)
		}
		for _, p := range m.Pods {
			c := p.Containers[0]
			if len(p.Samples) != 8 || len(c.Samples) != 8 || *p.Samples[7].CPU != 12 || p.Samples[7].At.Sub(p.Samples[0].At) != 7*seldom {
				s.Errorf("of pod %s: %+v", p.Namespace, p)
			}
		}
		if c := m.Pods[0].Containers[0].Samples[7]; c.IOBytes == nil || *c.IOBytes != 24 || *c.IOs != 3 || len(c.FileSystems) != 1 || *c.MemoryUsage != 12 {
			s.Errorf("of the container: %+v", c)
		}
		s.watch(5 * time.Second)
		if p := s.app(); len(p.Samples) != 8 || len(s.says().Samples) != 8 { // who begins to watch sees them at once
			s.Errorf("published: %+v", p.Samples)
		}
	})
}

func TestANodeWithManyPodsIsAskedOnceAMinute(t *testing.T) {
	play(t, func(s *stage) {
		s.measure(1, func(k *types.KubeletStats) {
			for i := range manyPods {
				k.Pods = append(k.Pods, types.PodStats{Namespace: "many", Name: fmt.Sprint("p", i), UID: fmt.Sprint(i)})
			}
		})
		s.sleep(time.Minute)
		looked := s.looked()
		looked()
		s.sleep(10*time.Minute + time.Second)
		if n := looked(); n > 11 {
			s.Errorf("%d looks in ten minutes", n)
		}
	})
}

func TestANodeWhoseClockIsSetBackBeginsItsHistoryAgain(t *testing.T) {
	play(t, func(s *stage) {
		at := time.Now().UTC()
		s.measure(1, func(k *types.KubeletStats) { k.NodeAt = at })
		s.sleep(seldom)
		s.measure(2, func(k *types.KubeletStats) { k.NodeAt = at }) // the same measurement
		s.sleep(seldom)
		if n := s.keeps().Samples; len(n) != 1 || *n[0].CPU != 2 {
			s.Errorf("keeps %+v", n)
		}
		s.measure(3, func(k *types.KubeletStats) { k.NodeAt = at.Add(-time.Hour) })
		s.sleep(seldom)
		if n := s.keeps().Samples; len(n) != 1 || *n[0].CPU != 3 {
			s.Errorf("keeps %+v", n)
		}
	})
}

func TestTheSocketAnswersWithWhatIsKept(t *testing.T) {
	play(t, func(s *stage) {
		ask := func(query string) (int, types.KubeNodeMetrics) {
			w := httptest.NewRecorder()
			Handler{Kept: &s.kept}.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path+query, http.NoBody))
			var m types.KubeNodeMetrics
			_ = json.Unmarshal(w.Body.Bytes(), &m)
			return w.Code, m
		}
		s.measure(1)
		s.sleep(2 * time.Minute)
		if code, m := ask(""); code != http.StatusOK || !cmp.Equal(m, s.keeps()) {
			s.Errorf("%d, %+v", code, m)
		}
		if code, m := ask("?pod=eve-kube-app/web"); code != http.StatusOK || len(m.Pods) != 1 || m.Pods[0].Namespace != types.NamespaceApps {
			s.Errorf("of one pod: %d, %+v", code, m)
		}
		if code, _ := ask("?pod=eve-kube-app/other"); code != http.StatusNotFound {
			s.Errorf("of a pod that is not here: %d", code)
		}
		_ = s.kept.Unpublish(types.Global)
		if code, _ := ask(""); code != http.StatusServiceUnavailable {
			s.Errorf("before there is anything: %d", code)
		}
	})
}

func TestASampleThatIsToldTwiceCountsOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.measure(1)
		s.watch(10 * time.Second)
		s.measure(2)
		s.watch(30 * time.Second)
		p := s.app()
		if len(p.Samples) != 2 || len(p.Containers[0].Samples) != 2 {
			s.Fatalf("%d and %d samples", len(p.Samples), len(p.Containers[0].Samples))
		}
		if cpu := p.Containers[0].Samples[1].CPU; cpu == nil || *cpu != 100_000_000 {
			s.Errorf("its rate is %v", cpu)
		}
	})
}

func TestWhatBeginsAnewHasNoHistory(t *testing.T) {
	for name, change := range map[string]func(*types.KubeletStats){
		"a recreated pod":                   func(k *types.KubeletStats) { k.Pods[1].UID = "other" },
		"a restarted container":             func(k *types.KubeletStats) { k.Pods[1].Containers[0].Started = time.Now().UTC() },
		"a counter that runs backwards":     func(k *types.KubeletStats) { k.Pods[1].Containers[0].Sample.CPUSeconds = u(0) },
		"a clock that was set back":         func(k *types.KubeletStats) { k.Pods[1].Containers[0].Sample.At = time.Now().Add(-time.Minute) },
		"another container of another name": func(k *types.KubeletStats) { k.Pods[1].Containers[0].Name = "d" },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				for i := range 3 {
					s.measure(uint64(i + 1))
					s.watch(5 * time.Second)
				}
				s.measure(5, change)
				s.watch(10 * time.Second)
				c := s.app().Containers[0]
				if len(c.Samples) != 1 || c.Samples[0].CPU != nil {
					s.Errorf("%d samples, the last is %+v", len(c.Samples), c.Samples[len(c.Samples)-1])
				}
			})
		})
	}
}

func TestAPodThatIsGoneIsDropped(t *testing.T) {
	play(t, func(s *stage) {
		s.measure(1)
		s.sleep(2 * time.Minute)
		s.measure(2, func(k *types.KubeletStats) { k.Pods = k.Pods[:1] })
		s.sleep(2 * time.Minute)
		if m := s.says(); len(m.Pods) != 1 || m.Pods[0].Namespace != "a-system" {
			s.Errorf("says %+v", m.Pods)
		}
	})
}

func TestWithoutAKubeletWhatWasKnownStaysAndSaysWhy(t *testing.T) {
	play(t, func(s *stage) {
		s.measure(1)
		s.sleep(2 * time.Minute)
		known := s.says()
		s.logs.Reset()
		s.cluster.LoseKubelet("n1")
		s.sleep(2 * time.Minute)
		m := s.says()
		if !strings.Contains(m.Stale, "connection refused") {
			s.Errorf("says %q", m.Stale)
		}
		m.Stale = ""
		if d := cmp.Diff(known, m); d != "" {
			s.Error(d)
		}
		looked := s.looked()
		looked()
		s.sleep(time.Hour)
		if n := looked(); n > 13 {
			s.Errorf("%d looks in an hour", n)
		}
		if n := s.warnings(); n != 1 {
			s.Errorf("%d warnings", n)
		}
		looked()
		s.watch(20 * time.Second)
		if n := looked(); n == 0 {
			s.Error("who watches waits for minutes")
		}
		s.measure(2)
		s.watch(25 * time.Second)
		if m := s.says(); m.Stale != "" {
			s.Errorf("it is back, and says %q", m.Stale)
		}
	})
}

func TestAKubeletThatWasNeverReachedIsSaidToBe(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(time.Minute)
		if m := s.says(); m.Stale == "" || m.Node != "n1" || m.Pods != nil || !m.At.IsZero() {
			s.Errorf("says %+v", m)
		}
	})
}

func TestASilentAPIServerSaysNothingOfTheKubelet(t *testing.T) {
	play(t, func(s *stage) {
		s.measure(1)
		s.cluster.SetFault(kubetest.Hung)
		s.sleep(5 * time.Minute)
		if m := s.says(); m.Stale != "" || time.Since(m.At) > 2*time.Minute {
			s.Errorf("says %+v", m)
		}
	})
}

func TestWhatOnlyCadvisorTellsMayBeMissing(t *testing.T) {
	play(t, func(s *stage) {
		s.measure(1)
		s.sleep(2 * time.Minute)
		s.logs.Reset()
		s.measure(2)
		s.cluster.FailVerb("kubeletcontainers", errors.New("no"))
		s.watch(time.Minute)
		samples := s.app().Containers[0].Samples
		if last := samples[len(samples)-1]; s.says().Stale != "" || last.ReadBytes != nil || last.CPUSeconds == nil || s.warnings() != 1 {
			s.Errorf("says %+v, %d warnings", last, s.warnings())
		}
	})
}

func TestAHungKubeletHoldsNothingUp(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetLatency(time.Hour)
		s.sleep(time.Minute)
		if m := s.says(); m.Stale == "" {
			s.Errorf("says %+v", m)
		}
	})
}

func TestNobodyIsAskedBeforeTheOwnNodeIsKnown(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.nodes.Unpublish("n1")
		s.sleep(5 * time.Minute)
		before := len(s.cluster.Calls("kubeletstats"))
		s.sleep(5 * time.Minute)
		if n := len(s.cluster.Calls("kubeletstats")); n != before {
			s.Error("somebody is asked")
		}
		s.measure(1)
		_ = s.nodes.Publish("n2", types.Node{Name: "n2", InternalIP: "10.0.0.2"})
		_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n2"})
		s.cluster.Measure("n2", types.KubeletStats{}, nil)
		s.sleep(time.Minute)
		if m := s.says(); m.Node != "n2" || m.Stale != "" || len(m.Pods) != 0 {
			s.Errorf("says %+v", m)
		}
	})
}

func TestTheValueStaysUnderItsLimitAndApplicationsGoFirst(t *testing.T) {
	a := answer{}
	for i := range 200 {
		for _, namespace := range []string{"another", types.NamespaceApps} {
			p := types.PodStats{Namespace: namespace, Name: strings.Repeat("\x01", 20) + fmt.Sprint(i), UID: fmt.Sprint(namespace, i)}
			for c := range 8 {
				p.Containers = append(p.Containers, types.ContainerStats{Name: fmt.Sprint("c", c)})
			}
			a.stats.Pods = append(a.stats.Pods, p)
		}
	}
	var pods []types.PodMetrics
	big := uint64(1<<63 - 1)
	for i := range samples.Depth {
		at := time.Date(2026, 11, 21, 12, 0, i, 123456789, time.UTC)
		for j := range a.stats.Pods {
			p := &a.stats.Pods[j]
			p.Sample = types.PodSample{At: at, CPU: &big, CPUSeconds: &big, MemoryUsage: &big, MemoryWorking: &big, NetworkReceived: &big, NetworkSent: &big}
			for c := range p.Containers {
				p.Containers[c].Sample = types.ContainerSample{At: at, CPU: &big, CPUSeconds: &big, MemoryUsage: &big, MemoryWorking: &big, Swap: &big, FSUsed: &big, FileSystems: []types.DeviceUsage{{Device: "rootfs", Used: big}, {Device: strings.Repeat("\x01", 40), Used: big}}}
			}
		}
		pods = samples.Merge(pods, a.stats.Pods, nil)
		data, err := json.Marshal(pods)
		if err != nil || len(data) > bound(pods) {
			t.Fatalf("%d bytes are bounded by %d, %v", len(data), bound(pods), err)
		}
		kept, omitted := fit(pods)
		data, _ = json.Marshal(kept)
		if len(data) > pubsub.MaxLarge || len(kept)+omitted != len(pods) || omitted == 0 && len(kept) != len(pods) {
			t.Errorf("%d bytes, %d kept, %d left out", len(data), len(kept), omitted)
		}
		if omitted > 0 && len(data) < pubsub.MaxLarge*9/10 {
			t.Errorf("only %d bytes are used", len(data))
		}
		if kept[0].Namespace != types.NamespaceApps || omitted > 200 && kept[len(kept)-1].Namespace != types.NamespaceApps {
			t.Error("applications are not first")
		}
	}
}
