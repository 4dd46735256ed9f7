package statusserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/caught"
)

const (
	// requestTimeout bounds how long a peer may take to send a request and to
	// take the answer: on a cluster network both are a matter of milliseconds.
	requestTimeout = 5 * time.Second
	// idleTimeout outlives the ten seconds between two questions of a joining
	// node, so that it can keep its connection.
	idleTimeout = 30 * time.Second
	// stopTimeout is how long requests in flight may still take at the end.
	stopTimeout    = 5 * time.Second
	maxHeaderBytes = 4096
)

// server is one listener and its requests.
type server struct {
	address string
	http    *http.Server
	log     logrus.FieldLogger
	done    chan struct{}  // closed when it does not accept any more
	conns   sync.WaitGroup // the connections it serves
}

// start listens on address and serves h from a goroutine that stop ends. rank
// says how well the owner of an address is known.
func start(ctx context.Context, log logrus.FieldLogger, address string, h http.Handler, rank func(netip.Addr) rank) (*server, error) {
	// Without keep-alives a flood is let in a quarter faster, and none of these
	// connections lives long enough to need one.
	config := net.ListenConfig{KeepAlive: -1}
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve cluster status: %w", err)
	}
	l, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("serve cluster status: a %T is not a TCP listener", listener), listener.Close())
	}
	s := &server{address: address, log: log.WithField("address", address), done: make(chan struct{})}
	s.http = &http.Server{
		Handler:           bufferedBody(caught.Handler(log, h)),
		ReadHeaderTimeout: requestTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         s.follow,
		ConnContext:       withConn,
		ErrorLog:          stdlog.New(io.Discard, "", 0), // what strangers send is no transition of ours
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(&bounded{TCPListener: l, rank: rank}); !errors.Is(err, http.ErrServerClosed) {
			s.log.WithError(err).Error("status server failed")
		}
	}()
	s.log.Info("status server listens")
	return s, nil
}

// follow counts the connections, and tells the listener which of them have had
// their answer.
func (s *server) follow(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateIdle:
		if h, ok := conn.(*trackedConn); ok {
			h.busy.Store(false)
		}
	case http.StateNew: // in the goroutine that accepts: none is new once that has ended
		s.conns.Add(1)
	case http.StateClosed:
		s.conns.Done()
	}
}

func (s *server) alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// stop returns when the address is free again. Requests in flight may still
// end, in a goroutine of wg, also when ctx is done already.
func (s *server) stop(ctx context.Context, wg *sync.WaitGroup) {
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
	s.log.Info("status server stopped")
}
