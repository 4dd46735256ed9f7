package statusserver

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// bounded is a listener that holds at most limit connections. One more closes
// the oldest one of the peer that has the most: whoever hoards connections
// starves himself, and a joining node has one.
type bounded struct {
	*net.TCPListener
	limit int

	mu   sync.Mutex
	open []*held // oldest first
}

// held is a *net.TCPConn and not a net.Conn, so that the HTTP server finds its
// CloseWrite and a refused request still gets its answer.
type held struct {
	*net.TCPConn
	owner *bounded
	peer  netip.Addr
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.AcceptTCP()
	if err != nil {
		return nil, err
	}
	h := &held{TCPConn: conn, owner: b}
	if addr, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		h.peer = addr.AddrPort().Addr()
	}
	if surplus := b.add(h); surplus != nil {
		_ = surplus.Close()
	}
	return h, nil
}

// add takes h in and returns the connection that has to go for it, if any.
func (b *bounded) add(h *held) (surplus *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = append(b.open, h)
	if len(b.open) <= b.limit {
		return nil
	}
	has := map[netip.Addr]int{}
	for _, o := range b.open {
		has[o.peer]++
	}
	for _, o := range b.open {
		if surplus == nil || has[o.peer] > has[surplus.peer] {
			surplus = o
		}
	}
	return surplus
}

// Close implements net.Conn.
func (h *held) Close() error {
	h.owner.remove(h)
	return h.TCPConn.Close()
}

func (b *bounded) remove(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.open, h); i >= 0 {
		b.open = slices.Delete(b.open, i, i+1)
	}
}
