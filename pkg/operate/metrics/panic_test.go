package metrics

import (
	"net/http"
	"net/http/httptest"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pubsub"
)

// broken is a bus that panics.
type broken struct{}

func (broken) Stats() []pubsub.Stats { panic("a fault in a collector") }

func TestAPanicInACollectorIsAnsweredAndLoggedOnce(t *testing.T) {
	s := newStage()
	s.Bus = broken{}
	log, hook := logtest.NewNullLogger()
	h := boundedhttp.Recover(log, s.Handler())
	for range maxScrapes + 1 { // each gives its place back
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusInternalServerError {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if logged := hook.AllEntries(); len(logged) != 1 || logged[0].Message != "a request ended in a panic: a fault in a collector" {
		t.Errorf("logged: %v", logged)
	}
}
