package edgemetrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is an agent with edge nodes, in fake time. Those of hangs never answer.
type stage struct {
	*testing.T
	leader pubsub.Table[types.KubeLeaderElectInfo]
	nodes  pubsub.Table[types.Node]
	looks  pubsub.Table[types.MetricsLook]
	api    pubsub.Table[types.APIStatus]
	kept   pubsub.Table[types.KubeNodeMetrics]

	mu    sync.Mutex
	asked map[string][]time.Time
	hangs map[string]bool
	fails map[string]bool
}

func (s *stage) EdgeStats(ctx context.Context, node types.Node) (types.KubeletStats, error) {
	s.mu.Lock()
	s.asked[node.Name] = append(s.asked[node.Name], time.Now())
	hangs, fails, cpu := s.hangs[node.Name], s.fails[node.Name], uint64(len(s.asked))
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return types.KubeletStats{}, ctx.Err()
	}
	if fails {
		return types.KubeletStats{}, errors.New("it refuses")
	}
	at := time.Now().UTC()
	return types.KubeletStats{
		Node: types.NodeMetrics{CPU: &cpu}, NodeAt: at,
		Pods: []types.PodStats{{Namespace: "plant", Name: "sensor", UID: "u", Sample: types.PodSample{At: at, CPU: &cpu}}},
	}, nil
}

func name(i int) string { return fmt.Sprintf("edge-%03d", i) }

func play(t *testing.T, edges int, leads bool, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, asked: map[string][]time.Time{}, hangs: map[string]bool{}, fails: map[string]bool{}}
		_ = s.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: leads})
		_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
		for i := range edges {
			_ = s.nodes.Publish(name(i), types.Node{Name: name(i), Ready: types.ConditionTrue, InternalIP: "100.127.254.1", KubeletPort: 10351})
		}
		began := time.Now()
		log, _ := logtest.NewNullLogger()
		c := &Component{
			Log: log, Pulse: &loop.Pulse{}, Leader: &s.leader, Nodes: &s.nodes, Looks: &s.looks, API: &s.api, Kube: s,
			Uptime: func() time.Duration { return time.Hour + time.Since(began) }, Kept: &s.kept,
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx) }()
		synctest.Wait()
		tell(s)
		cancel()
		<-done
	})
}

func (s *stage) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// watch renews a command's row every five seconds for d.
func (s *stage) watch(d time.Duration) {
	for ; d > 0; d -= 5 * time.Second {
		_ = s.looks.Publish("top", types.MetricsLook{At: time.Now()})
		s.sleep(5 * time.Second)
	}
}

// times are those of all requests since at.
func (s *stage) times(at time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.asked {
		for _, t := range all {
			if !t.Before(at) {
				n++
			}
		}
	}
	return n
}

func (s *stage) of(node string, at time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.asked[node] {
		if !t.Before(at) {
			n++
		}
	}
	return n
}

func (s *stage) knows(node string) types.KubeNodeMetrics {
	s.Helper()
	m, ok := s.kept.Get(node)
	if !ok {
		s.Fatalf("nothing is kept of %s", node)
	}
	return m
}

func TestTenEdgeNodesAMinuteAreAskedWhileNobodyLooks(t *testing.T) {
	play(t, 250, true, func(s *stage) {
		s.sleep(49 * time.Minute)
		var all []time.Time
		for _, asked := range s.asked {
			all = append(all, asked...)
		}
		slices.SortFunc(all, time.Time.Compare)
		for i := 10; i < len(all); i++ {
			if all[i].Sub(all[i-10]) < time.Minute {
				t.Fatalf("eleven requests in the minute from %s", all[i-10])
			}
		}
		if len(all) < 485 {
			t.Errorf("%d requests", len(all))
		}
		for i := range 250 {
			if n := s.of(name(i), time.Time{}); n < 1 || n > 2 {
				t.Errorf("%s was asked %d times in two turns", name(i), n)
			}
		}
	})
}

func TestAFewEdgeNodesAreAskedEveryFiveMinutesWhileNobodyLooks(t *testing.T) {
	play(t, 3, true, func(s *stage) {
		s.sleep(30 * time.Minute)
		for i := range 3 {
			if n := s.of(name(i), time.Time{}); n < 6 || n > 7 {
				t.Errorf("%s was asked %d times in half an hour", name(i), n)
			}
		}
		if m := s.knows(name(0)); m.Every != seldom || m.Stale != "" || len(m.Samples) < 5 || len(m.Pods) != 1 {
			t.Errorf("known: %+v", m)
		}
	})
}

func TestWhileSomebodyLooksEdgeNodesAreAskedEveryFiveSecondsAndThenInTurnAgain(t *testing.T) {
	play(t, 3, true, func(s *stage) {
		s.sleep(10 * time.Minute)
		from := time.Now()
		s.watch(time.Minute)
		if n := s.of(name(1), from); n < 11 || n > 13 {
			t.Errorf("asked %d times in a minute", n)
		}
		if m := s.knows(name(1)); m.Every != often || time.Since(m.At) > 6*time.Second {
			t.Errorf("known: %+v", m)
		}
		s.sleep(20 * time.Second)
		from = time.Now()
		s.sleep(10 * time.Minute)
		if n := s.of(name(1), from); n < 2 || n > 3 {
			t.Errorf("asked %d times in ten minutes after that", n)
		}
	})
}

func TestAnAgentThatDoesNotReportAsksEdgeNodesOnlyWhileSomebodyLooksThere(t *testing.T) {
	play(t, 2, false, func(s *stage) {
		s.sleep(time.Hour)
		if n := s.times(time.Time{}); n != 0 {
			t.Fatalf("%d requests", n)
		}
		if m := s.knows(name(0)); m.Stale != Pending {
			t.Errorf("known: %+v", m)
		}
		s.watch(10 * time.Second)
		if n := s.of(name(0), time.Time{}); n < 2 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestAnEdgeNodeThatHangsKeepsNobodyWaiting(t *testing.T) {
	play(t, 20, true, func(s *stage) {
		for i := range 10 {
			s.hangs[name(i)] = true
		}
		from := time.Now()
		s.watch(2 * time.Minute)
		if n := s.of(name(15), from); n < 10 {
			t.Errorf("one that answers was asked %d times in two minutes", n)
		}
		if m := s.knows(name(3)); m.Stale != context.DeadlineExceeded.Error() || !m.At.IsZero() {
			t.Errorf("of one that hangs it knows %+v", m)
		}
	})
}

func TestAnEdgeNodeThatIsOfflineIsNotAskedAndWhatWasKnownStays(t *testing.T) {
	play(t, 1, true, func(s *stage) {
		s.watch(10 * time.Second)
		known := s.knows(name(0))
		since := time.Now()
		_ = s.nodes.Publish(name(0), types.Node{Name: name(0), Ready: types.ConditionUnknown, ReadySince: since})
		s.sleep(time.Second)
		from := time.Now()
		s.watch(time.Minute)
		if n := s.times(from); n != 0 {
			t.Errorf("it was asked %d times", n)
		}
		m := s.knows(name(0))
		if m.Stale != "offline since "+since.UTC().Format(time.RFC3339) || m.At.Before(known.At) || len(m.Pods) != 1 {
			t.Errorf("known: %+v", m)
		}
		_ = s.nodes.Publish(name(0), types.Node{Name: name(0), Ready: types.ConditionTrue})
		s.watch(10 * time.Second)
		if m := s.knows(name(0)); m.Stale != "" || time.Since(m.At) > 6*time.Second {
			t.Errorf("back: %+v", m)
		}
		_ = s.nodes.Unpublish(name(0))
		s.sleep(time.Second)
		if all := s.kept.All(); len(all) != 0 {
			t.Errorf("of a node that is gone: %v", all)
		}
	})
}

func TestAFailureIsSaidBesideWhatWasKnown(t *testing.T) {
	play(t, 1, true, func(s *stage) {
		s.watch(10 * time.Second)
		s.mu.Lock()
		s.fails[name(0)] = true
		s.mu.Unlock()
		s.watch(10 * time.Second)
		if m := s.knows(name(0)); m.Stale != "it refuses" || len(m.Samples) == 0 {
			t.Errorf("known: %+v", m)
		}
		w := httptest.NewRecorder()
		Handler{Kept: &s.kept}.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
		var all Measured
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || len(all.Items) != 1 || all.Items[0].Node != name(0) {
			t.Errorf("answered %s: %v", w.Body, err)
		}
	})
}

func TestWhileTheAPIServerIsSilentNobodyIsAsked(t *testing.T) {
	play(t, 3, true, func(s *stage) {
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Synced: true})
		s.sleep(time.Minute)
		from := time.Now()
		s.watch(time.Minute)
		if n := s.times(from); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}
