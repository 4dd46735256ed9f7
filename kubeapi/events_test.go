package kubeapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	for i := range list.Items {
		list.Items[i].Name, list.Items[i].Namespace = fmt.Sprint(i), "x"
	}
	c, kube := withFake(t)
	asked := 0
	kube.PrependReactor("list", "events", func(a k8stesting.Action) (bool, runtime.Object, error) {
		asked++
		return true, list, nil
	})
	got, err := c.Events(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) time.Time { return kubetest.At(i).UTC() }
	want := types.KubeEvents{List: []types.KubeEvent{
		{Name: "x/1", At: at(20), Type: "Normal", Reason: "NodeReady", About: "node/n1", By: "node-controller", Count: 3},
		{Name: "x/0", At: at(10), Type: "Warning", Reason: "BackOff", About: "pod/eve-kube-app/cam", Node: "n1", By: "kubelet", Count: 7, Message: "m"},
		{Name: "x/3", At: at(5), About: "pod/x/other", Count: 1},
		{Name: "x/2", At: at(0), Reason: "Scheduled", About: "pod/eve-kube-app/cam", Count: 1},
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

// The API server chooses what it can, and answers in pages: what is wanted may have the last name of many.
func TestEventsOfANodeAreChosenByTheServerAndReadInPages(t *testing.T) {
	for name, c := range map[string]struct {
		pages  int // of pods
		fails  int // which of them; 0 for none
		events int
		more   bool
	}{
		"all":                     {3, 0, 4, false},
		"too many":                {1 << 20, 0, 41, true},
		"a list that has expired": {3, 2, 2, true},
	} {
		client, kube := withFake(t)
		var asked []string
		page := 0
		kube.PrependReactor("list", "events", func(a k8stesting.Action) (bool, runtime.Object, error) {
			options := a.(k8stesting.ListActionImpl).ListOptions
			asked = append(asked, options.FieldSelector)
			list := &corev1.EventList{Items: []corev1.Event{{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(len(asked))}}}}
			if options.Limit == 0 || options.Limit > 500 {
				t.Errorf("%s: a page of %d", name, options.Limit)
			}
			if strings.Contains(options.FieldSelector, "Pod") {
				if page++; page == c.fails {
					return true, nil, apierrors.NewResourceExpired("gone")
				}
				if page < c.pages {
					list.Continue = "more"
				}
			}
			return true, list, nil
		})
		got, err := client.Events(t.Context(), "n1")
		if err != nil || len(got.List) != c.events || got.More != c.more {
			t.Errorf("%s: %d events, more %v, %v", name, len(got.List), got.More, err)
		}
		if asked[0] != "involvedObject.kind=Node,involvedObject.name=n1" || asked[1] != "involvedObject.kind=Pod" {
			t.Errorf("%s: asked for %q", name, asked[:2])
		}
	}
}
