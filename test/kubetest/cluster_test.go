package kubetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func newCluster(nodes ...types.Node) *Cluster {
	c := &Cluster{
		Nodes: &pubsub.Table[types.Node]{}, Pods: &pubsub.Table[types.Pod]{}, API: &pubsub.Table[types.APIStatus]{},
	}
	for _, n := range nodes {
		_ = c.Nodes.Publish(n.Name, n)
	}
	return c
}

func row(t *testing.T, c *Cluster, name string) types.Node {
	t.Helper()
	n, ok := c.Nodes.Get(name)
	if !ok {
		t.Fatalf("no node %s", name)
	}
	return n
}

func TestOfManyNodesThatRaceForTheLockOneWins(t *testing.T) {
	c := newCluster()
	var won, lost int
	var mu sync.Mutex
	var racing sync.WaitGroup
	for i := range 20 {
		racing.Go(func() {
			_, err := c.SetDrainLock(t.Context(), types.DrainLock{Holder: fmt.Sprint("n", i)})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if errors.Is(err, types.ErrConflict) {
				lost++
			}
		})
	}
	racing.Wait()
	if won != 1 || lost != 19 {
		t.Errorf("%d won, %d lost", won, lost)
	}
	lock := c.Lock()
	if _, err := c.SetDrainLock(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	if err := c.FreeDrainLock(t.Context(), lock); !errors.Is(err, types.ErrConflict) {
		t.Errorf("a lock that had changed was freed: %v", err)
	}
	if err := c.FreeDrainLock(t.Context(), c.Lock()); err != nil || c.Lock().Version != "" {
		t.Errorf("the lock was not freed: %v", err)
	}
}

func TestWritesFromManyNodesAllLand(t *testing.T) {
	c := newCluster(types.Node{Name: "n1"})
	var writing sync.WaitGroup
	for range 50 {
		writing.Go(func() { _ = c.Stamp(t.Context(), "n1", types.AgentStamp{Version: "1"}) })
		writing.Go(func() { _ = c.Cordon(t.Context(), "n1", types.Cordon{}) })
		writing.Go(func() { c.ChangeNode("n1", func(n *types.Node) { n.BootID += "x" }) })
		writing.Go(func() { _, _ = c.FreshNodes(t.Context()) })
	}
	writing.Wait()
	if n := row(t, c, "n1"); n.Agent == nil || n.CordonedBy == nil || len(n.BootID) != 50 {
		t.Errorf("something was lost: %+v", n)
	}
}

func TestAnAnswerIsLostAfterTheCallTookEffect(t *testing.T) {
	c := newCluster(types.Node{Name: "n1"})
	c.LoseAnswer("cordon")
	if err := c.Cordon(t.Context(), "n1", types.Cordon{}); !errors.Is(err, types.ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	if !row(t, c, "n1").Unschedulable {
		t.Error("it took no effect")
	}
	if err := c.Cordon(t.Context(), "n1", types.Cordon{}); err != nil {
		t.Errorf("the next one failed, too: %v", err)
	}
}

func TestSilenceIsNoAnswerToAWriteAndNothingSpecialElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(types.Node{Name: "n1"})
		for _, fault := range []Fault{Refused, Hung} {
			c.SetFault(fault)
			if err := c.Stamp(t.Context(), "n1", types.AgentStamp{}); !errors.Is(err, types.ErrNoAnswer) {
				t.Errorf("fault %v: stamp: %v", fault, err)
			}
			if err := c.Evict(t.Context(), types.Pod{}); err == nil || errors.Is(err, types.ErrNoAnswer) {
				t.Errorf("fault %v: evict: %v", fault, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Uncordon(ctx, "n1"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, types.ErrNoAnswer) {
			t.Errorf("a caller in a hurry got %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := c.Uncordon(ctx, "n1"); !errors.Is(err, context.Canceled) || errors.Is(err, types.ErrNoAnswer) {
			t.Errorf("a caller who gave up got %v", err)
		}
		c.SetFault(Refused)
		if err := c.Uncordon(t.Context(), "n1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAGateKeepsCallersOutWhomNobodyAnswers(t *testing.T) {
	type from struct{}
	c := newCluster(types.Node{Name: "n1"})
	c.Gate = func(ctx context.Context, verb string) error {
		if ctx.Value(from{}) == "n2" && verb == "cordon" {
			return syscall.ECONNREFUSED
		}
		return nil
	}
	n2 := context.WithValue(t.Context(), from{}, "n2")
	if err := c.Cordon(n2, "n1", types.Cordon{}); !errors.Is(err, types.ErrNoAnswer) || !errors.Is(err, syscall.ECONNREFUSED) || row(t, c, "n1").Unschedulable {
		t.Errorf("n2: %v", err)
	}
	if err := c.Cordon(t.Context(), "n1", types.Cordon{}); err != nil || !row(t, c, "n1").Unschedulable {
		t.Errorf("another one: %v", err)
	}
	if _, err := c.FreshNodes(n2); err != nil {
		t.Errorf("another verb: %v", err)
	}
}

func TestACordonIsUndoneOnlyByWhomItBelongsTo(t *testing.T) {
	boot := time.Now()
	by := types.Cordon{Reason: "reboot", Since: boot}
	legacy := types.Node{Name: "n1", Unschedulable: true, TaintedAt: boot.Add(-time.Hour)}
	stamped := legacy
	stamped.Agent = &types.AgentStamp{}
	for name, story := range map[string]struct {
		start  types.Node
		acts   func(*Cluster) error
		stands bool
	}{
		"our own":         {types.Node{Name: "n1"}, func(c *Cluster) error { return c.Cordon(t.Context(), "n1", by) }, false},
		"foreign":         {legacy, func(c *Cluster) error { return c.Cordon(t.Context(), "n1", by) }, true},
		"legacy":          {legacy, func(c *Cluster) error { return c.UncordonLegacy(t.Context(), "n1", boot) }, false},
		"legacy, stamped": {stamped, func(c *Cluster) error { return c.UncordonLegacy(t.Context(), "n1", boot) }, true},
		"kept": {types.Node{Name: "n1"}, func(c *Cluster) error {
			return errors.Join(c.Cordon(t.Context(), "n1", by), c.KeepCordon(t.Context(), "n1"))
		}, true},
		"kept no more": {types.Node{Name: "n1"}, func(c *Cluster) error {
			return errors.Join(c.Cordon(t.Context(), "n1", by), c.KeepCordon(t.Context(), "n1"), c.Cordon(t.Context(), "n1", by))
		}, false},
	} {
		c := newCluster(story.start)
		if err := errors.Join(story.acts(c), c.Uncordon(t.Context(), "n1")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := row(t, c, "n1"); n.Unschedulable != story.stands {
			t.Errorf("%s: %+v", name, n)
		}
	}
	if err := newCluster(legacy).KeepCordon(t.Context(), "n1"); err == nil {
		t.Error("a foreign cordon was kept")
	}
}
