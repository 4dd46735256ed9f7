package localserver

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/peer"
)

// maxConnections bounds the connections of one listener: a browser opens six,
// and a scraper one.
const maxConnections = 64

// bounded is a listener that holds at most maxConnections. A new one gets in: the
// one goes for it whose other end has been waited for longest, for a request or
// to take an answer, so that who opens connections and says or reads nothing keeps
// nobody out.
type bounded struct {
	net.Listener

	mu   sync.Mutex
	open []*trackedConn // oldest first
}

// trackedConn is a connection of a bounded listener.
type trackedConn struct {
	net.Conn
	owner *bounded

	mu    sync.Mutex
	waits time.Time // since when the other end is waited for; zero while an answer is made
	until time.Time // when the answer has to be taken as a whole; zero for one that goes on
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	h := &trackedConn{Conn: conn, owner: b, waits: time.Now()}
	if surplus := b.add(h); surplus != nil {
		_ = surplus.Close()
	}
	return h, nil
}

// add takes h in and returns the connection that has to go for it, if any: h
// itself where answers are made for all others.
func (b *bounded) add(h *trackedConn) (surplus *trackedConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = append(b.open, h)
	if len(b.open) <= maxConnections {
		return nil
	}
	var longest time.Time
	for _, o := range b.open {
		if waits := o.waiting(); !waits.IsZero() && (surplus == nil || waits.Before(longest)) {
			surplus, longest = o, waits
		}
	}
	return surplus
}

// waiting is since when the other end is waited for, zero if it is not.
func (h *trackedConn) waiting() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waits
}

// Write implements net.Conn. An answer that was made has to be taken as a whole in
// time, others in each part, as streams and profiles go on.
func (h *trackedConn) Write(p []byte) (int, error) {
	until, written := h.writing(time.Now())
	defer written()
	if err := h.SetWriteDeadline(until); err != nil {
		return 0, err
	}
	return h.Conn.Write(p)
}

// writing notes that the other end is waited for, until written is called.
func (h *trackedConn) writing(now time.Time) (until time.Time, written func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until = h.until; until.IsZero() {
		until = now.Add(writeTimeout)
	}
	if !h.waits.IsZero() {
		return until, func() {}
	}
	h.waits = now
	return until, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.waits = time.Time{}
	}
}

// Close implements net.Conn.
func (h *trackedConn) Close() error {
	h.owner.remove(h)
	return h.Conn.Close()
}

func (b *bounded) remove(h *trackedConn) {
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
	if h, ok := conn.(*trackedConn); ok {
		if p, err := peer.Of(h.Conn); err == nil {
			ctx = peer.NewContext(ctx, p)
		}
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// openedBy is the connection of a request, nil for none of a bounded listener.
func openedBy(ctx context.Context) *trackedConn {
	h, _ := ctx.Value(connKey{}).(*trackedConn)
	return h
}

// answering notes that an answer is made.
func (h *trackedConn) answering() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waits, h.until = time.Time{}, time.Time{}
}

// made notes that the answer is made. It has to be taken as a whole within a time,
// or, for 0, in parts.
func (h *trackedConn) made(within time.Duration) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.waits.IsZero() {
		return
	}
	h.waits = time.Now()
	if within > 0 {
		h.until = h.waits.Add(within)
	}
}
