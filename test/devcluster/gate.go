//go:build linux

package devcluster

import (
	"net"
	"sync"
)

// tap is the listener of a proxy; its connections can be held and reset.
type tap struct {
	net.Listener
	proxy *proxy
}

func (t tap) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t.proxy.connections.Add(1)
	g := &gate{Conn: conn, proxy: t.proxy, gone: make(chan struct{})}
	t.proxy.mu.Lock()
	defer t.proxy.mu.Unlock()
	if t.proxy.listener != t.Listener {
		g.reset()
		return nil, net.ErrClosed
	}
	t.proxy.conns[g] = true
	return g, nil
}

// gate is a connection through which bytes pass only while they may.
type gate struct {
	net.Conn
	proxy *proxy
	once  sync.Once
	gone  chan struct{} // closed with the connection
}

func (g *gate) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	g.proxy.sent.Add(int64(n))
	if gone := g.wait(); gone != nil {
		return 0, gone
	}
	return n, err
}

func (g *gate) Write(b []byte) (int, error) {
	if gone := g.wait(); gone != nil {
		return 0, gone
	}
	n, err := g.Conn.Write(b)
	g.proxy.received.Add(int64(n))
	return n, err
}

// wait returns when bytes may pass, or the connection is no more.
func (g *gate) wait() error {
	g.proxy.mu.Lock()
	passing := g.proxy.passing
	g.proxy.mu.Unlock()
	select {
	case <-passing:
	case <-g.gone:
	}
	if isClosed(g.gone) {
		return net.ErrClosed
	}
	return nil
}

func (g *gate) Close() error {
	g.proxy.mu.Lock()
	delete(g.proxy.conns, g)
	g.proxy.mu.Unlock()
	g.once.Do(func() { close(g.gone) })
	return g.Conn.Close()
}

// reset ends the connection in disorder. Whoever holds mu may call it.
func (g *gate) reset() {
	if tcp, ok := g.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	g.once.Do(func() { close(g.gone) })
	g.Conn.Close()
}
