package boundedhttp

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// Newest is a listener that has at most Most connections open which are not kept: a new one always gets in, and the oldest
// goes for it. So who opens many and asks for nothing keeps nobody waiting, nor the kubelet, which would call the pod not
// ready. Serve lets Keep find the connection of a request.
type Newest struct {
	net.Listener
	Most int

	mu   sync.Mutex
	open []*opened // oldest first
}

type opened struct {
	net.Conn
	of     *Newest
	closed bool
}

// connection is the key of the connection of a request.
type connection struct{}

// Accept implements net.Listener.
func (l *Newest) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &opened{Conn: conn, of: l}
	l.add(c)
	return c, nil
}

// add takes c in, unless it is closed, and closes the connection that goes for it.
func (l *Newest) add(c *opened) {
	l.mu.Lock()
	var oldest *opened
	if !c.closed {
		if len(l.open) >= l.Most {
			oldest, l.open = l.open[0], l.open[1:]
		}
		l.open = append(l.open, c)
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Conn.Close() // who serves it closes it again
	}
}

// drop takes c out.
func (l *Newest) drop(c *opened, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(o *opened) bool { return o == c })
	c.closed = c.closed || closed
}

// Close implements net.Conn.
func (c *opened) Close() error {
	c.of.drop(c, true)
	return c.Conn.Close()
}

// context lets requests know their connection.
func (l *Newest) context(ctx context.Context, conn net.Conn) context.Context {
	if secure, is := conn.(interface{ NetConn() net.Conn }); is {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connection{}, conn)
}

// Keep has the connection of a request that came by a Newest stay until release. end closes it.
func Keep(r *http.Request) (end, release func()) {
	c := r.Context().Value(connection{}).(*opened)
	c.of.drop(c, false)
	return func() { _ = c.Close() }, func() { c.of.add(c) }
}
