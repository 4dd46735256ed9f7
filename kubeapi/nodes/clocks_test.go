package nodes

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func beat(ready corev1.ConditionStatus, at time.Time) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.NewTime(at)}}
	return n
}

// Its last heartbeats may have come late, over a bad network.
func TestTheClockOfANodeThatIsLostIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table pubsub.Table[types.NodeClock]
		c := NewClocks(kubetest.Quiet(), &table)
		for range 3 {
			c.Sees(beat(corev1.ConditionTrue, time.Now().Add(-40*time.Second)))
			time.Sleep(5 * time.Minute)
		}
		if row, _ := table.Get("n2"); row.Ahead > -39*time.Second {
			t.Errorf("before that: %+v", row)
		}
		c.Sees(beat(corev1.ConditionUnknown, time.Now()))
		if row, ok := table.Get("n2"); ok {
			t.Errorf("%+v", row)
		}
		c.Sees(beat(corev1.ConditionTrue, time.Now().Add(-time.Hour))) // back, as a list brings it
		if row, ok := table.Get("n2"); ok {
			t.Errorf("by a heartbeat that may be old: %+v", row)
		}
	})
}

func TestAWallClockThatIsSetMakesOthersUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := func() *corev1.Node { return beat(corev1.ConditionTrue, time.Now()) }
		var table pubsub.Table[types.NodeClock]
		c := NewClocks(kubetest.Quiet(), &table)
		c.Sees(beats())
		time.Sleep(5 * time.Minute)
		c.Sees(beats())
		c.mu.Lock()
		defer c.mu.Unlock()
		c.settle(time.Now())
		if len(table.All()) != 1 {
			t.Fatal("nothing was set, and all is forgotten")
		}
		c.offset -= time.Minute // as if the clock had been set since
		c.settle(time.Now())
		if len(table.All())+len(c.nodes) > 0 {
			t.Errorf("%v", table.All())
		}
	})
}
