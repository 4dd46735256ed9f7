package kubeapi

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/kubetest"
)

func TestAStreamedListThatNeverEndsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := someCluster()
		stuck := true
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var now bool
			api.set(func() { now = stuck })
			if now && isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "true" {
				w.WriteHeader(http.StatusOK)
				<-r.Context().Done()
				return
			}
			api.ServeHTTP(w, r)
		})})
		defer end()
		time.Sleep(30 * time.Second)
		api.set(func() { stuck = false })
		time.Sleep(40 * time.Second)
		if s := tb.status(); !s.Synced {
			t.Errorf("status is %+v, nodes %v", s, kubetest.Keys(tb.nodes.All()))
		}
	})
}

func TestALyingServerDoesNotEmptyTheTables(t *testing.T) {
	for name, lie := range map[string]any{
		"another kind":  corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "8"}},
		"no kind":       struct{}{},
		"a success":     metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"},
		"not a list":    []int{1},
		"nameless ones": corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: make([]corev1.Node, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, tb := newTestClient(t)
				api := someCluster()
				lies := false
				end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					var now bool
					api.set(func() { now = lies })
					switch {
					case now && isWatch(r):
						reply(w, 410, failure(410, metav1.StatusReasonExpired))
					case now && strings.HasSuffix(r.URL.Path, "/nodes"):
						reply(w, 200, lie)
					default:
						endsWatches(api)(w, r)
					}
				})})
				defer end()
				time.Sleep(5 * time.Second)
				api.set(func() { lies = true })
				time.Sleep(20 * time.Minute)
				check(t, "nodes", kubetest.Keys(tb.nodes.All()), []string{"n1", "n2"})
				if tb.status().Synced {
					t.Error("the tables are called whole")
				}
			})
		})
	}
}
