package kubeapi

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// history is a table of types.APIStatus that forgets nothing.
type history struct {
	pubsub.Table[types.APIStatus]
	mu   sync.Mutex
	rows []types.APIStatus
}

func (h *history) Publish(key string, s types.APIStatus) error {
	h.mu.Lock()
	h.rows = append(h.rows, s)
	h.mu.Unlock()
	return h.Table.Publish(key, s)
}

// synced reports that the tables were whole from row first on.
func (h *history) synced(first int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.rows[first:] {
		if !s.Synced {
			return false
		}
	}
	return true
}

// answered reports that the server answered from row first on.
func (h *history) answered(first int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.rows[first:] {
		if !s.Answers() {
			return false
		}
	}
	return true
}

func (h *history) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.rows)
}

func failure(code int, reason metav1.StatusReason, causes ...metav1.StatusCause) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   "Failure", Reason: reason, Code: int32(code), Details: &metav1.StatusDetails{Causes: causes},
	}
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// endsWatches serves api and ends each watch as a real server does: after as
// long as the client asked for.
func endsWatches(api *fakeAPI) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isWatch(r) || r.URL.Query().Get("sendInitialEvents") == "true" {
			api.ServeHTTP(w, r)
			return
		}
		long, _ := time.ParseDuration(r.URL.Query().Get("timeoutSeconds") + "s")
		w.WriteHeader(http.StatusOK)
		select {
		case <-r.Context().Done():
		case <-time.After(long):
		}
	}
}

func TestAWatchThatEndsInTimeLeavesTheTablesWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		said := &history{}
		c.API = said
		end := startInMemory(t, c, &kubetest.InMemory{Handler: endsWatches(someCluster())})
		defer end()
		time.Sleep(5 * time.Second)
		first := said.len() - 1
		bell := make(chan struct{}, 1)
		tb.nodes.Notify(bell)
		time.Sleep(time.Hour)
		if !said.synced(first) {
			t.Error("Synced fell")
		}
		select {
		case <-bell:
			t.Error("the table of nodes changed")
		default:
		}
	})
}

// A server without a watch cache sends no bookmarks and compacts every five
// minutes: each quiet watch ends with 410.
func TestAnExpiredVersionIsListedAnewAndLeavesTheTablesWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		said := &history{}
		c.API = said
		api := someCluster()
		begin := time.Now()
		serve := endsWatches(api)
		var lists int
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			api.set(func() {
				if strings.HasSuffix(r.URL.Path, "/nodes") && !isWatch(r) {
					lists++
				}
			})
			// Whatever is asked from version 7 on after the first minute is too old.
			var since time.Duration
			api.set(func() { since = time.Since(begin) })
			if since%(20*time.Minute) > time.Minute && isWatch(r) && r.URL.Query().Get("resourceVersion") == "7" &&
				r.URL.Query().Get("sendInitialEvents") != "true" {
				reply(w, 410, failure(410, metav1.StatusReasonExpired))
				api.set(func() { begin = time.Now() })
				return
			}
			serve(w, r)
		})})
		defer end()
		time.Sleep(5 * time.Second)
		first := said.len() - 1
		api.set(func() { api.nodes = api.nodes[:1] })
		time.Sleep(time.Hour)
		if !said.synced(first) {
			t.Error("Synced fell")
		}
		check(t, "nodes", kubetest.Keys(tb.nodes.All()), []string{"n1"})
		if lists < 2 {
			t.Errorf("%d lists: nothing expired", lists)
		}
	})
}

func TestAServerForWhichEverythingIsExpiredIsNotStormed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		tb.lead(true)
		api := someCluster()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isWatch(r) {
				api.set(func() { api.total++ })
				select {
				case <-time.After(time.Millisecond):
				case <-r.Context().Done():
				}
				reply(w, 410, failure(410, metav1.StatusReasonExpired))
				return
			}
			api.ServeHTTP(w, r)
		})})
		defer end()
		time.Sleep(time.Minute)
		before := api.count()
		time.Sleep(10 * time.Minute)
		perMinute := (api.count() - before) / 10
		t.Logf("%d requests a minute", perMinute)
		if perMinute > 50 { // what is shared, and a few of each table with a back-off of its own
			t.Errorf("%d requests a minute", perMinute)
		}
		check(t, "nodes", kubetest.Keys(tb.nodes.All()), []string{"n1", "n2"})
	})
}

func TestWatchesThatAreTurnedAwayAreNotStormed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := someCluster()
		crowded := true
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var now bool
			api.set(func() { now = crowded })
			if now && isWatch(r) {
				api.set(func() { api.total++ })
				reply(w, 429, failure(429, metav1.StatusReasonTooManyRequests))
				return
			}
			api.ServeHTTP(w, r)
		})})
		defer end()
		time.Sleep(time.Minute)
		before := api.count()
		time.Sleep(10 * time.Minute)
		perMinute := (api.count() - before) / 10
		t.Logf("%d requests a minute", perMinute)
		if perMinute > 45 {
			t.Errorf("%d requests a minute", perMinute)
		}
		check(t, "nodes", kubetest.Keys(tb.nodes.All()), []string{"n1", "n2"})
		api.set(func() { crowded = false })
		time.Sleep(5 * time.Second)
		if s := tb.status(); !s.Synced {
			t.Errorf("status is %+v", s)
		}
	})
}

func TestAVersionFromBeforeARestoreIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := someCluster()
		restored := false
		serve := endsWatches(api)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var late bool
			api.set(func() { late = restored })
			v := r.URL.Query().Get("resourceVersion")
			if late && v != "" && v != "0" && v != "3" {
				reply(w, 504, failure(504, metav1.StatusReasonTimeout, metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge}))
				return
			}
			serve(w, r)
		})})
		defer end()
		time.Sleep(5 * time.Second)
		api.set(func() {
			restored, api.version = true, "3"
			api.nodes = api.nodes[:1]
		})
		time.Sleep(11 * time.Minute)
		check(t, "nodes", kubetest.Keys(tb.nodes.All()), []string{"n1"})
		if s := tb.status(); !s.Synced || !s.Answers() {
			t.Errorf("status is %+v", s)
		}
	})
}
