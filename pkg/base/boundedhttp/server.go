package boundedhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	stdlog "log"
	"maps"
	"net"
	"net/http"
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
	conns sync.WaitGroup // the connections it serves
}

// Serve answers what comes by listener, which bounds the connections, from a
// goroutine that Stop ends. The limits of heads and idle connections are set here,
// what h has of others stays. Name is how the log calls the server.
func Serve(log logrus.FieldLogger, name string, listener net.Listener, h *http.Server) *Server {
	s := &Server{name: name, http: h, log: log, done: make(chan struct{})}
	h.ReadHeaderTimeout, h.IdleTimeout, h.MaxHeaderBytes = HeadTimeout, IdleTimeout, MaxHeaderBytes
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
	go func() {
		defer close(s.done)
		if err := h.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
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

// Close ends it at once, with the connections it has.
func (s *Server) Close() { _ = s.http.Close() }

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
