package kubeapi

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// After a watch that could not be taken up again the table counts as whole: its
// readers must not see rows of the list before beside rows of the new one.
func TestAListIsTakenOverAtOnce(t *testing.T) {
	var table pubsub.Table[types.Node]
	rows := nodeRows(&table, nil, nodes.NewClocks(kubetest.Quiet(), &pubsub.Table[types.NodeClock]{}), &nodes.Stamps{})
	done := make(chan error, 1)
	go func() {
		for i := range 500 {
			var list []any
			for _, name := range []string{"n1", "n2", "n3", "n" + strconv.Itoa(4+i%3)} {
				n := wholeNode()
				n.Name, n.Status.NodeInfo.BootID = name, strconv.Itoa(i)
				list = append(list, n)
			}
			if err := rows.Replace(list, "7"); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		all := table.All()
		if n := len(all); n != 0 && n != 4 {
			t.Fatalf("the table holds %d table", n)
		}
		for name, n := range all {
			if n.BootID != all["n1"].BootID {
				t.Fatalf("n1 is of boot %s, %s of %s", all["n1"].BootID, name, n.BootID)
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestTheClockOfANodeThatAListLacksIsForgotten(t *testing.T) {
	watchNodes(t, func(w *nodeWatch) {
		w.brings(beating("n2", 0))
		w.brings(beating("n2", -5))
		_ = w.clocks.Publish("n2", types.NodeClock{Node: "n2"})
		if err := w.rows.Replace([]any{beating("n3", 0)}, "7"); err != nil {
			t.Fatal(err)
		}
		if c, ok := w.clocks.Get("n2"); ok {
			t.Errorf("it is %+v", c)
		}
	})
}

func TestAPodThatAnyTolerationLetsOnACordonedNode(t *testing.T) {
	for name, row := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"everything":       {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"every NoSchedule": {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		"a cordon":         {corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}, true},
		"not ready":        {corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}, false},
		"every NoExecute":  {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
	} {
		pod, api := trapped()
		list := corev1.PodList{TypeMeta: typed("PodList", "v1"), ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: "1"},
			Spec:       corev1.PodSpec{NodeName: "n1", Tolerations: []corev1.Toleration{row.toleration}},
		}}}
		api[podsPath] = list
		got, err := meets(t, api).Situations(t.Context(), "n1", []types.Pod{pod})
		if err != nil || len(got) != 1 || got[0].Tolerates != row.want {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
}
