package kubeapi

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func someCluster() *fakeAPI {
	return &fakeAPI{
		nodes: []corev1.Node{testNode("n1", ownUUID), testNode("n2", "x")},
		pods: []corev1.Pod{
			kubetest.TestPod("eve-kube-app", "a1", "n1"), kubetest.TestPod("eve-kube-app", "a2", "n2"),
			kubetest.TestPod("kube-system", "s1", "n1"), kubetest.TestPod("kube-system", "s2", "n2"),
		},
	}
}

func TestTablesHoldWhatTheyAreNamedAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: someCluster()})
		defer end()
		time.Sleep(time.Second)
		check(t, "nodes", kubetest.Keys(tb.nodes.All()), []string{"n1", "n2"})
		check(t, "app pods", kubetest.Keys(tb.appPods.All()), []string{"eve-kube-app/a1", "eve-kube-app/a2"})
		check(t, "own pods", kubetest.Keys(tb.own.All()), []string{"eve-kube-app/a1", "kube-system/s1"})
		if s := tb.status(); !s.Synced || !s.Answers() {
			t.Errorf("status is %+v", s)
		}
	})
}

func TestOwnPodsWaitForTheOwnNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		_ = tb.info.Unpublish(types.Global)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: someCluster()})
		defer end()
		time.Sleep(time.Second)
		if s := tb.status(); s.Synced || len(tb.own.All()) != 0 || len(tb.nodes.All()) != 2 {
			t.Errorf("status is %+v, own pods %v", s, tb.own.All())
		}
		_ = tb.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "N2"})
		time.Sleep(time.Second)
		check(t, "own pods of a node whose label names another device", kubetest.Keys(tb.own.All()), nil)
	})
}

func TestAnIdleClientIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t)
		api := someCluster()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(time.Minute)
		before := api.count()
		time.Sleep(10 * time.Minute)
		n := api.count() - before
		t.Logf("%d requests in ten idle minutes", n)
		if n > 100 { // this server ends no watch: each is ended here once or twice, and taken up again
			t.Errorf("%d requests in ten idle minutes", n)
		}
	})
}

func TestOwnPodsFollowTheOwnNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := someCluster()
		api.nodes = []corev1.Node{testNode("n1", ""), testNode("n2", "")}
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isWatch(r) && r.URL.Query().Get("sendInitialEvents") != "true" { // every list is followed by another one
				select {
				case <-time.After(5 * time.Second):
				case <-r.Context().Done():
				}
				reply(w, 410, failure(410, metav1.StatusReasonExpired))
				return
			}
			api.ServeHTTP(w, r)
		})})
		defer end()
		time.Sleep(time.Minute)
		check(t, "own pods by name", kubetest.Keys(tb.own.All()), []string{"eve-kube-app/a1", "kube-system/s1"})
		api.set(func() { api.nodes = []corev1.Node{testNode("n1", "x"), testNode("n2", ownUUID)} })
		time.Sleep(time.Minute)
		check(t, "own pods by label", kubetest.Keys(tb.own.All()), []string{"eve-kube-app/a2", "kube-system/s2"})
		if s := tb.status(); !s.Synced {
			t.Errorf("status is %+v", s)
		}
	})
}

func TestLeadershipThatFlapsLeavesTheRightTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: someCluster()})
		defer end()
		for i := range 51 {
			tb.lead(i%2 == 0)
			time.Sleep(time.Duration(i%5) * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if n := tb.pods(); !tb.counted() || n != 4 {
			t.Errorf("the leader counts %d pods", n)
		}
		tb.lead(false)
		time.Sleep(10 * time.Second)
		if n := tb.rows(); tb.counted() || n != 0 {
			t.Errorf("the former leader has %d rows", n)
		}
	})
}
