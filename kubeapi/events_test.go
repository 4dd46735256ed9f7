package kubeapi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestEventsAreListedOnceAndTheNewestComeFirst(t *testing.T) {
	list := &corev1.EventList{Items: []corev1.Event{
		{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "eve-kube-app", Name: "cam"}, Reason: "BackOff", Type: "Warning", Count: 7, Message: "m",
			LastTimestamp: kubetest.At(10), FirstTimestamp: kubetest.At(1), Source: corev1.EventSource{Component: "kubelet", Host: "n1"},
		},
		{
			InvolvedObject: corev1.ObjectReference{Kind: "Node", Namespace: "default", Name: "n1"}, Reason: "NodeReady", Type: "Normal", ReportingController: "node-controller",
			EventTime: metav1.NewMicroTime(kubetest.At(2).Time), Series: &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(kubetest.At(20).Time)},
		},
		{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "eve-kube-app", Name: "cam"}, Reason: "Scheduled", FirstTimestamp: kubetest.At(0)},
		{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "x", Name: "other"}, ObjectMeta: metav1.ObjectMeta{CreationTimestamp: kubetest.At(5)}},
	}}
	list.Continue = "more"
	c, kube := withFake(t)
	asked := 0
	kube.PrependReactor("list", "events", func(a k8stesting.Action) (bool, runtime.Object, error) {
		asked++
		return true, list, nil
	})
	got, err := c.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) time.Time { return kubetest.At(i).UTC() }
	want := types.KubeEvents{More: true, List: []types.KubeEvent{
		{At: at(20), Type: "Normal", Reason: "NodeReady", About: "node/n1", By: "node-controller", Count: 3},
		{At: at(10), Type: "Warning", Reason: "BackOff", About: "pod/eve-kube-app/cam", Node: "n1", By: "kubelet", Count: 7, Message: "m"},
		{At: at(5), About: "pod/x/other", Count: 1},
		{At: at(0), Reason: "Scheduled", About: "pod/eve-kube-app/cam", Count: 1},
	}}
	if d := cmp.Diff(want, got); d != "" || asked != 1 {
		t.Errorf("asked %d times: %s", asked, d)
	}
	var of []string
	for _, e := range got.OfNode("n1").List {
		of = append(of, e.Reason)
	}
	if d := cmp.Diff([]string{"NodeReady", "BackOff", "Scheduled"}, of); d != "" {
		t.Error(d)
	}
}
