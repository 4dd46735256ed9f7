//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"
)

// proxy is the API server as one node sees it: it has the node's address, and
// the faults. What passes goes on to the real one from the node's address, so
// that the audit log knows who asked.
type proxy struct {
	address string
	server  *http.Server
	forward *httputil.ReverseProxy
	idle    func() // closes what is not in use towards the API server
	running sync.WaitGroup

	connections, requests, spoiled atomic.Int64

	mu       sync.Mutex
	fault    Fault
	plan     plan
	identity identity
	listener net.Listener // nil: nobody listens
	conns    map[*gate]bool
	watches  map[*watchBody]bool
	passing  chan struct{} // closed: bytes pass
}

// errNoProxy is the answer of hosts to who asks for a fault.
var errNoProxy = errors.New("set a fault: between hosts there is a wire and no proxy; cut the node")

// SetFault gives every node the same fault. When it returns, at most the bytes
// that were on their way still pass.
func (c *Cluster) SetFault(f Fault) error {
	if c.hosts != nil {
		return errNoProxy
	}
	var errs []error
	for _, p := range c.proxies {
		errs = append(errs, p.set(f))
	}
	return errors.Join(errs...)
}

// SetNodeFault gives node i a fault, as SetFault.
func (c *Cluster) SetNodeFault(i int, f Fault) error {
	if c.hosts != nil {
		return errNoProxy
	}
	return c.proxies[i].set(f)
}

// NodeFault returns the fault of node i.
func (c *Cluster) NodeFault(i int) Fault {
	p := c.proxies[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// CutWatches ends the open watches of node i in good order, as an API server
// does after some time. New ones are served.
func (c *Cluster) CutWatches(i int) { c.proxies[i].endWatches() }

// Traffic is what reached the address of the API server on a node since the
// start. A refused connection does not.
type Traffic struct {
	Connections int // accepted, hung ones too
	Requests    int // read, whatever became of them; a watch is one
	Spoiled     int // those of them that a fault answered or reset
}

// NodeTraffic returns what node i has asked so far.
func (c *Cluster) NodeTraffic(i int) Traffic {
	p := c.proxies[i]
	return Traffic{int(p.connections.Load()), int(p.requests.Load()), int(p.spoiled.Load())}
}

// listen is called with mu held, or before anyone else knows p.
func (p *proxy) listen() error {
	if p.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("open the way to the API server: %w", err)
	}
	p.listener = l
	p.running.Go(func() { _ = p.server.ServeTLS(tap{l, p}, "", "") }) // ends when l is closed
	return nil
}

func (p *proxy) set(f Fault) error {
	plan, err := f.plan()
	if err != nil {
		return fmt.Errorf("set a fault: %w", err)
	}
	if plan.expired {
		defer p.endWatches()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.plan = Fault(f.String()), plan
	if plan.refused {
		p.cut()
	}
	if plan.hung && isClosed(p.passing) {
		p.passing = make(chan struct{})
	}
	if !plan.hung && !isClosed(p.passing) {
		close(p.passing)
	}
	if plan.refused {
		return nil
	}
	return p.listen()
}

// cut ends the listener and every connection. mu is held.
func (p *proxy) cut() {
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	p.resetAll()
}

// resetAll resets every connection. mu is held.
func (p *proxy) resetAll() {
	for g := range p.conns {
		g.reset()
	}
	clear(p.conns)
}

func (p *proxy) close() {
	p.mu.Lock()
	p.cut()
	p.mu.Unlock()
	p.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = p.server.Shutdown(ctx) // the connections are gone, so it only waits for their goroutines
	p.idle()
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

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
	if gone := g.wait(); gone != nil {
		return 0, gone
	}
	return n, err
}

func (g *gate) Write(b []byte) (int, error) {
	if gone := g.wait(); gone != nil {
		return 0, gone
	}
	return g.Conn.Write(b)
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
