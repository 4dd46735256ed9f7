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

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/test/kubetest"
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
	refused := &kubetest.InMemory{Refuse: func() error { return syscall.ECONNREFUSED }}
	for name, test := range map[string]struct {
		base *kubetest.InMemory
		none bool
	}{
		"a refused connection":  {refused, true},
		"silence":               {&kubetest.InMemory{Handler: http.HandlerFunc(hang)}, true},
		"half an answer":        {&kubetest.InMemory{Handler: http.HandlerFunc(tearOff)}, true},
		"500":                   {&kubetest.InMemory{Handler: http.HandlerFunc(status500)}, true},
		"502 of a proxy":        {&kubetest.InMemory{Handler: tells(502, "text/html", "<html>")}, true},
		"401":                   {&kubetest.InMemory{Handler: tells(401, "text/plain", "who are you")}, true},
		"404":                   {&kubetest.InMemory{Handler: tells(404, "text/plain", "no such page")}, false},
		"429":                   {&kubetest.InMemory{Handler: tells(429, "text/plain", "later")}, false},
		"403 of another server": {&kubetest.InMemory{Handler: tells(403, "text/html", "<html>")}, false},
		"a page":                {&kubetest.InMemory{Handler: tells(200, "text/html", "<html>")}, false},
		"garbage":               {&kubetest.InMemory{Handler: tells(200, "application/json", "{")}, false},
		"another object":        {&kubetest.InMemory{Handler: tells(200, "application/json", `{"kind":"Pod","apiVersion":"v1"}`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				conn, err := newConnection(ctx, &rest.Config{Host: "https://kube"}, test.base, access.NewLiveness(ctx, kubetest.Quiet(), func(time.Time, string) {}))
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
		"pods":                   &corev1.PodList{ListMeta: meta, Items: []corev1.Pod{kubetest.TestPod("n", "p", "n1")}},
		"one object":             &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: leases.DrainLease, ResourceVersion: "8"}},
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
