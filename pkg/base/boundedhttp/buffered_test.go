package boundedhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAnAnswerIsSentAsItWasMade(t *testing.T) {
	made := Buffer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "one ")
		_, _ = io.WriteString(w, "two")
	}), httptest.NewRequest(http.MethodGet, "/", nil))
	w := httptest.NewRecorder()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Frame-Options", "DENY")
	made.Send(w)
	h := w.Header()
	if w.Code != http.StatusTeapot || w.Body.String() != "one two" || h.Get("Retry-After") != "5" || h.Get("Cache-Control") != "no-cache" || h.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%d %q %v", w.Code, w.Body, h)
	}
}
