package kubeapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// forPath has lie answer for a path, while there is one.
func forPath(path string, lie *atomic.Pointer[http.HandlerFunc], next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if lie := lie.Load(); lie != nil && strings.HasSuffix(r.URL.Path, path) {
			(*lie)(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}
}

func (tb *tables) stands(t *testing.T, name string) types.TableStatus {
	t.Helper()
	s, ok := tb.tables.Get(name)
	if !ok {
		t.Errorf("nothing is said of the table of %s", name)
	}
	return s
}

func TestEveryTableSaysHowItStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: someCluster()})
		time.Sleep(time.Second)
		for name, s := range tb.tables.All() {
			if absent := strings.Contains(name, "virtual machine") || strings.Contains(name, "Longhorn"); !s.Complete || s.Why != "" || s.Since.IsZero() || s.Absent != absent {
				t.Errorf("table of %s stands %+v", name, s)
			}
		}
		for _, name := range []string{types.TableNodes, types.TableAppPods, types.TableVMIs} {
			tb.stands(t, name)
		}
		end()
		if left := tb.tables.All(); len(left) > 0 {
			t.Errorf("at the end there is left %v", left)
		}
	})
}

func TestATableThatCannotBeKeptSaysWhyAndSinceWhenAndTheOthersStand(t *testing.T) {
	for name, test := range map[string]struct {
		lie http.HandlerFunc
		why string
	}{
		"forbidden": {when(always, 403, metav1.StatusReasonForbidden)(nil), "403"},
		"broken":    {status500, "500"},
		"hung":      {hang, "no answer within 10s"},
		"other": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 200, jsonObject{"kind": "NodeList", "apiVersion": "v1"})
		}, "streamed list ended before it was complete"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, tb := newTestClient(t)
			c.Log = kubetest.Quiet()
			var lie atomic.Pointer[http.HandlerFunc]
			lie.Store(&test.lie)
			end := startInMemory(t, c, &kubetest.InMemory{Handler: forPath("/eve-kube-app/pods", &lie, someCluster())})
			defer end()
			began := time.Now()
			time.Sleep(2 * time.Minute)
			s := tb.stands(t, types.TableAppPods)
			if s.Complete || !strings.Contains(s.Why, test.why) || s.Since.Sub(began) > time.Second {
				t.Errorf("%s: the table stands %+v", name, s)
			}
			if other := tb.stands(t, types.TableNodes); !other.Complete || other.Why != "" {
				t.Errorf("%s: the table of nodes stands %+v", name, other)
			}
			lie.Store(nil)
			healed := time.Now()
			time.Sleep(2 * time.Minute)
			if s := tb.stands(t, types.TableAppPods); !s.Complete || s.Why != "" || s.Since.Before(healed) {
				t.Errorf("%s: after that the table stands %+v", name, s)
			}
		})
	}
}

func TestASilentServerIsWhyTablesAreNotWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		c.Log = kubetest.Quiet()
		var refused atomic.Bool
		end := startInMemory(t, c, &kubetest.InMemory{Handler: endsWatches(someCluster()), Refuse: func() error {
			if refused.Load() {
				return access.ErrRetired
			}
			return nil
		}})
		defer end()
		time.Sleep(time.Minute)
		refused.Store(true)
		time.Sleep(12 * time.Minute)
		for name, s := range tb.tables.All() {
			if s.Complete || !strings.Contains(s.Why, "does not answer") || time.Since(s.Since) > 12*time.Minute {
				t.Errorf("table of %s stands %+v", name, s)
			}
		}
		refused.Store(false)
		time.Sleep(10 * time.Second)
		for name, s := range tb.tables.All() {
			if !s.Complete || s.Why != "" {
				t.Errorf("table of %s stands %+v", name, s)
			}
		}
	})
}

// Another kubeconfig for the same cluster is no news; one that leads nowhere is.
func TestAConnectionHandsItsTablesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		c.Log = kubetest.Quiet()
		r := newRun(t.Context(), c)
		defer r.end()
		use := func(h http.Handler) {
			if err := r.connect(t.Context(), &rest.Config{Host: "https://kube"}, &kubetest.InMemory{Handler: h}); err != nil {
				t.Fatal(err)
			}
		}
		use(someCluster())
		time.Sleep(time.Second)
		first := tb.stands(t, types.TableNodes)
		use(someCluster())
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			if s := tb.stands(t, types.TableNodes); s != first {
				t.Fatalf("it stood %+v and stands %+v", first, s)
			}
		}
		use(http.HandlerFunc(hang))
		time.Sleep(listwatch.HandOver + time.Second)
		if s := tb.stands(t, types.TableNodes); s.Complete || s.Why == "" {
			t.Errorf("with a server that hangs it stands %+v", s)
		}
	})
}

// stalls lets a list begin and never become whole.
func stalls(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// Where a watch has ended, what changes since is not seen: the next list is due.
func TestATableIsNotCalledWholeForLongAfterItsWatchHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		c.Log = kubetest.Quiet()
		var lie atomic.Pointer[http.HandlerFunc]
		quick := endsAtOnce(someCluster())
		lie.Store(&quick)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: forPath("/eve-kube-app/pods", &lie, someCluster())})
		defer end()
		time.Sleep(2 * time.Second)
		if s := tb.stands(t, types.TableAppPods); !s.Complete {
			t.Errorf("while its watches end the table stands %+v", s)
		}
		slow := http.HandlerFunc(stalls)
		lie.Store(&slow)
		time.Sleep(listwatch.HandOver + 5*time.Second)
		if s := tb.stands(t, types.TableAppPods); s.Complete || s.Why == "" {
			t.Errorf("long after its watch has ended the table stands %+v", s)
		}
		lie.Store(nil)
		time.Sleep(2 * time.Minute)
		if s := tb.stands(t, types.TableAppPods); !s.Complete || s.Why != "" {
			t.Errorf("once it is listed the table stands %+v", s)
		}
	})
}

// onlyBody is an answer whose header was sent before.
type onlyBody struct {
	http.ResponseWriter
	header http.Header
}

func (b onlyBody) Header() http.Header { return b.header }
func (onlyBody) WriteHeader(int)       {}

// Until the list that follows the end of a watch has come, the table is as it was, and called whole.
func TestWhatAWitnessSaysWhileTheTableOfNodesLagsIsOfUnknownAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		c.Log = kubetest.Quiet()
		api, ends := someCluster(), make(chan struct{})
		says := func(round string) {
			n := testNode("n2", "x")
			n.Annotations = map[string]string{nodes.WitnessAnnotation: `{"round":` + round + `}`}
			api.set(func() { api.nodes, api.version = []corev1.Node{testNode("n1", ownUUID), n}, round })
		}
		goesOn := func(r *http.Request) bool {
			return isWatch(r) && r.URL.Query().Get("sendInitialEvents") != "true"
		}
		begin := func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
		}
		holds := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !goesOn(r) {
				api.ServeHTTP(w, r)
				return
			}
			begin(w)
			select {
			case <-r.Context().Done():
			case <-ends:
			}
		})
		late := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if goesOn(r) {
				reply(w, 410, failure(410, metav1.StatusReasonExpired))
				return
			}
			begin(w)
			select {
			case <-r.Context().Done():
			case <-time.After(25 * time.Second):
				api.ServeHTTP(onlyBody{w, http.Header{}}, r)
			}
		})
		var node atomic.Pointer[http.HandlerFunc]
		node.Store(&holds)
		says("8")
		end := startInMemory(t, c, &kubetest.InMemory{Handler: forPath("/api/v1/nodes", &node, api)})
		defer end()
		var words types.Witnesses
		for at := time.Second; words["n2"].Round != 9; at += time.Second {
			time.Sleep(time.Second)
			if at == 10*time.Second {
				says("9")
				node.Store(&late)
				close(ends)
			}
			s := tb.status()
			if words = words.Hear(tb.nodes.All(), s.Answers() && s.Synced, at); at > 2*time.Minute || !s.Answers() || !s.Synced {
				t.Fatalf("after %s: %+v, %+v", at, s, words)
			}
		}
		if words["n2"].At != 0 {
			t.Errorf("it counts as heard: %+v", words)
		}
	})
}

// A table that is refused is tried seldom; that is no reason to leave others alone, whose watches end every few minutes.
func TestATableIsListedSoonAfterItsWatchHasEndedBesideOneThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		c.Log = kubetest.Quiet()
		api := someCluster()
		api.apps = map[string][]any{"virtualmachineinstances": {jsonObject{"metadata": jsonObject{"name": "a", "namespace": "eve-kube-app", "uid": "1"}}}}
		serve, refuses := endsWatches(api), when(always, 403, metav1.StatusReasonForbidden)(nil)
		var expired atomic.Bool
		var ended atomic.Pointer[time.Time]
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			machines := strings.HasSuffix(r.URL.Path, "/virtualmachineinstances") && isWatch(r) && r.URL.Query().Get("sendInitialEvents") != "true"
			switch {
			case strings.HasSuffix(r.URL.Path, "/virtualmachines"):
				refuses(w, r)
			case machines && expired.Swap(false):
				reply(w, 410, failure(410, metav1.StatusReasonExpired))
			case machines:
				if serve(w, r); r.Context().Err() == nil && ended.Load() == nil { // what happens from here on is not seen
					expired.Store(true)
					api.set(func() { api.apps = map[string][]any{"virtualmachineinstances": {}} })
					now := time.Now()
					ended.Store(&now)
				}
			default:
				serve(w, r)
			}
		})})
		defer end()
		for ended.Load() == nil {
			time.Sleep(time.Second)
		}
		for len(tb.vmis.All()) > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		if after := time.Since(*ended.Load()); after > 5*time.Second {
			t.Errorf("an instance that is gone was shown for %v", after)
		}
	})
}

func TestAServerThatDoesNotEndStreamedListsIsAskedForPlainOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		c.Log = kubetest.Quiet()
		api := someCluster()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("sendInitialEvents") == "true" {
				stalls(w, r)
				return
			}
			api.ServeHTTP(w, r)
		})})
		defer end()
		time.Sleep(5 * time.Minute)
		if s := tb.stands(t, types.TableNodes); !s.Complete || len(tb.nodes.All()) == 0 || !tb.status().Synced {
			t.Errorf("there are %d nodes, and the table stands %+v", len(tb.nodes.All()), s)
		}
	})
}
