package kubeapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zedkube/zedkube/test/kubetest"
)

func TestAnAPIServerThatIsNotReadySaysWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t)
		api, code, text := &fakeAPI{}, http.StatusOK, "ok"
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				api.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		})})
		defer end()
		if err := c.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		code, text = http.StatusInternalServerError, "[+]ping ok\n[-]etcd failed: reason withheld\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"
		if err := c.Ready(t.Context()); err == nil || !strings.HasSuffix(err.Error(), ": etcd failed: reason withheld, informer-sync failed: reason withheld") {
			t.Errorf("the error is %v", err)
		}
		code, text = http.StatusServiceUnavailable, "apiserver not ready"
		if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "ask the API server whether it is ready: ") {
			t.Errorf("the error is %v", err)
		}
	})
}
