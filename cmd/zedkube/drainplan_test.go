package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/types"
)

// harmless EVICTIONS COMMAND...: runs zedkube with these words and looks at the
// API server's audit log: it may write nothing but so many evictions, which
// "pods" has to show to have been dry runs. The agents must not run meanwhile,
// because they write too.
func harmless(s *story, ts *testscript.TestScript, args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	before, err := s.fleet.Cluster.Calls()
	if err != nil {
		return err
	}
	if err := ts.Exec("zedkube", args[1:]...); err != nil {
		return err
	}
	reads, evictions := 0, 0
	err = eventually(func() string { // the log is behind the answers
		calls, err := s.fleet.Cluster.Calls()
		if err != nil {
			return err.Error()
		}
		reads, evictions = 0, 0
		for _, call := range calls[len(before):] {
			switch {
			case !strings.HasPrefix(call.UserAgent, "zedkube/"):
			case call.Verb == "get" || call.Verb == "list" || call.Verb == "watch":
				reads++
			case call.Verb == "create" && call.Resource == "pods" && call.Subresource == "eviction":
				evictions++
			default:
				ts.Fatalf("it has written: %+v", call)
			}
		}
		if evictions < want || reads == 0 {
			return fmt.Sprintf("%d evictions and %d reads are in the audit log", evictions, reads)
		}
		return ""
	})
	if err == nil && evictions > want {
		err = fmt.Errorf("%d evictions were tried, not %d", evictions, want)
	}
	return err
}

// prospects is a cluster of which not everything can be had.
type prospects struct {
	askedCluster
	pods    []types.Pod
	fails   string // the verb that fails
	tried   atomic.Int32
	at      atomic.Int32
	most    atomic.Int32
	refused string // pod
}

func (c *prospects) answer(verb string) error {
	if verb == c.fails {
		return fmt.Errorf("%s: %w", verb, types.ErrNoAnswer)
	}
	return nil
}

func (c *prospects) FreshNodes(context.Context) ([]types.Node, error) {
	return c.nodes, c.answer("nodes")
}

func (c *prospects) DrainLock(context.Context) (types.DrainLock, error) {
	return c.lock, c.answer("lock")
}

func (c *prospects) PodsToEvict(context.Context, string) ([]types.Pod, error) {
	return c.pods, c.answer("pods")
}

func (c *prospects) Storage(context.Context, string) (types.Storage, error) {
	return types.Storage{}, c.answer("storage")
}

func (c *prospects) Situations(context.Context, string, []types.Pod) ([]types.PodSituation, error) {
	return nil, c.answer("situations")
}

func (c *prospects) PlanEvict(_ context.Context, pod types.Pod) error {
	c.tried.Add(1)
	c.most.Store(max(c.most.Load(), c.at.Add(1)))
	defer c.at.Add(-1)
	time.Sleep(time.Millisecond)
	if pod.Key() == c.refused {
		return types.ErrDisruptionBudget
	}
	return c.answer("evictions")
}

func podsNamed(n int) []types.Pod {
	var pods []types.Pod
	for i := range n {
		pods = append(pods, types.Pod{Namespace: "app", Name: strconv.Itoa(i)})
	}
	return pods
}

func TestAPlanLooksAtEverythingAndSaysWhatItCouldNotSee(t *testing.T) {
	for fails, c := range map[string]struct {
		code    int
		unknown []string
	}{
		"":           {0, nil},
		"nodes":      {2, nil},
		"pods":       {2, nil},
		"lock":       {0, []string{"the drain lock: lock: " + types.ErrNoAnswer.Error()}},
		"storage":    {0, []string{"the volumes: storage: " + types.ErrNoAnswer.Error()}},
		"situations": {0, []string{"why pods do not move: situations: " + types.ErrNoAnswer.Error()}},
	} {
		cluster := &prospects{askedCluster: askedCluster{nodes: threeNodes()}, pods: podsNamed(20), fails: fails, refused: "app/7"}
		p, err := lookAhead(t.Context(), cluster, ownInfo)
		if code := exitCode(apiError(err)); code != c.code {
			t.Errorf("%s fails: exit code %d: %v", fails, code, err)
		}
		if err != nil {
			continue
		}
		if d := cmp.Diff(c.unknown, p.Unknown); d != "" {
			t.Errorf("%s fails: want -, got +\n%s", fails, d)
		}
		if p.Own != "node-2" || len(p.Pods) != 20 || len(p.Refused) != 1 || !errors.Is(p.Refused["app/7"], types.ErrDisruptionBudget) {
			t.Errorf("%s fails: got %+v", fails, p)
		}
		if len(cluster.did) > 0 {
			t.Errorf("it did %q", cluster.did)
		}
	}
}

func TestAPlanTriesABoundedNumberOfEvictions(t *testing.T) {
	cluster := &prospects{askedCluster: askedCluster{nodes: threeNodes()}, pods: podsNamed(triedPods + 10)}
	p, err := lookAhead(t.Context(), cluster, ownInfo)
	if err != nil {
		t.Fatal(err)
	}
	if cluster.tried.Load() != triedPods || cluster.most.Load() > triedWith {
		t.Errorf("%d tried, %d at a time", cluster.tried.Load(), cluster.most.Load())
	}
	if d := cmp.Diff([]string{"the evictions of the last 10 pods were not tried"}, p.Unknown); d != "" {
		t.Error("want -, got +\n" + d)
	}
}
