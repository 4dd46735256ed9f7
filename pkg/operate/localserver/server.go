package localserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/caught"
)

const (
	// headTimeout bounds how long somebody may take to send a request.
	headTimeout = 5 * time.Second
	// writeTimeout bounds how long somebody may take to take a part of an answer.
	writeTimeout = 10 * time.Second
	// answerTimeout bounds how long somebody may take to take an answer that was
	// made: the kernel takes most of them at once.
	answerTimeout = 2 * time.Second
	idleTimeout   = 30 * time.Second
	// stopTimeout is how long requests in flight may still take at the end.
	stopTimeout    = 5 * time.Second
	maxHeaderBytes = 4096 // and as much again, which Go adds
)

// server is one listener and its requests.
type server struct {
	address string // as it was asked for
	http    *http.Server
	log     logrus.FieldLogger
	release context.CancelFunc // ends the streams
	alive   func() bool        // it still listens where others find it
	done    chan struct{}      // closed when it does not accept any more
	conns   sync.WaitGroup     // the connections it serves
}

// start listens on address and answers from a goroutine that stop ends.
func (c *Component) start(ctx context.Context, at place, address string) (*server, error) {
	listener, there, err := listen(ctx, at, address)
	if err != nil {
		return nil, err
	}
	return c.serve(ctx, at, address, listener, there), nil
}

// serve answers what comes by listener.
func (c *Component) serve(ctx context.Context, at place, address string, listener net.Listener, there func() bool) *server {
	base, release := context.WithCancel(context.WithoutCancel(ctx))
	s := &server{address: address, log: c.Log.WithField("address", address), release: release, done: make(chan struct{})}
	s.alive = func() bool {
		select {
		case <-s.done:
			return false
		default:
			return there()
		}
	}
	s.http = &http.Server{
		Handler:           caught.Handler(s.log, c.handler(at, listener.Addr())),
		ReadHeaderTimeout: headTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         s.follow,
		ConnContext:       withConn,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          stdlog.New(io.Discard, "", 0), // what strangers send is no transition of ours

		DisableGeneralOptionsHandler: true, // the guard answers that too
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(&bounded{Listener: listener}); !errors.Is(err, http.ErrServerClosed) {
			s.log.WithError(err).Error("local server failed")
		}
	}()
	s.log.Info("local server listens")
	return s
}

// listen opens address. there reports whether others still find the listener at it.
func listen(ctx context.Context, at place, address string) (l net.Listener, there func() bool, err error) {
	if at == onSocket {
		s, err := listenSocket(ctx, address)
		if err != nil {
			return nil, nil, fmt.Errorf("listen on socket: %w", err)
		}
		return s, s.there, nil
	}
	var config net.ListenConfig
	if l, err = config.Listen(ctx, "tcp", address); err != nil {
		return nil, nil, fmt.Errorf("listen on %s: %w", at, err)
	}
	return l, func() bool { return true }, nil
}

// follow counts the connections.
func (s *server) follow(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew: // in the goroutine that accepts: none is new once that has ended
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Done()
	}
}

// stop returns when the address is free again. Requests in flight may still
// end, in a goroutine of wg, also when ctx is done already; streams end at once.
func (s *server) stop(ctx context.Context, wg *sync.WaitGroup) {
	s.release()
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if err := s.http.Shutdown(ctx); err != nil {
			_ = s.http.Close()
		}
		<-s.done
		s.conns.Wait()
	})
	<-s.done
	s.log.Info("local server stopped")
}
