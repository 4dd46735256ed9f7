package statusserver

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
	maxConnections = 256
)

// server is one listener and its requests.
type server struct {
	address string
	http    *http.Server
	log     logrus.FieldLogger
	done    chan struct{} // closed when it does not accept any more
}

// start listens on address and serves h from a goroutine that stop ends.
func start(log logrus.FieldLogger, address string, h http.Handler) (*server, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve cluster status: %w", err)
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve cluster status: %w", err)
	}
	s := &server{address: address, log: log.WithField("address", address), done: make(chan struct{})}
	s.http = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: requestTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          stdlog.New(io.Discard, "", 0), // what strangers send is no transition of ours
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(&bounded{TCPListener: l, limit: maxConnections}); !errors.Is(err, http.ErrServerClosed) {
			s.log.WithError(err).Error("status server died")
		}
	}()
	s.log.Info("status server listens")
	return s, nil
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
	})
	<-s.done
	s.log.Info("status server stopped")
}

// handler is the whole surface: everything but /status is Go's 404.
func (c *Component) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			_, _ = io.WriteString(w, "405 - Method Not Allowed")
			return
		}
		// Nothing to say is still 200: askers tell by the body only.
		_, _ = io.WriteString(w, answer(c.look()))
	})
	return mux
}
