package localserver

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zedkube/zedkube/pkg/base/peer"
)

// maxConnections bounds the connections of one listener: a browser opens six,
// and a scraper one.
const maxConnections = 64

// bounded is a listener that holds at most maxConnections. A new one always
// gets in: the oldest that has no request being answered goes for it, so that
// who opens connections and says nothing keeps nobody out.
type bounded struct {
	net.Listener

	mu   sync.Mutex
	open []*held // oldest first
}

// held is a connection of a bounded listener.
type held struct {
	net.Conn
	owner *bounded
	busy  atomic.Bool // a request on it is being answered
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	h := &held{Conn: conn, owner: b}
	if surplus := b.add(h); surplus != nil {
		_ = surplus.Close()
	}
	return h, nil
}

// add takes h in and returns the connection that has to go for it, if any: h
// itself where every other is busy.
func (b *bounded) add(h *held) (surplus *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = append(b.open, h)
	if len(b.open) <= maxConnections {
		return nil
	}
	i := slices.IndexFunc(b.open, func(o *held) bool { return !o.busy.Load() })
	return b.open[i] // h is not busy yet
}

// Write implements net.Conn. Each part of an answer has to be taken in time; the
// whole has no bound, as streams and profiles go on.
func (h *held) Write(p []byte) (int, error) {
	if err := h.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return h.Conn.Write(p)
}

// Close implements net.Conn.
func (h *held) Close() error {
	h.owner.remove(h)
	return h.Conn.Close()
}

func (b *bounded) remove(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.open, h); i >= 0 {
		b.open = slices.Delete(b.open, i, i+1)
	}
}

// connKey is the key of the connection in the context of its requests.
type connKey struct{}

// withConn puts into the context of a connection's requests the connection and,
// of a unix socket, who opened it.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if h, ok := conn.(*held); ok {
		if p, err := peer.Of(h.Conn); err == nil {
			ctx = peer.NewContext(ctx, p)
		}
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// busy notes that a request of ctx is being answered, until done is called.
func busy(ctx context.Context) (done func()) {
	h, ok := ctx.Value(connKey{}).(*held)
	if !ok {
		return func() {}
	}
	h.busy.Store(true)
	return func() { h.busy.Store(false) }
}
