package metrics

import (
	"bytes"
	"maps"
	"net/http"
	"time"
)

// inTurn lets a few answers be made at once, and the others in the order in which
// they were asked for. Each is made whole before it is sent: who takes it slowly
// keeps nobody waiting.
type inTurn struct {
	places chan struct{}
	next   http.Handler
}

// ServeHTTP implements http.Handler.
func (t *inTurn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	late := time.NewTimer(turnTimeout)
	defer late.Stop()
	select {
	case t.places <- struct{}{}:
	case <-late.C:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many ask for the metrics: ask again soon", http.StatusServiceUnavailable)
		return
	case <-r.Context().Done():
		return
	}
	answer := &whole{header: http.Header{}, code: http.StatusOK}
	func() {
		defer func() { <-t.places }()
		t.next.ServeHTTP(answer, r)
	}()
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(answer.code)
	w.Write(answer.body.Bytes())
}

// whole is an answer in memory.
type whole struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *whole) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *whole) WriteHeader(code int) { a.code = code }

// Write implements http.ResponseWriter.
func (a *whole) Write(p []byte) (int, error) { return a.body.Write(p) }
