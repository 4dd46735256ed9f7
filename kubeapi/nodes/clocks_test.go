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

func TestAWallClockThatIsSetMakesOthersUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := func() *corev1.Node {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
			return n
		}
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
