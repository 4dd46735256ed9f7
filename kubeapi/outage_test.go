package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func check(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are %q, want %q", what, got, want)
	}
}

// outage is what happens to a client whose server is well again after a while.
func outage(t *testing.T, fault func(api *fakeAPI, refused *atomic.Bool), after time.Duration, during func(*tables, time.Time)) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		tb.lead(true)
		api, refused := someCluster(), &atomic.Bool{}
		var tries atomic.Int64
		base := &kubetest.InMemory{Handler: api, Refuse: func() error {
			tries.Add(1)
			if refused.Load() {
				return syscall.ECONNREFUSED
			}
			return nil
		}}
		end := startInMemory(t, c, base)
		defer end()
		time.Sleep(13 * time.Second)
		begin := time.Now()
		api.set(func() { fault(api, refused) })

		time.Sleep(25 * time.Second) // found out, and calm by now
		during(tb, begin)
		before := tries.Load()
		time.Sleep(after)
		perMinute := float64(tries.Load()-before) / after.Minutes()
		t.Logf("%.1f requests a minute while the server is down", perMinute)
		if perMinute > 30 {
			t.Errorf("%.1f requests a minute while the server is down", perMinute)
		}
		check(t, "nodes during the outage", kubetest.Keys(tb.nodes.All()), []string{"n1", "n2"})

		api.set(func() {
			api.fault = nil
			refused.Store(false)
			api.nodes = api.nodes[:1]
			api.pods = append(slices.Clone(api.pods[1:]), kubetest.TestPod("eve-kube-app", "a3", "n1"))
		})
		time.Sleep(5 * time.Second)
		check(t, "nodes", kubetest.Keys(tb.nodes.All()), []string{"n1"})
		check(t, "app pods", kubetest.Keys(tb.appPods.All()), []string{"eve-kube-app/a2", "eve-kube-app/a3"})
		check(t, "own pods", kubetest.Keys(tb.own.All()), []string{"eve-kube-app/a3", "kube-system/s1"})
		check(t, "namespaces with two pods", kubetest.Keys(tb.counts.All()), []string{"eve-kube-app", "kube-system"})
		if n := tb.pods(); n != 4 {
			t.Errorf("%d pods are counted", n)
		}
		if s := tb.status(); !s.Answers() || !s.Synced || !tb.counted() {
			t.Errorf("status afterwards is %+v", s)
		}
	})
}

// silentWithin expects the silence to be known, and to have begun when a
// request was sent into it: at most a probe's distance after it began.
func silentWithin(t *testing.T, reason string) func(*tables, time.Time) {
	return func(tb *tables, begin time.Time) {
		t.Helper()
		s := tb.status()
		if s.Answers() || s.SilentSince.Sub(begin) > access.ProbeEvery || s.Reason != reason {
			t.Errorf("25 s after %v the status is %+v", begin, s)
		}
	}
}

func TestAnOutageIsSeenCalmAndHealsWithinFiveSeconds(t *testing.T) {
	cut := func(w http.ResponseWriter, r *http.Request) { hang(w, r) }
	t.Run("hung", func(t *testing.T) {
		outage(t, func(api *fakeAPI, _ *atomic.Bool) { api.fault = cut }, 10*time.Minute, silentWithin(t, "no answer within 10s"))
	})
	t.Run("refused", func(t *testing.T) {
		outage(t, func(_ *fakeAPI, refused *atomic.Bool) { refused.Store(true) }, 10*time.Minute, silentWithin(t, "connection refused"))
	})
	t.Run("500", func(t *testing.T) {
		outage(t, func(api *fakeAPI, _ *atomic.Bool) { api.fault = status500 }, 10*time.Minute, silentWithin(t, "HTTP 500 Internal Server Error"))
	})
	t.Run("401", func(t *testing.T) {
		outage(t, func(api *fakeAPI, _ *atomic.Bool) {
			api.fault = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
		}, time.Minute, silentWithin(t, "HTTP 401 Unauthorized"))
	})
}

func TestAServerThatIsOverloadedAtTheStartIsNotStormed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := someCluster()
		api.fault = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(10 * time.Minute)
		n := api.count()
		t.Logf("%d requests in ten minutes of 429", n)
		if n > 400 {
			t.Errorf("%d requests in ten minutes", n)
		}
		if s := tb.status(); !s.Answers() {
			t.Errorf("an overloaded server is taken for silent: %+v", s)
		}
		api.set(func() { api.fault = nil })
		time.Sleep(5 * time.Second)
		if s := tb.status(); !s.Synced {
			t.Errorf("status afterwards is %+v", s)
		}
	})
}

func TestVerbsNeedAConnection(t *testing.T) {
	c := New(Config{Kubeconfig: "/nowhere", Operations: types.NoOperations{}})
	ctx := context.Background()
	_, listErr := c.PodsToEvict(ctx, "n1")
	for name, err := range map[string]error{
		"cordon": c.Cordon(ctx, "n1", types.Cordon{}), "uncordon": c.Uncordon(ctx, "n1"),
		"list": listErr, "evict": c.Evict(ctx, types.Pod{}),
		"elect": c.Elect(ctx, "n1", func(string, bool) { t.Error("called") }),
	} {
		if !errors.Is(err, types.ErrNoAPI) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerbsFailAtOnceWhileTheServerIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t)
		api := someCluster()
		api.fault = hang
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(30 * time.Second)
		start := time.Now()
		err := c.Uncordon(t.Context(), "n1")
		if !errors.Is(err, types.ErrNoAPI) || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestOneFailureAmongAnswersIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		said := &history{}
		c.API = said
		api := someCluster()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(15 * time.Second)
		once := &atomic.Bool{}
		api.set(func() {
			api.fault = func(w http.ResponseWriter, r *http.Request) {
				if once.CompareAndSwap(false, true) {
					status500(w, r)
					return
				}
				reply(w, 404, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: "NotFound", Code: 404})
			}
		})
		first, before := said.len()-1, api.count()
		if err := c.Uncordon(t.Context(), "n1"); err == nil {
			t.Error("no error from a 500")
		}
		time.Sleep(time.Millisecond)
		if n := api.count() - before; n != 2 {
			t.Errorf("%d requests at once, want the one that failed and a probe", n)
		}
		time.Sleep(4 * time.Second)
		if !said.answered(first) || !said.synced(first) || len(tb.nodes.All()) != 2 {
			t.Errorf("the status became %+v", said.rows[first:])
		}
	})
}

func TestOneProbeThatFailsIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t)
		said := &history{}
		c.API = said
		api := someCluster()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(13 * time.Second)
		first, before := said.len()-1, api.count()
		once := &atomic.Bool{}
		api.set(func() {
			api.fault = func(w http.ResponseWriter, r *http.Request) {
				if once.CompareAndSwap(false, true) {
					status500(w, r)
					return
				}
				reply(w, 404, failure(404, metav1.StatusReasonNotFound))
			}
		})
		time.Sleep(10 * time.Second)
		if n := api.count() - before; n != 2 || !said.answered(first) || !said.synced(first) {
			t.Errorf("after %d requests the status became %+v", n, said.rows[first:])
		}
	})
}

func TestARefusedEvictionIsAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t)
		api := someCluster()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(time.Second)
		api.set(func() {
			api.fault = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "10")
				reply(w, 429, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: "TooManyRequests", Code: 429})
			}
		})
		start, before := time.Now(), api.count()
		err := c.Evict(t.Context(), types.Pod{Namespace: "eve-kube-app", Name: "a1", UID: "u"})
		if !errors.Is(err, types.ErrDisruptionBudget) || time.Since(start) != 0 || api.count() != before+1 {
			t.Errorf("%d requests in %v: %v", api.count()-before, time.Since(start), err)
		}
	})
}
