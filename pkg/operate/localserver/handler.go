package localserver

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
)

const (
	// maxRequests bounds the answers in the making on one listener, and
	// maxStreams those of them that go on. Routes that are apart have as many
	// again for themselves.
	maxRequests = 32
	maxStreams  = 8
	turnTimeout = 3 * time.Second // how long a request waits for one of these places
	// drainTimeout is how long what someone sends after a refused request is
	// still read, so that he gets to read the refusal.
	drainTimeout = time.Second
)

// handler is what is answered at a place: the paths of that place, behind its
// guard and within the bounds.
func (c *Component) handler(at place, address net.Addr) http.Handler {
	g := &limiter{
		at: at, mux: http.NewServeMux(), routes: map[string]Route{},
		requests: semaphore.NewWeighted(maxRequests), apart: semaphore.NewWeighted(maxRequests),
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
		local, _ := netip.ParseAddrPort(address.String())
		g.guard = func(r *http.Request, _ Route) *refusal { return c.member(r, local) }
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

	requests, apart *semaphore.Weighted // places for answers in the making; those who wait get one in the order in which they came
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
func (g *limiter) answer(w http.ResponseWriter, r *http.Request) *boundedhttp.Buffered {
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
	ctx, cancel := context.WithTimeout(r.Context(), turnTimeout)
	defer cancel()
	if places.Acquire(ctx, 1) != nil {
		full.write(w, r)
		return nil
	}
	defer places.Release(1)
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
	return boundedhttp.Buffer(g.mux, r)
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
	"and then http://127.0.0.1:12347/ on your computer. With --page=on the agent serves the page here as well: \"zedkube page\"\n" +
	"prints its address with the token that it requires."

// Access is how far from the socket a path is answered. Over the socket, where
// only root asks, every path is; the zero value is that alone. What is answered
// at one is answered at those before it too.
type Access int

const (
	// SocketOnly is for what is of no use to others, and for all that changes
	// anything.
	SocketOnly Access = iota
	// WithToken is for what the agent reads with rights that others lack: over
	// loopback with the reading token, on the cluster address with a proof.
	WithToken
	// WithPage is for what anyone may see, where the page is served over loopback.
	WithPage
	// Always is for what anyone may see wherever something is served.
	Always
)

// Route is what is answered at one path.
type Route struct {
	Handler http.Handler
	Access  Access
	Methods []string // what may be asked, beside HEAD where GET may; nil for GET. Others need SocketOnly
	Effect  string   // what it changes, for the table in docs/wire.md; "" for nothing. Of GET it can be no more than how often something is read
	Stream  bool     // the answer goes on until the one who asked goes away
	Apart   bool     // it has places of its own among the answers in the making: nobody who asks for anything else keeps it from being answered
}

// methods are those that r answers.
func (r Route) methods() []string {
	if r.Methods == nil {
		return []string{http.MethodGet, http.MethodHead}
	}
	return r.Methods
}

// allows refuses a method that r does not answer.
func (r Route) allows(method string) *refusal {
	if slices.Contains(r.methods(), method) {
		return nil
	}
	allowed := strings.Join(r.methods(), ", ")
	why := "this path answers " + allowed
	if r.Effect != "" && method == http.MethodGet {
		why += ": a GET must have no effect, and here " + r.Effect
	}
	return &refusal{code: http.StatusMethodNotAllowed, why: why, allow: allowed}
}

// answers reports whether a path of this access is answered at a place.
func (c *Component) answers(at place, a Access) bool {
	switch {
	case at == onSocket || a == Always:
		return true
	case at == onLoopback:
		return c.PageToo && a > SocketOnly
	}
	return a > SocketOnly
}

const (
	streamAtLeast = 30 * time.Second // how long a stream has its place also where others want one
	streamGoes    = time.Second      // how long one that has to go may take to end
)

// streams are the answers that go on. The kernel takes what a stream sends also
// where nobody reads it, so one that is not read cannot be told from one that is
// for hours: where all places are taken, the oldest stream ends for a new one. A
// page whose stream ended asks again.
type streams struct {
	mu   sync.Mutex
	open []*stream // oldest first
}

type stream struct {
	since time.Time
	end   func()        // ends its connection
	gone  chan struct{} // closed when it has ended
}

// enter takes a place for r, false where all are taken and none is old enough.
func (s *streams) enter(r *http.Request) (leave func(), ok bool) {
	now := time.Now()
	s.mu.Lock()
	for len(s.open) >= maxStreams {
		oldest := s.open[0]
		if now.Sub(oldest.since) < streamAtLeast {
			s.mu.Unlock()
			return nil, false
		}
		s.open = s.open[1:]
		s.mu.Unlock()
		oldest.end()
		select {
		case <-oldest.gone:
		case <-time.After(streamGoes):
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	mine := &stream{since: now, end: func() {}, gone: make(chan struct{})}
	if h := openedBy(r.Context()); h != nil {
		mine.end = func() { _ = h.Close() }
	}
	s.open = append(s.open, mine)
	return func() { s.leave(mine) }, true
}

// leave gives the place back, unless it is another's by now.
func (s *streams) leave(mine *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(o *stream) bool { return o == mine })
	close(mine.gone)
}
