package statusserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/caught"
)

// requestTimeout bounds how long a peer may take to send a request and to take
// the answer: on a cluster network both are a matter of milliseconds.
const requestTimeout = boundedhttp.HeadTimeout

// server is one listener and its requests.
type server struct {
	*boundedhttp.Server
	address string
}

// start listens on address and serves h from a goroutine that Stop ends. rank
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
	return &server{boundedhttp.Serve(log.WithField("address", address), "status server", &bounded{TCPListener: l, rank: rank}, &http.Server{
		Handler:      bufferedBody(caught.Handler(log, h)),
		ReadTimeout:  requestTimeout,
		WriteTimeout: requestTimeout,
		ConnState:    answered,
		ConnContext:  withConn,
	}), address}, nil
}

// answered tells the listener which of the connections have had their answer.
func answered(conn net.Conn, state http.ConnState) {
	if h, ok := conn.(*trackedConn); ok && state == http.StateIdle {
		h.busy.Store(false)
	}
}

// maxBody is far more than anyone sends: no question here needs a body.
const maxBody = 4 << 10

// connKey is where the context of a request holds its connection.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// bufferedBody hands to next what has come with its whole body. Only from then on
// does the connection count as one that waits for an answer: who promises a
// body and keeps it back is none whom a joining node has to make room for.
func bufferedBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
			code := http.StatusBadRequest
			if long := new(http.MaxBytesError); errors.As(err, &long) {
				code = http.StatusRequestEntityTooLarge
			}
			refuse(w, code, "the request body cannot be read, and none is needed")
			return
		}
		if h, ok := r.Context().Value(connKey{}).(*trackedConn); ok {
			h.busy.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}
