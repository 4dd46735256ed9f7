package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubelet"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// running is a client that asks a kubelet of n1 with these answers.
func running(t *testing.T, answer http.HandlerFunc) *Client {
	ca := kubetest.NewAuthority(t)
	c, _ := connected(t, playKubelet(t, ca, ca, []string{"n1"}, answer).cfg, &kubetest.InMemory{Handler: &fakeAPI{}})
	return c
}

var askedNode = types.Node{Name: "n1", InternalIP: "10.0.0.7"}

func TestTheKubeletSaysWhatItsRuntimeRuns(t *testing.T) {
	c := running(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, jsonObject{"kind": "PodList", "apiVersion": "v1", "metadata": jsonObject{}, "items": []any{
			jsonObject{"metadata": jsonObject{"name": "web-1", "namespace": access.Namespace, "uid": "u1"}, "spec": jsonObject{"containers": []any{}}},
		}})
	})
	got, err := c.RunningPods(t.Context(), askedNode)
	if diff := cmp.Diff([]types.PodRef{{Namespace: access.Namespace, Name: "web-1", UID: "u1"}}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := c.RunningPods(t.Context(), types.Node{InternalIP: askedNode.InternalIP}); !errors.Is(err, kubelet.ErrNoNode) {
		t.Errorf("of no node: %v", err)
	}
}

func TestNoAnswerOfTheKubeletIsNoEmptyList(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"503":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"403":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"another kind": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, jsonObject{"kind": "Status"}) },
		"a page":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"nothing":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
		"half": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"kind":"PodList","items":[]}`))
		},
		"a pod without": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 200, jsonObject{"kind": "PodList", "items": []any{jsonObject{}}})
		},
		"hang": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			c := running(t, answer)
			ctx := t.Context()
			if name == "hang" {
				short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
				ctx = short
			}
			if got, err := c.RunningPods(ctx, askedNode); err == nil || got != nil {
				t.Errorf("%v, %v", got, err)
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
