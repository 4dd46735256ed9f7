package localserver

import (
	"net"
	"net/http"
	"time"

	"github.com/zedkube/zedkube/pkg/base/whole"
)

const (
	// maxRequests bounds the answers in the making on one listener, and
	// maxStreams those of them that go on. Routes that are apart have as many
	// again for themselves.
	maxRequests = 32
	maxStreams  = 8
	// turnTimeout is how long a request waits for one of these places.
	turnTimeout = 3 * time.Second
	// drainTimeout is how long what someone sends after a refused request is
	// still read, so that he gets to read the refusal.
	drainTimeout = time.Second
)

// handler is what is answered at a place: the paths of that place, behind its
// guard and within the bounds.
func (c *Component) handler(at place, address net.Addr) http.Handler {
	g := &limiter{
		at: at, mux: http.NewServeMux(), routes: map[string]Route{},
		requests: make(turns, maxRequests), apart: make(turns, maxRequests),
	}
	for path, route := range c.Routes {
		if c.answers(at, route.Access) {
			g.mux.Handle(path, route.Handler)
			g.routes[path] = route
		}
	}
	switch at {
	case onSocket:
		g.guard = func(r *http.Request, _ Route) *refusal { return fromRoot(r) }
	case onLoopback:
		g.guard = c.program
	case onCluster:
		g.guard = func(r *http.Request, _ Route) *refusal { return c.member(r, address) }
	}
	return g
}

// program judges a program of this device that asks over loopback for route.
func (c *Component) program(r *http.Request, route Route) *refusal {
	if refused := fromHere(r); refused != nil {
		return refused
	}
	if route.Handler != nil && route.Access < WithPage {
		return c.token.check(r, time.Now())
	}
	return nil
}

// limiter lets in who may ask, and not more than can be answered.
type limiter struct {
	at     place
	mux    *http.ServeMux
	routes map[string]Route // by pattern
	guard  func(*http.Request, Route) *refusal

	requests, apart turns
	streams         streams
}

// ServeHTTP implements http.Handler.
func (g *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := openedBy(r.Context())
	conn.answering()
	defer conn.made(0)
	secure(w.Header())
	if g.at != onSocket {
		w.Header().Set("Connection", "close") // who asks many times on one waits for his turn like others
	}
	if answer := g.answer(w, r); answer != nil {
		conn.made(answerTimeout)
		answer.Send(w)
	}
}

// answer makes the answer to r. It is nil where it was written to w already: a
// refusal, one that goes on, or one that only root may ask for and that may be
// large. Only those hold their place until it is taken.
func (g *limiter) answer(w http.ResponseWriter, r *http.Request) *whole.Answer {
	refused := form(g.at, r)
	var route Route
	if refused == nil {
		_, pattern := g.mux.Handler(r)
		route = g.routes[pattern]
		refused = g.guard(r, route)
	}
	if refused == nil {
		refused = g.admit(route, r)
	}
	if refused != nil {
		refused.write(w, r)
		return nil
	}
	places := g.requests
	if route.Apart {
		places = g.apart
	}
	leave, ok := places.enter(r.Context(), turnTimeout)
	if !ok {
		full.write(w, r)
		return nil
	}
	defer leave()
	if route.Stream {
		leave, ok := g.streams.enter(r)
		if !ok {
			full.write(w, r)
			return nil
		}
		defer leave()
	}
	if route.Stream || route.Access == SocketOnly {
		g.mux.ServeHTTP(w, r)
		return nil
	}
	return whole.Make(g.mux, r)
}

// admit judges the path, for who may ask.
func (g *limiter) admit(route Route, r *http.Request) *refusal {
	switch {
	case route.Handler != nil:
		return route.allows(r.Method)
	case g.at == onLoopback:
		return &refusal{code: http.StatusNotFound, why: elsewhere}
	}
	return nil // the mux says that there is nothing
}

// elsewhere tells a person who looks for the page where it is.
const elsewhere = "This is not served here. The page and everything else are on the agent's socket, for root:\n" +
	"  ssh -L 12347:/run/zedkube/zedkube.sock root@DEVICE\n" +
	"and then http://127.0.0.1:12347/ at your end. With --page=on the agent serves the page here as well: \"zedkube page\"\n" +
	"prints its address with the token that it requires."
