package kubeapi

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubelet"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

const pathRunning = "/api/v1/nodes/n1/proxy/runningpods/"

// running answers for the kubelet of n1.
func running(t *testing.T, answer http.HandlerFunc) (*Client, *fakeAPI) {
	api := someCluster()
	s := objectsOf(nil)
	s.lie = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathRunning {
			answer(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}
	return s.client(t), api
}

func TestTheKubeletSaysWhatItsRuntimeRuns(t *testing.T) {
	c, _ := running(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, jsonObject{"kind": "PodList", "apiVersion": "v1", "metadata": jsonObject{}, "items": []any{
			jsonObject{"metadata": jsonObject{"name": "web-1", "namespace": access.Namespace, "uid": "u1"}, "spec": jsonObject{"containers": []any{}}},
		}})
	})
	got, err := c.RunningPods(t.Context(), "n1")
	if diff := cmp.Diff([]types.PodRef{{Namespace: access.Namespace, Name: "web-1", UID: "u1"}}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := c.RunningPods(t.Context(), ""); !errors.Is(err, kubelet.ErrNoNode) {
		t.Errorf("of no node: %v", err)
	}
}

func TestNoAnswerOfTheKubeletIsNoEmptyList(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"503":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"another kind": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, jsonObject{"kind": "Status"}) },
		"a page":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"nothing":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
		"a pod without": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 200, jsonObject{"kind": "PodList", "items": []any{jsonObject{}}})
		},
		"hang": hang,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := running(t, answer)
			if got, err := c.RunningPods(t.Context(), "n1"); err == nil || got != nil {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		})
	}
}

func TestADeadKubeletIsNoSilentAPIServer(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"502": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "hang": hang} {
		synctest.Test(t, func(t *testing.T) {
			c, tb := newTestClient(t)
			api := someCluster()
			end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == pathRunning {
					answer(w, r)
					return
				}
				api.ServeHTTP(w, r)
			})})
			defer end()
			time.Sleep(time.Minute)
			before := api.count()
			for range 20 {
				if _, err := c.RunningPods(t.Context(), "n1"); err == nil {
					t.Error("it answered")
				}
			}
			if n, s := api.count()-before, tb.status(); n > 45 || !s.Answers() || !s.Synced {
				t.Errorf("%s: %d further requests, status %+v", name, n, s)
			}
		})
	}
}

func TestEverythingOfANodeThatAttachesIsListed(t *testing.T) {
	s := longhornAPI()
	got, err := s.client(t).NodeAttachments(t.Context(), "n1")
	want := []types.Attachment{{Name: "a1", UID: "uid-a1", Node: "n1", Volume: "pv-a1"}, {Name: "a3", UID: "uid-a3", Node: "n1", Volume: "pv-a3"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	s.lies[pathAttachments] = func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, jsonObject{"kind": "Namespace", "apiVersion": "v1"})
	}
	if got, err := s.client(t).NodeAttachments(t.Context(), "n1"); err == nil {
		t.Errorf("from an answer of another kind: %v", got)
	}
}

func TestAnEventCanBeAboutAReplicaSet(t *testing.T) {
	for kind, version := range map[string]string{types.KindVMIReplicaSet: "kubevirt.io/v1", types.KindReplicaSet: "apps/v1"} {
		e := nodes.EventOf(types.Event{Node: "n2", Set: setOf(kind), Reason: "FailedOver", Message: "m"}, time.Now())
		want := corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: access.Namespace, Name: "web", UID: "u1"}
		if diff := cmp.Diff(want, e.InvolvedObject); diff != "" || e.Namespace != access.Namespace || e.Source.Host != "n2" {
			t.Errorf("%s in %s", diff, e.Namespace)
		}
	}
}
