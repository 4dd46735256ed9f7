package statusserver

import (
	"net"
	"slices"
	"sync"
)

// newest is a listener that holds at most limit connections: one more closes
// the oldest. An honest request takes a millisecond and is never the oldest for
// long, so whoever hoards connections can only starve himself.
type newest struct {
	*net.TCPListener
	limit int

	mu   sync.Mutex
	open []*held // oldest first
}

// held is a *net.TCPConn and not a net.Conn, so that the HTTP server finds its
// CloseWrite and a refused request still gets its answer.
type held struct {
	*net.TCPConn
	owner *newest
}

// Accept implements net.Listener.
func (n *newest) Accept() (net.Conn, error) {
	conn, err := n.AcceptTCP()
	if err != nil {
		return nil, err
	}
	h := &held{TCPConn: conn, owner: n}
	if oldest := n.add(h); oldest != nil {
		_ = oldest.Close()
	}
	return h, nil
}

func (n *newest) add(h *held) *held {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = append(n.open, h)
	if len(n.open) > n.limit {
		return n.open[0]
	}
	return nil
}

// Close implements net.Conn.
func (h *held) Close() error {
	h.owner.remove(h)
	return h.TCPConn.Close()
}

func (n *newest) remove(h *held) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.Index(n.open, h); i >= 0 {
		n.open = slices.Delete(n.open, i, i+1)
	}
}
