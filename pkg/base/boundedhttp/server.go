package boundedhttp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"maps"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// HeadTimeout bounds how long someone may take to send a request: on the
	// device and on a cluster network it is a matter of milliseconds.
	HeadTimeout = 5 * time.Second
	// IdleTimeout outlives the ten seconds between two questions of a joining
	// node, so that it can keep its connection.
	IdleTimeout = 30 * time.Second
	// MaxHeaderBytes bounds the head of a request; Go adds as much again.
	MaxHeaderBytes = 4096
	// stopTimeout is how long requests in flight may still take at the end.
	stopTimeout = 5 * time.Second
)

// Server is one listener and its requests.
type Server struct {
	name  string
	http  *http.Server
	log   logrus.FieldLogger
	done  chan struct{}  // closed when it no longer accepts
	err   error          // why, unless it was stopped; from when done is closed
	conns sync.WaitGroup // the connections it serves
}

// Serve answers what comes by listener, which bounds the connections, from a
// goroutine that Stop ends. What h does not say of the limits of heads and idle
// connections is set here. It is TLS if h has a configuration of that. Name is how
// the log calls the server.
func Serve(log logrus.FieldLogger, name string, listener net.Listener, h *http.Server) *Server {
	s := &Server{name: name, http: h, log: log, done: make(chan struct{})}
	h.ReadHeaderTimeout, h.IdleTimeout = cmp.Or(h.ReadHeaderTimeout, HeadTimeout), cmp.Or(h.IdleTimeout, IdleTimeout)
	h.MaxHeaderBytes = cmp.Or(h.MaxHeaderBytes, MaxHeaderBytes)
	h.ErrorLog = stdlog.New(io.Discard, "", 0) // what strangers send is no transition of ours
	next := h.ConnState
	h.ConnState = func(conn net.Conn, state http.ConnState) {
		if next != nil {
			next(conn, state)
		}
		switch state {
		case http.StateNew: // in the goroutine that accepts: none is new once that has ended
			s.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.conns.Done()
		}
	}
	if newest, is := listener.(*Newest); is {
		h.ConnContext = newest.context
	}
	serve := h.Serve
	if h.TLSConfig != nil {
		serve = func(l net.Listener) error { return h.ServeTLS(l, "", "") }
	}
	go func() {
		defer close(s.done)
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.err = err
			log.WithError(err).Error(name + " failed")
		}
	}()
	log.Info(name + " listens")
	return s
}

// Alive reports that it still accepts connections.
func (s *Server) Alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Stop returns when the address is free again. Requests in flight may still end,
// in a goroutine of wg, also when ctx is done already.
func (s *Server) Stop(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if err := s.http.Shutdown(ctx); err != nil {
			s.Close()
		}
		<-s.done
		s.conns.Wait()
	})
	<-s.done
	s.log.Info(s.name + " stopped")
}

// Until stops it when ctx is done, and returns when the requests in flight have
// ended too. If it fails before that, Until returns the error.
func (s *Server) Until(ctx context.Context) error {
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
	}
	var ending sync.WaitGroup
	s.Stop(ctx, &ending)
	ending.Wait()
	return nil
}

// Close ends it at once, with the connections it has.
func (s *Server) Close() { _ = s.http.Close() }

// Refuse answers with text alone: the API server quotes what it gets, and would quote
// the end of a line that http.Error adds.
func Refuse(w http.ResponseWriter, why string, code int) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, why) // who went away needs no answer
}

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

type writer struct{ *Buffered }

func (w writer) Header() http.Header { return w.header }

func (w writer) WriteHeader(code int) { w.code = code }

func (w writer) Write(p []byte) (int, error) { return w.body.Write(p) }

// Recover calls next, and keeps a fault in it to the one request. Without it
// net/http ends the connection and tells its ErrorLog, which our servers discard,
// since whatever a stranger sends is reported there. Where next panics, the request is answered with 500, or, if
// the answer has begun already, its connection is closed; the panic is logged as
// an error with its stack, once for each line of code that it comes from.
func Recover(log logrus.FieldLogger, next http.Handler) http.Handler {
	var known sync.Map // lines of code whose panic is logged
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &begun{ResponseWriter: w}
		f := Catch(func() { next.ServeHTTP(out, r) })
		if f == nil {
			return
		}
		if _, logged := known.LoadOrStore(f.at, true); !logged {
			log.WithFields(logrus.Fields{"path": r.URL.Path, "at": f.at, "stack": f.stack}).Errorf("a request ended in a panic: %v", f.reason)
		}
		out.end()
	})
}

// origin is the line of code that panicked: the first below the runtime's
// frames, as file:line.
func origin() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for below := false; ; {
		f, more := frames.Next()
		isRuntime := strings.HasPrefix(f.Function, "runtime.")
		switch {
		case f.Function == "runtime.gopanic":
			below = true
		case below && !isRuntime || !more:
			return f.File + ":" + strconv.Itoa(f.Line)
		}
	}
}

type begun struct {
	http.ResponseWriter
	yes bool
}

// Unwrap is for http.ResponseController.
func (a *begun) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *begun) WriteHeader(code int) {
	a.yes = true
	a.ResponseWriter.WriteHeader(code)
}

func (a *begun) Write(p []byte) (int, error) {
	a.yes = true
	return a.ResponseWriter.Write(p)
}

// end tells the one who asked that there is no answer, or no more of it: a part must
// not look like the whole.
func (a *begun) end() {
	if !a.yes {
		http.Error(a.ResponseWriter, "internal error, see the agent's log", http.StatusInternalServerError)
		return
	}
	if conn, _, err := http.NewResponseController(a.ResponseWriter).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// Fault is a panic of a goroutine that worked for a request. Uncaught it would end
// the process, as net/http recovers in the goroutine of the handler alone.
type Fault struct {
	reason any
	at     string // line of code that panicked
	stack  string
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprint(f.reason) }

// Catch calls f and returns the panic that it ended in, nil for none. A fault that
// was raised in another goroutine stays what it is.
func Catch(f func()) (fault *Fault) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case *Fault:
			fault = reason
		default:
			fault = &Fault{reason: reason, at: origin(), stack: string(debug.Stack())}
		}
	}()
	f()
	return nil
}

// Raise panics with f, unless it is nil. It is for the goroutine of a handler,
// where Recover logs and answers it as a panic of the line of code that it came
// from.
func (f *Fault) Raise() {
	if f != nil {
		panic(f)
	}
}

// Group is goroutines that work for one request. Its zero value is ready.
type Group struct {
	all   sync.WaitGroup
	mu    sync.Mutex
	first *Fault
}

// Go calls f in a goroutine.
func (g *Group) Go(f func()) {
	g.all.Go(func() {
		if fault := Catch(f); fault != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.first == nil {
				g.first = fault
			}
		}
	})
}

// Wait waits for all of them, and then panics as the first that did, if any.
func (g *Group) Wait() {
	g.all.Wait()
	g.first.Raise()
}
