package metrics

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// slowReader takes an answer only when it is told to.
type slowReader struct {
	*httptest.ResponseRecorder
	takes chan struct{}
}

func (s slowReader) Write(p []byte) (int, error) {
	<-s.takes
	return s.ResponseRecorder.Write(p)
}

func TestWhoTakesTheMetricsSlowlyKeepsNobodyWaiting(t *testing.T) {
	h := newStage().Handler()
	takes := make(chan struct{})
	var slow sync.WaitGroup
	for range 4 * maxScrapes {
		slow.Go(func() {
			h.ServeHTTP(slowReader{httptest.NewRecorder(), takes}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		})
	}
	var crowd sync.WaitGroup
	for range 50 {
		crowd.Go(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if w.Code != http.StatusOK || w.Body.Len() == 0 {
				t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
			}
		})
	}
	crowd.Wait()
	close(takes)
	slow.Wait()
}
