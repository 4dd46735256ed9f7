package kubeapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
)

// when answers code to the requests that meet, and ends the watches that are open.
func when(meets func(*http.Request) bool, code int, reason metav1.StatusReason) func(http.Handler) http.HandlerFunc {
	return func(api http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if meets(r) {
				reply(w, code, failure(code, reason))
				return
			}
			api.ServeHTTP(w, r)
		}
	}
}

func always(*http.Request) bool    { return true }
func listing(r *http.Request) bool { return !strings.HasSuffix(r.URL.Path, "/"+access.Namespace) }
func ofNodes(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/nodes") }

// endsAtOnce ends each watch in good order as it begins.
func endsAtOnce(api http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isWatch(r) || r.URL.Query().Get("sendInitialEvents") == "true" {
			api.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusOK)
	}
}

// troubled is what a client meets whose server is in trouble but not silent:
// its open watches end, and then the trouble lasts.
func troubled(t *testing.T, trouble func(http.Handler) http.HandlerFunc, most int, during func(*tables)) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		tb.lead(true)
		api := someCluster()
		in, ends, asked := false, make(chan struct{}), 0
		// Its watches end when the trouble begins and when it ends.
		well := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var over chan struct{}
			api.set(func() { over = ends })
			if !isWatch(r) || r.URL.Query().Get("sendInitialEvents") == "true" {
				api.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusOK)
			select {
			case <-over:
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": failure(410, metav1.StatusReasonExpired)})
			case <-r.Context().Done():
			}
		})
		turn := func(change func()) {
			api.set(func() {
				close(ends)
				ends = make(chan struct{})
				change()
			})
		}
		spoiled := trouble(well)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var now bool
			api.set(func() { now = in; asked++ })
			if now {
				spoiled(w, r)
				return
			}
			well(w, r)
		})})
		defer end()
		time.Sleep(13 * time.Second)
		turn(func() { in = true })
		time.Sleep(time.Minute)
		during(tb)
		var before, later int
		api.set(func() { before = asked })
		time.Sleep(20 * time.Minute)
		api.set(func() { later = asked })
		perMinute := float64(later-before) / 20
		t.Logf("%.1f requests a minute", perMinute)
		if perMinute > float64(most) {
			t.Errorf("%.1f requests a minute", perMinute)
		}
		during(tb)
		turn(func() {
			in = false
			api.nodes = append(api.nodes[:1:1], testNode("n3", "z"))
			api.pods = append(api.pods[1:len(api.pods):len(api.pods)], kubetest.TestPod("eve-kube-app", "a3", "n1"))
		})
		time.Sleep(5 * time.Second)
		check(t, "nodes", kubetest.Keys(tb.nodes.All()), []string{"n1", "n3"})
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

func TestAServerInTroubleIsNotStormedAndHealsWithinFiveSeconds(t *testing.T) {
	for name, test := range map[string]struct {
		trouble func(http.Handler) http.HandlerFunc
		most    int // requests a minute; more where lists keep the tables right meanwhile
	}{
		"everything is forbidden":     {when(always, 403, metav1.StatusReasonForbidden), 30},
		"lists and watches forbidden": {when(listing, 403, metav1.StatusReasonForbidden), 30},
		"nodes are forbidden":         {when(ofNodes, 403, metav1.StatusReasonForbidden), 30},
		"everything is turned away":   {when(always, 429, metav1.StatusReasonTooManyRequests), 30},
		"watches are turned away":     {when(isWatch, 429, metav1.StatusReasonTooManyRequests), 60},
		"watches fail":                {when(isWatch, 503, metav1.StatusReasonServiceUnavailable), 60},
		"lists and watches fail":      {when(listing, 500, metav1.StatusReasonInternalError), 36},
		"nodes are not found":         {when(ofNodes, 404, metav1.StatusReasonNotFound), 30},
		"watches have all expired":    {when(isWatch, 410, metav1.StatusReasonExpired), 60},
		"watches end as they begin":   {endsAtOnce, 60},
	} {
		t.Run(name, func(t *testing.T) {
			troubled(t, test.trouble, test.most, func(tb *tables) {
				if s := tb.status(); !s.Answers() {
					t.Errorf("it is taken for silent: %+v", s)
				}
				if n := len(tb.nodes.All()); n != 2 {
					t.Errorf("%d nodes", n)
				}
			})
		})
	}
}

func TestOneViewThatCannotBeHadLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := someCluster()
		var nodes []corev1.Node
		end := startInMemory(t, c, &kubetest.InMemory{Handler: when(func(r *http.Request) bool {
			return isWatch(r) && strings.Contains(r.URL.Path, access.Namespace)
		}, 403, metav1.StatusReasonForbidden)(endsWatches(api))})
		defer end()
		time.Sleep(10 * time.Minute)
		api.set(func() { nodes = api.nodes })
		if len(tb.nodes.All()) != len(nodes) || len(tb.own.All()) != 2 {
			t.Errorf("nodes %v, own pods %v", kubetest.Keys(tb.nodes.All()), kubetest.Keys(tb.own.All()))
		}
	})
}
