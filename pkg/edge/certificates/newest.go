package certificates

import (
	"net"
	"slices"
	"sync"
)

// newest is a listener that has at most that many connections open: a new one always gets in, and the oldest goes for it.
// So who opens many and asks for nothing keeps neither a device waiting nor the kubelet, which would call the pod not ready.
type newest struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*opened // oldest first
}

type opened struct {
	net.Conn
	of *newest
}

// Accept implements net.Listener.
func (l *newest) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &opened{conn, l}
	if oldest := l.add(c); oldest != nil {
		_ = oldest.Conn.Close() // who serves it closes it again
	}
	return c, nil
}

// add takes c in, and returns the connection that goes for it; nil for none.
func (l *newest) add(c *opened) (oldest *opened) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		oldest, l.open = l.open[0], l.open[1:]
	}
	l.open = append(l.open, c)
	return oldest
}

// Close implements net.Conn.
func (c *opened) Close() error {
	c.of.mu.Lock()
	c.of.open = slices.DeleteFunc(c.of.open, func(o *opened) bool { return o == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}
