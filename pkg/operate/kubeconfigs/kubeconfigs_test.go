package kubeconfigs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "eyJ.the.token"

// cluster is one that issues, and a node of it with all it knows.
type cluster struct {
	issued  pubsub.Table[types.IssuedKubeconfig]
	info    pubsub.Table[types.EdgeNodeInfo]
	nodes   pubsub.Table[types.Node]
	api     pubsub.Table[types.APIStatus]
	status  pubsub.Table[types.EdgeNodeClusterStatus]
	waits   chan struct{} // issuing waits for it; nil for not
	mu      sync.Mutex
	fails   error
	did     []string
	actions []types.Operation
}

func newCluster() *cluster {
	c := &cluster{}
	id := uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	_ = c.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1", DeviceID: id})
	_ = c.nodes.Publish("n1", types.Node{Name: "n1", UUID: id.String(), ControlPlane: true, InternalIP: "192.168.1.1"})
	_ = c.api.Publish(types.Global, types.APIStatus{Synced: true})
	return c
}

func (c *cluster) enter(ctx context.Context, what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did, c.actions = append(c.did, what), append(c.actions, types.Acting(ctx))
	return c.fails
}

func (c *cluster) IssueKubeconfig(ctx context.Context, k types.IssuedKubeconfig, lasts time.Duration, host string) (types.IssuedKubeconfig, []byte, error) {
	if err := c.enter(ctx, fmt.Sprintf("issue %s on %s by %s for %s at %s: %s", k.Role, k.Node, k.From, lasts, host, k.Reason)); err != nil {
		return types.IssuedKubeconfig{}, nil, err
	}
	if c.waits != nil {
		<-c.waits
	}
	if ctx.Err() != nil {
		return types.IssuedKubeconfig{}, nil, ctx.Err()
	}
	k.Name, k.Expires = "k1", time.Now().Add(lasts)
	return k, []byte("token: " + secret + "\n"), c.issued.Publish(k.Name, k)
}

func (c *cluster) RevokeKubeconfig(ctx context.Context, k types.IssuedKubeconfig) error {
	if err := c.enter(ctx, "revoke "+k.Name); err != nil {
		return err
	}
	return c.issued.Unpublish(k.Name)
}

func (c *cluster) Kubeconfigs(context.Context) (list []types.IssuedKubeconfig, err error) {
	for _, k := range c.issued.All() {
		list = append(list, k)
	}
	return list, nil
}

func (c *cluster) component(t *testing.T) *Component {
	log := logrus.New()
	log.SetOutput(t.Output())
	return &Component{Log: log, Pulse: &loop.Pulse{}, Issued: &c.issued, Info: &c.info, Nodes: &c.nodes, API: &c.api, Kube: c}
}

func (c *cluster) handler() *Handler {
	return &Handler{Info: &c.info, Nodes: &c.nodes, Status: &c.status, Kube: c}
}

func ask(ctx context.Context, h http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	h.ServeHTTP(w, r.WithContext(peer.NewContext(ctx, peer.Peer{UID: 0})))
	return w
}

func TestAKubeconfigIsRevokedWhenItExpiresAlsoAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.component(t).Run(ctx) }()
		began := time.Now()
		_ = c.issued.Publish("first", types.IssuedKubeconfig{Name: "first", Node: "n1", Expires: began.Add(time.Hour)})
		_ = c.issued.Publish("others", types.IssuedKubeconfig{Name: "others", Node: "n2", Expires: began.Add(time.Hour)})
		time.Sleep(time.Hour - time.Second)
		if n := len(c.issued.All()); n != 2 {
			t.Fatalf("%d are left before the end", n)
		}
		time.Sleep(2 * time.Second)
		if _, ok := c.issued.Get("first"); ok {
			t.Error("our own is there a second after its end")
		}
		if _, ok := c.issued.Get("others"); !ok {
			t.Error("another node's is gone at its end")
		}
		// The API server does not answer when the second one is due.
		_ = c.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
		time.Sleep(time.Hour)
		if n := len(c.did); n != 1 {
			t.Errorf("it was tried while nobody answers: %q", c.did)
		}
		_ = c.api.Publish(types.Global, types.APIStatus{Synced: true})
		time.Sleep(2 * time.Second)
		if n := len(c.issued.All()); n != 0 {
			t.Errorf("%d are left", n)
		}
		end()
		<-done
	})
}

func TestAFailedRevocationIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.fails = types.ErrNoAnswer
		_ = c.issued.Publish("first", types.IssuedKubeconfig{Name: "first", Node: "n1", Expires: time.Now()})
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.component(t).Run(ctx) }()
		time.Sleep(time.Minute)
		c.mu.Lock()
		c.fails = nil
		c.mu.Unlock()
		time.Sleep(5 * time.Minute)
		if n := len(c.issued.All()); n != 0 {
			t.Errorf("%d are left: %q", n, c.did)
		}
		end()
		<-done
	})
}

func TestOneIsIssuedWithWhoAskedAndWhyInTheAuditAndWithoutItsTokenThere(t *testing.T) {
	c := newCluster()
	w := ask(t.Context(), c.handler(), `{"for":"2h","role":"edit","reason":"new disk"}`)
	if w.Code != http.StatusCreated || !strings.HasSuffix(w.Body.String(), "zedkube kubeconfig revoke k1\ntoken: "+secret+"\n") || w.Header().Get("Content-Type") != "application/yaml" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if d := cmp.Diff([]string{"issue edit on n1 by uid 0 for 2h0m0s at 192.168.1.1: new disk"}, c.did); d != "" {
		t.Error(d)
	}
	want := []types.Operation{{Component: "kubeconfigs", By: "OPERATOR", From: "uid 0", Why: "role edit for 2h0m0s: new disk"}}
	if d := cmp.Diff(want, c.actions); d != "" {
		t.Error(d)
	}
}

func TestWhatCannotBeIssuedSaysWhyAndIsNotTried(t *testing.T) {
	for name, r := range map[string]struct {
		body  string
		setUp func(*cluster)
		code  int
		says  string
		tried bool
	}{
		"no JSON":           {"role=view", nil, 400, "invalid request", false},
		"nothing":           {"", nil, 400, "invalid request", false},
		"null":              {"null", nil, 400, "a reason is required", false},
		"an unknown field":  {`{"reason":"x","admin":true}`, nil, 400, "admin", false},
		"two values":        {`{"reason":"x"}{"reason":"y"}`, nil, 400, "more than one value", false},
		"more than fits":    {`{"reason":"` + strings.Repeat("x", 5000) + `"}`, nil, 400, "too large", false},
		"another role":      {`{"reason":"x","role":"admin"}`, nil, 400, "view or edit", false},
		"an unknown device": {`{"reason":"x"}`, func(c *cluster) { _ = c.info.Unpublish(types.Global) }, 503, "address of the API server", false},
		"too many": {`{"reason":"x"}`, func(c *cluster) {
			for i := range types.MaxKubeconfigs {
				_ = c.issued.Publish(fmt.Sprint(i), types.IssuedKubeconfig{Expires: time.Now().Add(time.Hour)})
			}
		}, 409, "kubeconfig revoke NAME", false},
		"an API server that is silent":  {`{"reason":"x"}`, func(c *cluster) { c.fails = types.ErrNoAnswer }, 503, "no answer", true},
		"an API server that refuses it": {`{"reason":"x"}`, func(c *cluster) { c.fails = errors.New("forbidden") }, 500, "forbidden", true},
	} {
		c := newCluster()
		if r.setUp != nil {
			r.setUp(c)
		}
		w := ask(t.Context(), c.handler(), r.body)
		if w.Code != r.code || !strings.Contains(w.Body.String(), r.says) || len(c.did) > 0 != r.tried {
			t.Errorf("%s: %d %s, %q", name, w.Code, w.Body, c.did)
		}
	}
}

func TestOneIsIssuedAtATimeAndNotForAClientThatHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.waits = make(chan struct{})
		h := c.handler()
		ctx, gone := context.WithCancel(t.Context())
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- ask(ctx, h, `{"reason":"x"}`) }()
		synctest.Wait()
		if w := ask(t.Context(), h, `{"reason":"y"}`); w.Code != http.StatusServiceUnavailable {
			t.Errorf("the second one: %d %s", w.Code, w.Body)
		}
		gone()
		close(c.waits)
		if w := <-first; w.Code == http.StatusCreated || strings.Contains(w.Body.String(), secret) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if n := len(c.issued.All()); n != 0 {
			t.Errorf("%d are left that nobody has: %q", n, c.did)
		}
		if w := ask(t.Context(), h, `{"reason":"z"}`); w.Code != http.StatusCreated {
			t.Errorf("the next one: %d %s", w.Code, w.Body)
		}
	})
}

func TestThoseThatHaveExpiredAreNotCounted(t *testing.T) {
	c := newCluster()
	for i := range types.MaxKubeconfigs {
		_ = c.issued.Publish(fmt.Sprint(i), types.IssuedKubeconfig{Expires: time.Now().Add(-time.Second)})
	}
	if w := ask(t.Context(), c.handler(), `{"reason":"x"}`); w.Code != http.StatusCreated {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
