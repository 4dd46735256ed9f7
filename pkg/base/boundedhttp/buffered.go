package boundedhttp

import (
	"bytes"
	"maps"
	"net/http"
)

// Buffered is an answer that is made in memory before it is sent, so that who
// takes it slowly holds nothing that the making of it needed.
type Buffered struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Buffer lets h answer r.
func Buffer(h http.Handler, r *http.Request) *Buffered {
	a := &Buffered{header: http.Header{}, code: http.StatusOK}
	h.ServeHTTP(writer{a}, r)
	return a
}

// Send sends it. A header of the answer replaces one that w has.
func (a *Buffered) Send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.code)
	w.Write(a.body.Bytes())
}

// writer implements http.ResponseWriter.
type writer struct{ *Buffered }

// Header implements http.ResponseWriter.
func (w writer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w writer) WriteHeader(code int) { w.code = code }

// Write implements http.ResponseWriter.
func (w writer) Write(p []byte) (int, error) { return w.body.Write(p) }
