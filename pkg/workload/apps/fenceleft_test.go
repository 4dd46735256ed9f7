package apps

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestANoteOfAFenceGoesWhereSomebodyHasRemovedTheTaint(t *testing.T) {
	inWorld(t, func(w *world) {
		node := func() types.Node { n, _ := w.nodes.Get("n2"); return n }
		change := func(f func(*types.Node)) {
			w.kube.Change(func() { n := node(); f(&n); _ = w.nodes.Publish("n2", n) })
		}
		change(func(n *types.Node) { n.FenceLeft, n.Ready = &types.Fence{By: "n1"}, types.ConditionFalse })
		time.Sleep(5 * time.Minute)
		if w.calls("unfence") > 0 {
			t.Error("it is removed before the Node is Ready")
		}
		w.kube.SetRunningPods("n2", types.PodRef{Namespace: "eve-kube-app", Name: "any", UID: "any"}) // no taint keeps it from starting
		change(func(n *types.Node) { n.Ready = types.ConditionTrue })
		w.until("the note is gone", time.Minute, func() bool { return node().FenceLeft == nil })
		change(func(n *types.Node) { n.OutOfService = true })
		time.Sleep(10 * time.Minute)
		if n := node(); !n.OutOfService || w.calls("unfence") != 1 {
			t.Errorf("a person's taint later: out of service %v after %v", n.OutOfService, w.verbs())
		}
	})
}
