package apps

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func TestAnApplicationOfADeadNodeRunsElsewhereWithinAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		time.Sleep(time.Minute)
		w.lose()
		took := w.until("it runs on n3", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
		t.Logf("after %s: %v", took, w.verbs())
		if got := w.attachments(); !slices.Equal(got, []string{"va-2"}) {
			t.Errorf("attachments left: %v", got)
		}
		if n, _ := w.nodes.Get("n2"); !n.OutOfService || n.Fence == nil {
			t.Error("the node is not fenced")
		}
		w.until("the note is wiped and all is well", time.Minute, func() bool {
			set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
			one, _ := w.agents["n1"].repairs.Get(appID)
			return set.Note == types.RepairNote{} && one.Phase == types.RepairWell && one.Node == "n3"
		})
		before := w.verbs()
		time.Sleep(time.Hour)
		if after := w.verbs(); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("an hour later: %v, before %v", after, before)
		}
		steps := 0
		for _, a := range w.agents {
			s, _ := a.repairs.Get(appID)
			steps += len(s.Steps)
		}
		if events := w.kube.Events(); steps < 3 || len(events) < steps {
			t.Errorf("%d steps and %d Events were told", steps, len(events))
		}

		w.kube.SetRunningPods("n2", types.PodRef{Namespace: "eve-kube-app", Name: "stale", UID: "l"})
		w.kube.Change(func() { w.setReady("n2", types.ConditionTrue) })
		w.start("n2")
		time.Sleep(time.Minute)
		if n, _ := w.nodes.Get("n2"); !n.OutOfService {
			t.Error("the node is back in service while it runs a stale copy")
		}
		w.kube.SetRunningPods("n2", types.PodRef{Namespace: "kube-system", Name: "any", UID: "any"})
		w.until("the node is in service", time.Minute, func() bool {
			n, _ := w.nodes.Get("n2")
			return !n.OutOfService && n.Fence == nil
		})
	})
}

func TestANodeThatIsCutOffForAMomentKeepsItsApplication(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lose()
		time.Sleep(9 * time.Second)
		w.kube.Change(func() { w.setReady("n2", types.ConditionTrue) })
		time.Sleep(5 * time.Minute)
		if got := w.verbs(); len(got) != 0 || !slices.Equal(w.runsOn(), []string{"n2"}) {
			t.Errorf("it runs on %v after %v", w.runsOn(), got)
		}
	})
}

func TestAnApplicationWithoutAWholeReplicaElsewhereIsNotTouched(t *testing.T) {
	inWorld(t, func(w *world) {
		v, f := volume("data"), volume("foreign")
		v.Replicas[1].LastMode = "ERR"
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		w.lose()
		time.Sleep(time.Hour)
		s, _ := w.agents["n1"].repairs.Get(appID)
		if got := w.verbs(); len(got) != 0 || s.Phase != types.RepairRefused || s.Lost != "n2" {
			t.Errorf("%v, %+v", got, s)
		}
		warned := 0
		for _, e := range w.agents["n1"].logged.AllEntries() {
			if e.Data["phase"] == types.RepairRefused {
				warned++
			}
		}
		if warned != 1 {
			t.Errorf("it was said %d times in an hour", warned)
		}
		_ = w.agents["n3"].asked.Publish(appID, types.AppDetachRequest{Node: "n2", AppDomain: appID, Force: true, ID: uuid.New(), Asked: time.Now()})
		w.until("by force it runs on n3", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
	})
}

func TestANodeWithAnotherApplicationInDangerIsNotFenced(t *testing.T) {
	inWorld(t, func(w *world) {
		v, f := volume("data"), volume("foreign")
		f.Replicas = f.Replicas[:1]
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		w.lose()
		w.until("it runs on n3", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
		if n, _ := w.nodes.Get("n2"); n.OutOfService || !slices.Equal(w.attachments(), []string{"va-2"}) {
			t.Errorf("fenced %v, attachments %v", n.OutOfService, w.attachments())
		}
		if p, ok := w.pods.Get("eve-kube-app/other"); !ok || p.UID != "other" {
			t.Error("the other application was touched")
		}
	})
}

func TestATiedApplicationStaysAndIsNotStartedBesideItsStaleCopy(t *testing.T) {
	inWorld(t, func(w *world) {
		set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
		set.Affinity.Required = true
		w.kube.Change(func() { _ = w.sets.Publish(set.Key(), set) })
		v, f := volume("data"), volume("foreign")
		v.Replicas = v.Replicas[:1]
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		w.lose()
		w.until("the node is fenced", time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return n.OutOfService })
		time.Sleep(10 * time.Minute)
		s, _ := w.agents["n1"].repairs.Get(appID)
		if got := w.verbs(); len(got) != 1 || s.Phase != types.RepairRefused {
			t.Errorf("%v, %+v", got, s)
		}
		w.kube.SetRunningPods("n2", types.PodRef{Namespace: "eve-kube-app", Name: "stale", UID: "gone"})
		w.kube.Change(func() { w.setReady("n2", types.ConditionTrue) })
		time.Sleep(time.Minute)
		if n, _ := w.nodes.Get("n2"); !n.OutOfService {
			t.Error("the node is back in service beside a stale copy")
		}
		w.kube.SetRunningPods("n2")
		w.until("the node is in service", 10*time.Second, func() bool { n, _ := w.nodes.Get("n2"); return !n.OutOfService })
	})
}

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
			} else { // a stamp without an agent would veto
				w.kube.Change(func() {
					n, _ := w.nodes.Get(node)
					n.Agent = nil
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
			return d.n < d.at
		}
	})
	time.Sleep(time.Minute)
	synctest.Wait()
	if !slices.Equal(w.runsOn(), []string{"n3"}) {
		w.Errorf("in the end it runs on %v", w.runsOn())
	}
	if d.n < d.at && d.at <= 8 {
		w.Errorf("only %d calls were made", d.n)
	}
}
