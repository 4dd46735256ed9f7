package plan

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// aheadCluster is a cluster of which not everything can be had. No verb of it changes
// anything.
type aheadCluster struct {
	nodes   []types.Node
	lock    types.DrainLock
	pods    []types.Pod
	fails   string // the verb that fails
	tried   atomic.Int32
	at      atomic.Int32
	most    atomic.Int32
	refused string // pod
}

func (c *aheadCluster) answer(verb string) error {
	if verb == c.fails {
		return fmt.Errorf("%s: %w", verb, types.ErrNoAnswer)
	}
	return nil
}

func (c *aheadCluster) FreshNodes(context.Context) ([]types.Node, error) {
	return c.nodes, c.answer("nodes")
}

func (c *aheadCluster) DrainLock(context.Context) (types.DrainLock, error) {
	return c.lock, c.answer("lock")
}

func (c *aheadCluster) PodsToEvict(context.Context, string) ([]types.Pod, error) {
	return c.pods, c.answer("pods")
}

func (c *aheadCluster) Storage(context.Context, string) (types.Storage, error) {
	return types.Storage{}, c.answer("storage")
}

func (c *aheadCluster) Situations(context.Context, string, []types.Pod) ([]types.PodSituation, error) {
	return nil, c.answer("situations")
}

func (c *aheadCluster) PlanEvict(_ context.Context, pod types.Pod) error {
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
		cluster := &aheadCluster{nodes: cmdtest.ThreeNodes(), pods: podsNamed(20), fails: fails, refused: "app/7"}
		p, err := LookAhead(t.Context(), cluster, cmdtest.OwnInfo)
		if code := terminal.ExitCode(device.APIError(err)); code != c.code {
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
	}
}

func TestAPlanTriesABoundedNumberOfEvictions(t *testing.T) {
	cluster := &aheadCluster{nodes: cmdtest.ThreeNodes(), pods: podsNamed(triedPods + 10)}
	p, err := LookAhead(t.Context(), cluster, cmdtest.OwnInfo)
	if err != nil {
		t.Fatal(err)
	}
	if cluster.tried.Load() != triedPods || cluster.most.Load() > triedWith {
		t.Errorf("%d tried, %d at a time", cluster.tried.Load(), cluster.most.Load())
	}
	if d := cmp.Diff([]string{fmt.Sprintf("the evictions of 10 of %d pods were not tried", triedPods+10)}, p.Unknown); d != "" {
		t.Error("want -, got +\n" + d)
	}
}
