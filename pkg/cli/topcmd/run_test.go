package topcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/report/nodemetrics"
	"github.com/zedkube/zedkube/types"
)

func TestOtherNodesAreAskedAndTheOwnIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopStage(t)
		own := busyNode()
		own.At = time.Now()
		s.publish("KubeNodeMetrics", own)
		kube := &kubelets{nodes: []string{"node-1", "node-2", "node-3", "node-4"}, slow: map[string]bool{"node-3": true}, fails: map[string]error{"node-4": errors.New("it is off")}}
		c := s.top(topOptions{of: topNodes, once: true}, false, kube)
		c.asking.know("node-2", nodeSample{at: own.At, metrics: own.Metrics}) // it is known from an earlier look
		c.asking.names = []string{"node-2"}
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		out := s.out.String()
		for _, want := range []string{"\nnode-1  1000m   25%", "\nnode-2  1312m   33%", "\nnode-3      -     -", "node-4: it is off", "node-3: context deadline exceeded"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		if kube.asked["node-2"] != 0 || kube.asked["node-1"] != 1 {
			t.Errorf("asked %v", kube.asked)
		}
	})
}

func TestAThousandNodesAreAskedInTurnsAndNotAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopStage(t)
		kube := &kubelets{}
		for i := range 1000 {
			kube.nodes = append(kube.nodes, fmt.Sprintf("node-%04d", i))
		}
		c := s.top(topOptions{of: topNodes, json: true}, false, kube)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := c.run(ctx); terminal.ExitCode(err) != terminal.ExitUsage {
			t.Errorf("interrupted, it ends with %v", err)
		}
		if kube.most > askAtOnce {
			t.Errorf("%d at once", kube.most)
		}
		total := 0
		for _, n := range kube.asked {
			total += n
		}
		if rounds := 31; total > rounds*askMost || len(kube.asked) != 1000 {
			t.Errorf("in %d rounds %d questions to %d nodes", rounds, total, len(kube.asked))
		}
	})
}

func TestWithoutTheAPITheOwnNodeIsShownAndWhyNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopStage(t)
		own := busyNode()
		own.At = time.Now()
		s.publish("KubeNodeMetrics", own)
		c := s.top(topOptions{of: topNodes, once: true}, false, &kubelets{err: errors.New("refused")})
		if err := c.run(t.Context()); err != nil {
			t.Error(err)
		}
		if out := s.out.String(); !strings.Contains(out, "cannot be queried through the API server: refused") || !strings.Contains(out, "\nnode-2  1312m") {
			t.Errorf("got\n%s", out)
		}
	})
}

func TestTheAgentIsAskedEveryFiveSecondsUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopStage(t)
		c := s.top(topOptions{of: topPods}, true, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { _ = c.live(ctx); c.measuring.end() })
		var seen []time.Time
		for range 30 {
			time.Sleep(time.Second)
			synctest.Wait()
			looks := s.looks()
			if len(looks) != 1 {
				t.Fatalf("there are %v", looks)
			}
			if len(seen) == 0 || seen[len(seen)-1] != looks[0].At {
				seen = append(seen, looks[0].At)
			}
		}
		cancel()
		ended.Wait()
		if len(seen) < 6 || len(seen) > 7 || seen[2].Sub(seen[1]) != lookEvery {
			t.Errorf("it was said at %v", seen)
		}
		if left := s.looks(); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestWhatKilledCommandsLeftGoesWithTheNext(t *testing.T) {
	s := newTopStage(t)
	for i, at := range []time.Time{time.Now().Add(-2 * time.Minute), time.Now().Add(2 * time.Hour), time.Now().Add(-10 * time.Second)} {
		s.put(fmt.Sprintf("run/zedkube-cli/MetricsLook/%d.json", i), fmt.Sprintf(`{"At":%q}`, at.UTC().Format(time.RFC3339Nano)))
	}
	l, err := startMeasuring(s.paths)
	if err != nil {
		t.Fatal(err)
	}
	l.renew(time.Now())
	if looks := s.looks(); len(looks) != 2 { // the living one of 10 s ago, and ours
		t.Errorf("there are %v", looks)
	}
	l.end()
	if looks := s.looks(); len(looks) != 1 {
		t.Errorf("there are %v", looks)
	}
}

func TestTopSaysWhatTheAgentCannot(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(s *topStage)
		want string
		code int
	}{
		"nothing yet":      {func(*topStage) {}, "has published no KubeNodeMetrics yet", terminal.ExitNotPublished},
		"unreadable":       {func(s *topStage) { s.put("run/zedkube/KubeNodeMetrics/global.json", `{"Node":`) }, "cannot be read", terminal.ExitNotPublished},
		"null":             {func(s *topStage) { s.put("run/zedkube/KubeNodeMetrics/global.json", `null`) }, "is empty", terminal.ExitNotPublished},
		"of other types":   {func(s *topStage) { s.put("run/zedkube/KubeNodeMetrics/global.json", `{"pubsub-large-Pods":7}`) }, "cannot be read", terminal.ExitNotPublished},
		"no agent":         {func(s *topStage) { s.put("run/zedkube.pid", "x") }, "is NOT running", terminal.ExitNotPublished},
		"an agent is gone": {func(s *topStage) { s.put("run/zedkube.pid", "x"); s.publish("KubeNodeMetrics", busyNode()) }, "is NOT running", 0},
		"a stale kubelet": {func(s *topStage) {
			m := busyNode()
			m.Stale = "it refuses connections"
			s.publish("KubeNodeMetrics", m)
		}, "this node's kubelet: it refuses connections", 0},
		"an agent that hangs": {func(s *topStage) { s.publish("KubeNodeMetrics", busyNode()) }, "is stale", 0},
		"too many pods": {func(s *topStage) {
			m := busyNode()
			m.At, m.Omitted = time.Now(), 12
			s.publish("KubeNodeMetrics", m)
		}, "12 rows of pods and containers left out", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newTopStage(t)
			c.set(s)
			command := s.top(topOptions{of: topPods}, false, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			err := command.run(ctx)
			if terminal.ExitCode(err) != c.code || !strings.Contains(s.out.String(), c.want) {
				t.Errorf("%s: exit code %d (%v), want %d and %q in\n%s", name, terminal.ExitCode(err), err, c.code, c.want, s.out.String())
			}
			// The last look may wait for the agent's socket, twice: this clock goes on while nothing but a
			// request is under way.
			if took := time.Since(began); took > onceWithin+lookWithin+keptWithin {
				t.Errorf("%s: took %s", name, took)
			}
		})
	}
}

func TestOnceWaitsForTheAgentToLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopStage(t)
		old := busyNode()
		old.At = time.Now().Add(-50 * time.Second)
		s.publish("KubeNodeMetrics", old)
		var agent sync.WaitGroup
		agent.Go(func() {
			time.Sleep(2 * time.Second)
			m := busyNode()
			m.At, m.Node = time.Now(), "looked"
			s.publish("KubeNodeMetrics", m)
		})
		began := time.Now()
		if err := s.top(topOptions{of: topPods}, false, nil).run(t.Context()); err != nil {
			t.Error(err)
		}
		agent.Wait()
		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second || !strings.Contains(s.out.String(), "Pods of looked") {
			t.Errorf("after %s:\n%s", took, s.out.String())
		}
	})
}

func TestJSONIsALineForEachLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopStage(t)
		m := busyNode()
		m.At = time.Now()
		s.publish("KubeNodeMetrics", m)
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		if err := s.top(topOptions{of: topContainers, json: true, all: true}, true, nil).run(ctx); terminal.ExitCode(err) != terminal.ExitUsage {
			t.Errorf("interrupted, it ends with %v", err)
		}
		lines := strings.Split(strings.TrimSpace(s.out.String()), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines in 12 s", len(lines))
		}
		var doc map[string]any
		if err := json.Unmarshal([]byte(lines[0]), &doc); err != nil {
			t.Fatal(err)
		}
		side, _ := doc["Rows"].([]any)[1].(map[string]any)
		if name := side["Name"]; name != "eve-kube-app/camera-inspection-line-3-9f27b/sidecar" {
			t.Fatalf("the second row is %v", name)
		}
		if _, is := side["Memory"]; is || side["CPU"] != float64(0) {
			t.Errorf("unknown is not absent, or zero not there: %v", side)
		}
	})
}

func TestKeysSortScrollAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopStage(t)
		m := busyNode()
		m.At = time.Now()
		for i := range 100 {
			m.Pods = append(m.Pods, types.PodMetrics{Namespace: "eve-kube-app", Name: fmt.Sprintf("app-%03d", i)})
		}
		s.publish("KubeNodeMetrics", m)
		c := s.top(topOptions{of: topPods}, true, nil)
		keys := make(chan rune)
		c.out.Typed = keys
		var ended sync.WaitGroup
		var err error
		ended.Go(func() { err = c.live(t.Context()) })
		shows := func(key rune) string {
			keys <- key
			synctest.Wait()
			screens := strings.Split(s.out.String(), "\x1b[J")
			return screens[len(screens)-2]
		}
		if got := shows('n'); !strings.Contains(got, "by name") || !strings.Contains(got, "\napp-000") {
			t.Errorf("after n:\n%s", got)
		}
		if got := shows('j'); strings.Contains(got, "\napp-000") || !strings.Contains(got, "2 to 21 of 103") {
			t.Errorf("after j:\n%s", got)
		}
		for range 20 {
			shows(' ')
		}
		if got := shows('j'); !strings.Contains(got, "84 to 103 of 103") {
			t.Errorf("at the end:\n%s", got)
		}
		if got := shows('k'); !strings.Contains(got, "83 to 102 of 103") {
			t.Errorf("one up:\n%s", got)
		}
		if got := shows('g'); !strings.Contains(got, "1 to 20 of 103") {
			t.Errorf("after g:\n%s", got)
		}
		keys <- 'q'
		ended.Wait()
		if err != nil {
			t.Error(err)
		}
	})
}

func TestThePodsOfAllNodesAreShownWithTheirNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopStage(t)
		own := busyNode()
		own.At = time.Now()
		s.publish("KubeNodeMetrics", own)
		kube := &kubelets{nodes: []string{"node-1", "node-2", "node-4"}, fails: map[string]error{"node-4": errors.New("nodes \"node-4\" is forbidden")}}
		c := s.top(topOptions{of: topPods, once: true, cluster: true, json: true}, false, kube)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var table topTable
		if err := json.Unmarshal(s.out.Bytes(), &table); err != nil {
			t.Fatal(err)
		}
		got := map[string][]types.ContainerSample{}
		for _, r := range table.Rows {
			got[r.Node+"/"+r.Name] = r.Samples
		}
		if one := got["node-1/pump"]; !table.Cluster || len(one) != 1 || *one[0].CPU != 7 || one[0].At.IsZero() {
			t.Errorf("of another node: %+v", got)
		}
		if eight := got["node-2/camera-inspection-line-3-9f27b"]; len(eight) != 8 || *eight[7].MemoryWorking != 270<<20 {
			t.Errorf("of the own node: %+v", got)
		}
		if table.Hidden != 2 || !slices.ContainsFunc(table.Problems, func(p string) bool { return strings.Contains(p, "node-4") && strings.Contains(p, "forbidden") }) {
			t.Errorf("%d are hidden, and it says %q", table.Hidden, table.Problems)
		}
		if kube.asked["node-2"] != 0 {
			t.Error("the own node is asked through the API server")
		}
	})
}

// The file has the newest samples, the agent's memory eight.
func TestTheSamplesThatTheFileLeavesOutComeFromTheAgent(t *testing.T) {
	s := newTopStage(t)
	kept := busyNode()
	kept.At = time.Now().UTC()
	brief := kept
	brief.Pods = slices.Clone(kept.Pods)
	brief.Pods[0].Samples = kept.Pods[0].Samples[7:]
	s.publish("KubeNodeMetrics", brief)
	c := s.top(topOptions{of: topPods}, false, nil)
	if m := c.lookAtOwn(t.Context(), true); len(m.Pods[0].Samples) != 1 {
		t.Errorf("with an agent that does not answer: %+v", m.Pods[0].Samples)
	}
	asked := 0
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", s.paths.Socket)
	if err != nil {
		t.Fatal(err)
	}
	agent := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == nodemetrics.Path {
			_ = json.NewEncoder(w).Encode(kept)
		}
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = agent.Serve(listener) })
	defer serving.Wait()
	defer agent.Close()
	defer c.client.CloseIdleConnections()
	for range 3 {
		if m := c.lookAtOwn(t.Context(), true); len(m.Pods[0].Samples) != 8 {
			t.Errorf("with an agent that answers: %+v", m.Pods[0].Samples)
		}
	}
	if asked != 1 {
		t.Errorf("it was asked %d times for what had not changed", asked)
	}
	if m := c.lookAtOwn(t.Context(), false); len(m.Pods[0].Samples) != 1 {
		t.Errorf("with an agent that does not run: %+v", m.Pods[0].Samples)
	}
}
