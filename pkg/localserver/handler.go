package localserver

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// maxRequests bounds the answers in the making on one listener, and
	// maxStreams those of them that go on.
	maxRequests = 32
	maxStreams  = 8
	// drainTimeout is how long what somebody sends after a refused request is
	// still read, so that he gets to read the refusal.
	drainTimeout = time.Second
)

// handler is what is answered at a place: the paths of that place, behind its
// guard and within the bounds.
func (c *Component) handler(at place, address net.Addr) http.Handler {
	mux := http.NewServeMux()
	paths := maps.Clone(c.Everywhere)
	if at == onSocket {
		maps.Copy(paths, c.SocketOnly)
	}
	for path, h := range paths {
		mux.Handle(path, h)
	}
	var guard func(*http.Request) *refusal
	switch at {
	case onSocket: // who may open it is the file's to say
		guard = func(*http.Request) *refusal { return nil }
	case onLoopback:
		guard = fromHere
	case onCluster:
		guard = func(r *http.Request) *refusal { return c.member(r, address) }
	}
	return &gate{mux: mux, guard: guard, streams: c.Streams}
}

// gate lets in who may ask, and not more than can be answered.
type gate struct {
	mux     *http.ServeMux
	guard   func(*http.Request) *refusal
	streams []string

	requests, streaming atomic.Int64
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer busy(r.Context())()
	secure(w.Header())
	refused := form(r)
	if refused == nil {
		refused = g.guard(r)
	}
	if refused != nil {
		refused.write(w, r)
		return
	}
	if leave, ok := within(&g.requests, maxRequests); ok {
		defer leave()
	} else {
		full.write(w, r)
		return
	}
	if _, path := g.mux.Handler(r); slices.Contains(g.streams, path) {
		leave, ok := within(&g.streaming, maxStreams)
		if !ok {
			full.write(w, r)
			return
		}
		defer leave()
	}
	g.mux.ServeHTTP(w, r)
}

// within counts one more, unless there are as many as may be.
func within(n *atomic.Int64, most int64) (leave func(), ok bool) {
	leave = func() { n.Add(-1) }
	if n.Add(1) > most {
		leave()
		return nil, false
	}
	return leave, true
}
