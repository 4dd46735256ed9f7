package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// answersWith is a client of a server that answers by one function.
func answersWith(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := lively(t.Context())
	conn, err := newConnection(t.Context(), &rest.Config{Host: "https://kube"}, &kubetest.InMemory{Handler: handler}, s)
	if err != nil {
		t.Fatal(err)
	}
	return over(conn, types.NoOperations{})
}

// Where Kubernetes is about to start, something else may hold its port.
func TestAPageThatIsNotThereIsNoObjectThatIsNotThere(t *testing.T) {
	c := answersWith(t, http.NotFound)
	pod := types.Pod{Namespace: "n", Name: "p", UID: "u"}
	for verb, do := range map[string]func(context.Context) error{
		"read the lock": func(ctx context.Context) error { _, err := c.DrainLock(ctx); return err },
		"free the lock": func(ctx context.Context) error {
			return c.FreeDrainLock(ctx, types.DrainLock{Holder: "n1", Version: "7"})
		},
		"delete the node": func(ctx context.Context) error { return c.DeleteNode(ctx, types.Node{Name: "n1", UID: "u"}) },
		"evict":           func(ctx context.Context) error { return c.Evict(ctx, pod) },
		"change the lock": func(ctx context.Context) error {
			_, err := c.SetDrainLock(ctx, types.DrainLock{Holder: "n1", Version: "7"})
			if errors.Is(err, types.ErrConflict) {
				return nil // it would be taken for freed
			}
			return err
		},
	} {
		if err := do(t.Context()); err == nil {
			t.Errorf("%s: taken for an answer", verb)
		}
	}
}

func TestAnObjectThatIsNotThereIsGone(t *testing.T) {
	c := answersWith(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, 404, failure(404, metav1.StatusReasonNotFound)) })
	lock, err := c.DrainLock(t.Context())
	err = errors.Join(err,
		c.FreeDrainLock(t.Context(), types.DrainLock{Holder: "n1", Version: "7"}),
		c.DeleteNode(t.Context(), types.Node{Name: "n1", UID: "u"}),
		c.Evict(t.Context(), types.Pod{Namespace: "n", Name: "p", UID: "u"}))
	if err != nil || lock.Version != "" {
		t.Errorf("lock %+v, %v", lock, err)
	}
	if _, err := c.SetDrainLock(t.Context(), types.DrainLock{Holder: "n1", Version: "7"}); !errors.Is(err, types.ErrConflict) {
		t.Errorf("a lock that is gone was changed: %v", err)
	}
}

func TestANodeWithoutAVersionIsNotPatched(t *testing.T) {
	n := wholeNode()
	n.ResourceVersion = ""
	for _, verb := range []string{"cordon", "uncordon", "stamp", "conditions"} {
		c, kube := withFake(t)
		kube.PrependReactor("get", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) { return true, n, nil })
		if err := writes(t, c)[verb](t.Context()); !errors.Is(err, access.ErrOther) || len(patches(t, kube)) > 0 {
			t.Errorf("%s: %v, sent %v", verb, err, patches(t, kube))
		}
	}
}

func TestAWriteIsMadeWhenTheAnswerIsAboutIt(t *testing.T) {
	n := wholeNode()
	c, kube := withFake(t, n)
	kube.PrependReactor("patch", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) { return true, &corev1.Node{}, nil })
	for _, verb := range []string{"stamp", "cordon"} {
		if err := writes(t, c)[verb](t.Context()); !errors.Is(err, access.ErrOther) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	kube.PrependReactor("create", "leases", func(k8stesting.Action) (bool, runtime.Object, error) { return true, drainLeaseOf("n2", ""), nil })
	if lock, err := c.SetDrainLock(t.Context(), types.DrainLock{Holder: "n1"}); !errors.Is(err, access.ErrOther) {
		t.Errorf("the lock of %q is taken for the one of n1: %v", lock.Holder, err)
	}
}

func TestANoteLongerThanKubernetesTakesIsNotRead(t *testing.T) {
	c, _ := withFake(t, drainLeaseOf("n2", `{"bootID":"b1"`+strings.Repeat(" ", 256<<10)+`}`))
	if lock, err := c.DrainLock(t.Context()); err != nil || lock.Holder != "n2" || lock.BootID != "" {
		t.Errorf("read %+v, %v", lock, err)
	}
}

// A server that goes on saying that somebody else was faster is not dead.
func TestConflictsUntilTheEndAreAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := wholeNode()
		c, kube := withFake(t, n)
		kube.PrependReactor("patch", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
			time.Sleep(300 * time.Millisecond)
			return true, nil, apierrors.NewConflict(schema.GroupResource{}, "n1", nil)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		kube.PrependReactor("get", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, n, ctx.Err() // as a real client does
		})
		if err := c.Stamp(ctx, "n1", types.AgentStamp{}); !errors.Is(err, types.ErrConflict) || errors.Is(err, types.ErrNoAnswer) {
			t.Errorf("error is %v", err)
		}
	})
}

// HTTP/2 ends one answer and keeps the connection.
func TestAnAnswerThatBreaksOffIsNone(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = w.Write([]byte(`{"kind":"Node",`))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, dialConfig(server))
	c, done, err := Dial(t.Context(), kubetest.Quiet(), path, types.NoOperations{})
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for verb, write := range writes(t, c) {
		if err := write(t.Context()); !errors.Is(err, types.ErrNoAnswer) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
