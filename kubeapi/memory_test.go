package kubeapi

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
)

// tearOff ends an answer in the middle.
func tearOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"kind":`))
	_ = w.(*kubetest.PipeWriter).Pipe.CloseWithError(io.ErrUnexpectedEOF)
}

// brief lets a watch last a quarter of a minute.
func brief(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); isWatch(r) {
			r = r.Clone(r.Context())
			q.Set("timeoutSeconds", "15")
			r.URL.RawQuery = q.Encode()
		}
		next.ServeHTTP(w, r)
	}
}

// A leak of one list a cycle would be some 200 kB each; a leak of one timer,
// context or goroutine is seen in the number of goroutines or in the sum.
func TestMemoryIsFlatOverManyFaults(t *testing.T) {
	const cycles = 200
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		c.Log = kubetest.Quiet()
		tb.lead(true)
		api := someCluster()
		for i := range 300 {
			api.pods = append(api.pods, kubetest.TestPod("eve-kube-app", fmt.Sprint("p", i), "n1"))
		}
		var refused atomic.Bool
		end := startInMemory(t, c, &kubetest.InMemory{Handler: brief(endsWatches(api)), Refuse: func() error {
			if refused.Load() {
				return access.ErrRetired
			}
			return nil
		}})
		defer end()
		kinds := []func(){
			func() { refused.Store(true) },
			func() { api.fault = hang },
			func() { api.fault = status500 },
			func() { api.fault = when(always, 429, metav1.StatusReasonTooManyRequests)(nil) },
			func() { api.fault = when(always, 403, metav1.StatusReasonForbidden)(nil) },
			func() { api.fault = tearOff },
		}
		cycle := func(i int) {
			api.set(kinds[i%len(kinds)])
			time.Sleep(30 * time.Second)
			api.set(func() {
				refused.Store(false)
				api.fault = nil
				api.pods[0] = kubetest.TestPod("eve-kube-app", fmt.Sprint("new", i), "n1")
			})
			time.Sleep(10 * time.Second)
			if s := tb.status(); !s.Synced || !s.Answers() {
				t.Errorf("after cycle %d the status is %+v", i, s)
			}
		}
		for i := range 2 * len(kinds) {
			cycle(i)
		}
		synctest.Wait()
		before, goroutines := kubetest.Heap(), runtime.NumGoroutine()
		for i := range cycles {
			cycle(i)
		}
		synctest.Wait()
		after := kubetest.Heap()
		t.Logf("%d kB and %d goroutines, after %d cycles %d kB and %d", before>>10, goroutines, cycles, after>>10, runtime.NumGoroutine())
		if after > before+2<<20 {
			t.Errorf("the heap grew from %d to %d kB", before>>10, after>>10)
		}
		if n := runtime.NumGoroutine(); n > goroutines+10 {
			t.Errorf("%d goroutines became %d", goroutines, n)
		}
	})
}
