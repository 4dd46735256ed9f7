package apps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// taker is a Kube that counts what is taken from n2 while nothing keeps n2 from
// starting it again.
type taker struct {
	Kube
	w     *world
	early *atomic.Int32
}

func (k taker) see() {
	if n, ok := k.w.nodes.Get("n2"); ok && !n.OutOfService {
		k.early.Add(1)
	}
}

func (k taker) ForceDeletePod(ctx context.Context, p types.Pod) error {
	k.see()
	return k.Kube.ForceDeletePod(ctx, p)
}

func (k taker) ForgetVMI(ctx context.Context, v types.VMI) error {
	k.see()
	return k.Kube.ForgetVMI(ctx, v)
}

func (k taker) DeleteAttachment(ctx context.Context, a types.Attachment) error {
	k.see()
	return k.Kube.DeleteAttachment(ctx, a)
}

// The agents on n1 and n3 are started again at every second between the loss of
// n2 and its fence, and stay away for a while.
func TestALostNodeIsFencedBeforeAnythingIsTakenFromItWheneverAnAgentRestarts(t *testing.T) {
	for _, among := range [][]string{{"n1"}, {"n3"}, {"n1", "n3"}} {
		for away := range 2 {
			for at := 0; at < 32; at += 2 {
				t.Run(fmt.Sprintf("%v after %d s, away for %d s", among, at, 12*away), func(t *testing.T) {
					inWorld(t, func(w *world) { restartedAt(w, among, at, 12*away) })
				})
			}
		}
	}
}

func restartedAt(w *world, among []string, at, away int) {
	var early atomic.Int32
	watch := func(k Kube) Kube { return taker{k, w, &early} }
	for _, n := range []string{"n1", "n3"} {
		w.agents[n].stop()
		w.start(n, watch)
	}
	w.kube.Change(func() { _ = w.pods.Unpublish("eve-kube-app/other") }) // the machine is all that n2 has
	w.kube.SetAttachments(types.Attachment{Name: "va-1", UID: "va-1", Node: "n2", Volume: "pv-data"})
	w.lose()
	time.Sleep(time.Duration(at) * time.Second)
	for _, n := range among {
		w.agents[n].stop()
	}
	time.Sleep(time.Duration(away) * time.Second)
	for _, n := range among {
		w.start(n, watch)
	}
	w.until("it runs on n3", 2*time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
	if n := early.Load(); n > 0 {
		w.Errorf("%d things were taken from n2 before it was fenced", n)
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	if n, _ := w.nodes.Get("n2"); !n.OutOfService || n.Fence == nil {
		w.Error("the node is not fenced")
	}
}

// What was taken from a lost node while a fence would have put other data in
// danger is on no list of what the node has.
func TestAnAgentThatRestartsFencesANodeThatNothingIsLeftOn(t *testing.T) {
	inWorld(t, func(w *world) {
		v, f := volume("data"), volume("foreign")
		f.Replicas = f.Replicas[:1]
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		w.lose()
		w.until("it runs on n3", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
		if n, _ := w.nodes.Get("n2"); n.OutOfService {
			t.Error("the node is fenced although another application's data is there only")
		}
		for _, n := range []string{"n1", "n3"} {
			w.agents[n].stop()
			w.start(n)
		}
		time.Sleep(10 * time.Minute)
		w.kube.Change(func() { _ = w.pods.Unpublish("eve-kube-app/other") })
		w.kube.SetAttachments()
		w.until("the node is fenced", 3*time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return n.OutOfService })
		w.until("the note is wiped", time.Minute, func() bool {
			set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
			return set.Note == types.RepairNote{}
		})
	})
}

// A machine that is tied to its node waits for it, and starts as soon as the node
// is back.
func TestANodeIsFencedAfterWhatIsTiedToItWasTakenFromItByHand(t *testing.T) {
	inWorld(t, func(w *world) {
		set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
		set.Affinity.Required = true
		w.kube.Change(func() {
			w.nowhere = true
			_ = w.sets.Publish(set.Key(), set)
			_ = w.pods.Unpublish("eve-kube-app/other")
		})
		w.kube.SetAttachments(types.Attachment{Name: "va-1", UID: "va-1", Node: "n2", Volume: "pv-data"})
		w.lose()
		_ = w.agents["n3"].asked.Publish(appID, types.AppDetachRequest{Node: "n2", AppDomain: appID, Force: true, ID: uuid.New(), Asked: time.Now()})
		time.Sleep(3 * time.Minute)
		if n, _ := w.nodes.Get("n2"); !n.OutOfService || w.calls("forcedelete") == 0 {
			t.Errorf("fenced %v after %v", n.OutOfService, w.verbs())
		}
	})
}

// behind is a table of nodes whose watch does not bring the taint of a fence.
type behind struct{ pubsub.Reader[types.Node] }

func (b behind) All() map[string]types.Node {
	nodes := maps.Clone(b.Reader.All())
	for name, n := range nodes {
		n.OutOfService, n.Fence = false, nil
		nodes[name] = n
	}
	return nodes
}

func TestAFenceIsNotRepeatedAtOnceWhileTheTableDoesNotShowIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agents["n3"].stop()
		w.agents["n3"].stop = func() {}
		a := w.agents["n1"]
		a.stop()
		a.nodes = behind{&w.nodes}
		w.start("n1")
		w.kube.SetLatency(50 * time.Millisecond)
		w.lose()
		w.until("n2 is fenced", time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return n.OutOfService })
		time.Sleep(time.Minute)
		if fences, repairs := w.calls("fence"), w.calls("repair"); fences > 13 || repairs > 30 {
			t.Errorf("in a minute n2 was fenced %d times, with %d repair leases and %d Events", fences, repairs, len(w.kube.Events()))
		}
	})
}
