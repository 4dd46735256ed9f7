package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/types"
)

// Through the whole of client-go, which words errors in its own ways.
func TestOnlyAWholeAnswerBelow500IsAnAnswerToAWrite(t *testing.T) {
	tells := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	refused := &inMemory{refuse: func() error { return syscall.ECONNREFUSED }}
	for name, test := range map[string]struct {
		base *inMemory
		none bool
	}{
		"a refused connection":  {refused, true},
		"silence":               {&inMemory{handler: http.HandlerFunc(hang)}, true},
		"half an answer":        {&inMemory{handler: http.HandlerFunc(tearOff)}, true},
		"500":                   {&inMemory{handler: http.HandlerFunc(status500)}, true},
		"502 of a proxy":        {&inMemory{handler: tells(502, "text/html", "<html>")}, true},
		"401":                   {&inMemory{handler: tells(401, "text/plain", "who are you")}, true},
		"404":                   {&inMemory{handler: tells(404, "text/plain", "no such page")}, false},
		"429":                   {&inMemory{handler: tells(429, "text/plain", "later")}, false},
		"403 of another server": {&inMemory{handler: tells(403, "text/html", "<html>")}, false},
		"a page":                {&inMemory{handler: tells(200, "text/html", "<html>")}, false},
		"garbage":               {&inMemory{handler: tells(200, "application/json", "{")}, false},
		"another object":        {&inMemory{handler: tells(200, "application/json", `{"kind":"Pod","apiVersion":"v1"}`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				conn, err := newConnection(ctx, &rest.Config{Host: "https://kube"}, test.base, newSilence(ctx, quiet(), func(time.Time, string) {}))
				if err != nil {
					t.Fatal(err)
				}
				c := over(conn, types.NoOperations{})
				for verb, write := range writes(t, c) {
					err := write(ctx)
					deletes := verb == "delete" || verb == "free" // a success of whatever kind will do
					if errors.Is(err, types.ErrNoAnswer) != test.none || err == nil && (!deletes || name[0] == '4') {
						t.Errorf("%s says %v", verb, err)
					}
				}
				c.hangUp(conn)
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestALieIsNoFreshListAndNoLock(t *testing.T) {
	meta := metav1.ListMeta{ResourceVersion: "8"}
	for name, lie := range map[string]runtime.Object{
		"another kind":           &corev1.ConfigMapList{ListMeta: meta},
		"pods":                   &corev1.PodList{ListMeta: meta, Items: []corev1.Pod{testPod("n", "p", "n1")}},
		"one object":             &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: drainLease, ResourceVersion: "8"}},
		"a success":              &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"},
		"a list without version": &corev1.NodeList{},
		"a nameless node":        &corev1.NodeList{ListMeta: meta, Items: make([]corev1.Node, 1)},
	} {
		for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			c := says(t, contentType, encoded(t, contentType, lie))
			if nodes, err := c.FreshNodes(t.Context()); err == nil {
				t.Errorf("%s in %s is taken for %d nodes", name, contentType, len(nodes))
			}
			if lock, err := c.DrainLock(t.Context()); err == nil {
				t.Errorf("%s in %s is taken for the lock %+v", name, contentType, lock)
			}
		}
	}
}
