package localserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/caught"
)

const (
	// writeTimeout bounds how long someone may take to take a part of an answer.
	writeTimeout = 10 * time.Second
	// answerTimeout bounds how long someone may take to take an answer that was
	// made: the kernel takes most of them at once.
	answerTimeout = 2 * time.Second
)

// server is one listener and its requests.
type server struct {
	*boundedhttp.Server
	address string             // as it was asked for
	release context.CancelFunc // ends the streams
	there   func() bool        // others still find the listener
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
	log := c.Log.WithField("address", address)
	return &server{boundedhttp.Serve(log, "local server", &bounded{Listener: listener}, &http.Server{
		Handler:     caught.Handler(log, c.handler(at, listener.Addr())),
		ConnContext: withConn,
		BaseContext: func(net.Listener) context.Context { return base },

		DisableGeneralOptionsHandler: true, // the guard answers that too
	}), address, release, there}
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

// alive reports that it still listens where others find it.
func (s *server) alive() bool { return s.Alive() && s.there() }

// stop returns when the address is free again. Requests in flight may still
// end, in a goroutine of wg, also when ctx is done already; streams end at once.
func (s *server) stop(ctx context.Context, wg *sync.WaitGroup) {
	s.release()
	s.Stop(ctx, wg)
}
