package apps

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// killer is a Kube that ends its node's agent at a call: of all agents', the at-th.
type killer struct {
	Kube
	node string
	*doom
}

type doom struct {
	effect string                   // none: any call but Event
	told   func(types.Event) string // the effect of an Event; nil where none counts
	at     int
	after  bool // the call takes effect first
	mu     sync.Mutex
	n      int
	dies   chan string // the node whose agent dies
}

// short reports whether fewer calls were made than the fatal one.
func (d *doom) short() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n < d.at
}

func (k *killer) pass(effect string, do func() error) error {
	if k.effect != "" && k.effect != effect {
		return do()
	}
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
	return k.pass(ofSet("note repair", s), func() error { return k.Kube.NoteRepair(ctx, s, n) })
}

func (k *killer) ForceDeletePod(ctx context.Context, p types.Pod) error {
	return k.pass("", func() error { return k.Kube.ForceDeletePod(ctx, p) })
}

func (k *killer) ForgetVMI(ctx context.Context, v types.VMI) error {
	return k.pass("", func() error { return k.Kube.ForgetVMI(ctx, v) })
}

func (k *killer) DeleteAttachment(ctx context.Context, a types.Attachment) error {
	return k.pass("", func() error { return k.Kube.DeleteAttachment(ctx, a) })
}

func (k *killer) Fence(ctx context.Context, n types.Node, f types.Fence) error {
	return k.pass("", func() error { return k.Kube.Fence(ctx, n, f) })
}

func (k *killer) Unfence(ctx context.Context, n types.Node) error {
	return k.pass("", func() error { return k.Kube.Unfence(ctx, n) })
}

func (k *killer) FreshNodes(ctx context.Context) (nodes []types.Node, err error) {
	return nodes, k.pass("", func() error { nodes, err = k.Kube.FreshNodes(ctx); return err })
}

// Effects as the kill points name them.
const (
	scales      = "scale: patch virtualmachineinstancereplicasets.kubevirt.io"
	scalesPods  = "scale: patch replicasets"
	moves       = "set affinity: patch virtualmachineinstancereplicasets.kubevirt.io"
	notesOnPods = "note repair: patch replicasets"
	renews      = "delete vmi: delete virtualmachineinstances.kubevirt.io"
	evicts      = "evict: create pods/eviction"
	tellsAgain  = "patch events"
)

// ofSet is the effect of an operation on a replica set.
func ofSet(operation string, s types.AppSet) string {
	if s.Kind == types.KindReplicaSet {
		return operation + ": patch replicasets"
	}
	return operation + ": patch virtualmachineinstancereplicasets.kubevirt.io"
}

func (k *killer) Event(ctx context.Context, e types.Event) error {
	if k.told == nil {
		return k.Kube.Event(ctx, e)
	}
	return k.pass(k.told(e), func() error { return k.Kube.Event(ctx, e) })
}

func (k *killer) SetWanted(ctx context.Context, s types.AppSet, n int32) error {
	return k.pass(ofSet("scale", s), func() error { return k.Kube.SetWanted(ctx, s, n) })
}

func (k *killer) SetAffinity(ctx context.Context, s types.AppSet, node string, required bool, n types.RepairNote) error {
	return k.pass(ofSet("set affinity", s), func() error { return k.Kube.SetAffinity(ctx, s, node, required, n) })
}

func (k *killer) DeleteVMI(ctx context.Context, v types.VMI) error {
	return k.pass(renews, func() error { return k.Kube.DeleteVMI(ctx, v) })
}

func (k *killer) Evict(ctx context.Context, p types.Pod) error {
	return k.pass(evicts, func() error { return k.Kube.Evict(ctx, p) })
}

// The agent that acts dies at one of them, and comes back.
func TestAnApplicationIsWellWhereverTheAgentOfItsRepairDies(t *testing.T) {
	for effect, row := range map[string]struct {
		begin func(w *world)
		ends  func(w *world) bool
		times map[string]int // calls of a verb in all, at most
	}{
		scales: {
			leavesAtNone, func(w *world) bool { return w.set().Wanted == 1 }, map[string]int{"wanted": 1},
		},
		scalesPods: {
			func(w *world) { w.contain(); leavesAtNone(w) },
			func(w *world) bool { return w.set().Wanted == 1 && slices.Equal(w.runsOn(), []string{"n2"}) },
			map[string]int{"wanted": 1},
		},
		notesOnPods: {
			func(w *world) { w.contain(); w.lose() },
			func(w *world) bool {
				return w.set().Note == types.RepairNote{} && slices.Equal(w.runsOn(), []string{"n3"})
			},
			map[string]int{"forcedelete": 1, "deleteattachment": 1},
		},
		tellsAgain: { // the second time says what the first one said
			func(w *world) {
				leavesAtNone(w)
				w.until("it is scaled", time.Hour, func() bool { return w.set().Wanted == 1 })
				leavesAtNone(w)
			},
			func(w *world) bool { return w.set().Wanted == 1 },
			map[string]int{"wanted": 2, "event": 2},
		},
		moves: {
			func(w *world) {
				w.tie()
				time.Sleep(10 * time.Minute)
				w.lose()
				time.Sleep(2 * time.Minute)
				w.designate("n1")
			},
			func(w *world) bool { return slices.Equal(w.runsOn(), []string{"n1"}) },
			map[string]int{"affinity": 1},
		},
		renews: {
			neverStarts, func(w *world) bool { s, _ := w.agents["n1"].repairs.Get(appID); return s.Phase == types.RepairGaveUp }, map[string]int{"deletevmi": mostStuck},
		},
		evicts: { // counted before, so it may be missing, but is never done twice
			returnsAfterBoot, func(*world) bool { return true }, map[string]int{"evict": 1},
		},
	} {
		for when, after := range map[string]bool{"/before": false, "/after": true} {
			t.Run(effect+when, func(t *testing.T) {
				for range seeds.Each(t, 1) {
					inWorld(t, func(w *world) {
						w.dieOnce(&doom{effect: effect, after: after}, row.begin)
						seeds.Killed(t, "apps/"+effect+when)
						w.until("it is repaired", 2*time.Hour, func() bool { return row.ends(w) })
						time.Sleep(time.Hour)
						for verb, times := range row.times {
							if n := w.calls(verb); n > times {
								t.Errorf("%s was called %d times", verb, n)
							}
						}
						w.zero = false // not by us
					})
				}
			})
		}
	}
}

// dieOnce tells a story in which the first agent that makes that call dies of it, and starts again.
func (w *world) dieOnce(d *doom, begin func(*world)) {
	d.at, d.dies, d.told = 1, make(chan string, 1), w.kube.EventEffect
	w.wrap = func(node string, k Kube) Kube { return &killer{Kube: k, node: node, doom: d} }
	for _, n := range []string{"n1", "n2", "n3"} {
		w.agents[n].stop()
		w.start(n)
	}
	begin(w)
	select {
	case node := <-d.dies:
		w.agents[node].stop()
		w.start(node)
	case <-time.After(2 * time.Hour):
		w.Fatal("nobody came there")
	}
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
