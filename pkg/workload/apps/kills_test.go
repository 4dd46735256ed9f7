package apps

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/types"
)

// killer is a Kube that ends its node's agent at a call: of all agents', the at-th.
type killer struct {
	Kube
	node string
	*doom
}

type doom struct {
	at    int
	after bool // the call takes effect first
	mu    sync.Mutex
	n     int
	dies  chan string // the node whose agent dies
}

// short reports whether fewer calls were made than the fatal one.
func (d *doom) short() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n < d.at
}

func (k *killer) pass(do func() error) error {
	k.mu.Lock()
	k.n++
	now := k.n == k.at
	k.mu.Unlock()
	if !now {
		return do()
	}
	var err error
	if k.after {
		err = do()
	}
	k.dies <- k.node
	if err == nil {
		err = context.Canceled
	}
	return err
}

func (k *killer) NoteRepair(ctx context.Context, s types.AppSet, n types.RepairNote) error {
	return k.pass(func() error { return k.Kube.NoteRepair(ctx, s, n) })
}

func (k *killer) ForceDeletePod(ctx context.Context, p types.Pod) error {
	return k.pass(func() error { return k.Kube.ForceDeletePod(ctx, p) })
}

func (k *killer) ForgetVMI(ctx context.Context, v types.VMI) error {
	return k.pass(func() error { return k.Kube.ForgetVMI(ctx, v) })
}

func (k *killer) DeleteAttachment(ctx context.Context, a types.Attachment) error {
	return k.pass(func() error { return k.Kube.DeleteAttachment(ctx, a) })
}

func (k *killer) Fence(ctx context.Context, n types.Node, f types.Fence) error {
	return k.pass(func() error { return k.Kube.Fence(ctx, n, f) })
}

func (k *killer) Unfence(ctx context.Context, n types.Node) error {
	return k.pass(func() error { return k.Kube.Unfence(ctx, n) })
}

func (k *killer) FreshNodes(ctx context.Context) (nodes []types.Node, err error) {
	return nodes, k.pass(func() error { nodes, err = k.Kube.FreshNodes(ctx); return err })
}

// The agent that acts is killed at each of its calls, before and after it takes
// effect, and comes back later or never.
func TestAFailoverEndsWellWhereverItsAgentDies(t *testing.T) {
	for at := 1; at <= 10; at++ {
		for _, after := range []bool{false, true} {
			for _, back := range []bool{false, true} {
				t.Run(fmt.Sprintf("at call %d, after %v, back %v", at, after, back), func(t *testing.T) {
					inWorld(t, func(w *world) { killedAt(w, at, after, back) })
				})
			}
		}
	}
}

func killedAt(w *world, at int, after, back bool) {
	d := &doom{at: at, after: after, dies: make(chan string, 1)}
	if !back { // the one that is left needs a second witness
		_ = w.nodes.Publish("n4", types.Node{Name: "n4", UID: "uid-n4", Ready: types.ConditionTrue, Unschedulable: true, Agent: &types.AgentStamp{}})
	}
	for _, n := range []string{"n1", "n3"} {
		w.agents[n].stop()
		w.start(n, func(k Kube) Kube { return &killer{Kube: k, node: n, doom: d} })
	}
	died := make(chan struct{})
	go func() {
		select {
		case node := <-d.dies:
			defer close(died)
			w.agents[node].stop()
			w.agents[node].stop = func() {}
			if back {
				time.Sleep(3 * time.Second)
				w.start(node)
			} else { // a fresh stamp without an agent would veto
				w.kube.Change(func() {
					n, _ := w.nodes.Get(node)
					n.StampStale, n.Witness = true, nil
					_ = w.nodes.Publish(node, n)
				})
			}
		case <-w.Context().Done():
		}
	}()
	w.lose()
	w.until("it runs on n3", 90*time.Second, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
	w.until("nothing is left of it on n2", time.Minute, func() bool {
		for _, v := range w.vmis.All() {
			if v.NodeName == "n2" {
				return false
			}
		}
		return slices.Equal(w.attachments(), []string{"va-2"})
	})
	w.until("the agent has died", time.Minute, func() bool {
		select {
		case <-died:
			return true
		default:
			return d.short()
		}
	})
	time.Sleep(time.Minute)
	synctest.Wait()
	if !slices.Equal(w.runsOn(), []string{"n3"}) {
		w.Errorf("in the end it runs on %v", w.runsOn())
	}
	if d.short() && d.at <= 8 {
		w.Errorf("fewer than %d calls were made", d.at)
	}
}
