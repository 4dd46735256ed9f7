package kubeapi

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// beating is a Node whose kubelet has just written its status, by a clock that is
// so far ahead of ours.
func beating(name string, ahead time.Duration) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Now().Add(ahead).Truncate(time.Second))},
		}},
	}
}

// nodeWatch is a watched table of nodes in fake time.
type nodeWatch struct {
	t      *testing.T
	rows   access.Store
	clocks pubsub.Table[types.NodeClock]
}

func watchNodes(t *testing.T, play func(*nodeWatch)) {
	synctest.Test(t, func(t *testing.T) {
		w := &nodeWatch{t: t}
		w.rows = nodeRows(&pubsub.Table[types.Node]{}, nil, nodes.NewClocks(kubetest.Quiet(), &w.clocks), &nodes.Stamps{})
		play(w)
	})
}

func (w *nodeWatch) brings(n *corev1.Node) {
	w.t.Helper()
	if err := w.rows.Update(n); err != nil {
		w.t.Fatal(err)
	}
}

func (w *nodeWatch) is(node string, ahead time.Duration) {
	w.t.Helper()
	if c, ok := w.clocks.Get(node); !ok || (c.Ahead-ahead).Abs() > time.Second {
		w.t.Errorf("the clock of %s is %+v (%v), want %v", node, c, ok, ahead)
	}
}

func TestAClockIsReadOffHeartbeats(t *testing.T) {
	watchNodes(t, func(w *nodeWatch) {
		w.brings(beating("n2", time.Hour))
		if len(w.clocks.All()) > 0 {
			t.Errorf("what was first seen may be as old as it likes: %v", w.clocks.All())
		}
		for range 2 {
			time.Sleep(5 * time.Minute)
			w.brings(beating("n2", 5*time.Minute))
			w.is("n2", 5*time.Minute)
		}
		for range 2 {
			time.Sleep(5 * time.Minute)
			w.brings(beating("n2", -5*time.Minute))
		}
		w.is("n2", -5*time.Minute)
	})
}

func TestAHeartbeatThatComesLateIsNoSlowClock(t *testing.T) {
	watchNodes(t, func(w *nodeWatch) {
		w.brings(beating("n2", 0))
		time.Sleep(5 * time.Minute)
		w.brings(beating("n2", 0))
		time.Sleep(5 * time.Minute)
		late := beating("n2", 0)
		time.Sleep(2 * time.Minute)
		w.brings(late)
		w.is("n2", 0)
		late.Labels = map[string]string{"some": "label"} // the same heartbeat again
		time.Sleep(2 * time.Minute)
		w.brings(late)
		time.Sleep(time.Minute)
		w.brings(beating("n2", 0))
		w.is("n2", 0)
	})
}

func TestASteadyClockIsNoNews(t *testing.T) {
	watchNodes(t, func(w *nodeWatch) {
		bell := make(chan struct{}, 1)
		rings := 0
		w.clocks.Notify(bell)
		for i := range 100 {
			time.Sleep(5*time.Minute + time.Duration(i%7)*time.Second/7)
			w.brings(beating("n2", time.Duration(i%5)*time.Second))
			select {
			case <-bell:
				rings++
			default:
			}
		}
		if rings > 2 {
			t.Errorf("it rang %d times", rings)
		}
	})
}

func TestALostNodeHasNoHeartbeat(t *testing.T) {
	watchNodes(t, func(w *nodeWatch) {
		w.brings(beating("n2", 0))
		time.Sleep(5 * time.Minute)
		w.brings(beating("n2", 0))
		time.Sleep(5 * time.Minute)
		lost := beating("n2", time.Hour)
		lost.Status.Conditions[0].Status = corev1.ConditionUnknown
		w.brings(lost)
		w.is("n2", 0)
		if err := w.rows.Delete(lost); err != nil {
			t.Fatal(err)
		}
		if len(w.clocks.All()) > 0 {
			t.Errorf("a node that is gone has a clock: %v", w.clocks.All())
		}
	})
}
