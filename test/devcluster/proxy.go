//go:build linux

package devcluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// Fault is what a node meets when it calls the API server.
type Fault int

// The faults. They hit connections that are open as well as new ones.
const (
	None    Fault = iota
	Refused       // nobody listens, open connections are reset
	Hung          // connections stay open and new ones are accepted, but no byte passes
)

// faultNames are in the order of the constants.
var faultNames = []string{"none", "refused", "hung"}

// ParseFault is the reverse of Fault.String.
func ParseFault(name string) (Fault, error) {
	i := slices.Index(faultNames, name)
	if i < 0 {
		return None, fmt.Errorf("unknown fault %q, want one of %q", name, faultNames)
	}
	return Fault(i), nil
}

// String returns the name of the fault.
func (f Fault) String() string {
	if f < 0 || int(f) >= len(faultNames) {
		return fmt.Sprintf("Fault(%d)", int(f))
	}
	return faultNames[f]
}

// SetFault gives every node the same fault. When it returns, at most the bytes
// that were on their way still pass.
func (c *Cluster) SetFault(f Fault) error {
	var errs []error
	for _, p := range c.proxies {
		errs = append(errs, p.set(f))
	}
	return errors.Join(errs...)
}

// SetNodeFault gives node i a fault, as SetFault.
func (c *Cluster) SetNodeFault(i int, f Fault) error { return c.proxies[i].set(f) }

// NodeFault returns the fault of node i.
func (c *Cluster) NodeFault(i int) Fault {
	p := c.proxies[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// openProxies puts a proxy on each node's address, on the API server's port.
func (c *Cluster) openProxies() error {
	for _, n := range c.Nodes {
		p := &proxy{
			address: addr(net.ParseIP(n.IP), apiPort),
			target:  addr(c.block.control(), apiPort),
			dialer:  net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(n.IP)}},
			conns:   map[net.Conn]bool{},
			passing: closedChannel(),
		}
		if err := p.listen(); err != nil {
			return err
		}
		c.proxies = append(c.proxies, p)
	}
	return nil
}

// proxy carries bytes between a node and the API server, and knows nothing of
// what they mean.
type proxy struct {
	address, target string
	dialer          net.Dialer
	running         sync.WaitGroup

	mu       sync.Mutex
	fault    Fault
	listener net.Listener // nil: nobody listens
	conns    map[net.Conn]bool
	passing  chan struct{} // closed: bytes pass
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
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
	p.running.Go(func() { p.accept(l) })
	return nil
}

func (p *proxy) set(f Fault) error {
	if f < None || f > Hung {
		return fmt.Errorf("set a fault: unknown %v", f)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	if f == Refused {
		p.cut()
		return nil
	}
	if f == Hung && isClosed(p.passing) {
		p.passing = make(chan struct{})
	}
	if f == None && !isClosed(p.passing) {
		close(p.passing)
	}
	return p.listen()
}

// cut ends the listener and every connection. mu is held.
func (p *proxy) cut() {
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for conn := range p.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end
		}
		conn.Close()
	}
	// Whoever waits in a hung connection shall see that it is closed.
	if !isClosed(p.passing) {
		close(p.passing)
	}
}

func (p *proxy) close() {
	p.mu.Lock()
	p.cut()
	p.mu.Unlock()
	p.running.Wait()
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *proxy) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(l, conn) })
	}
}

// keep notes a connection to be cut with l, or says that l is gone already.
func (p *proxy) keep(l net.Listener, conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != l {
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *proxy) drop(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

func (p *proxy) serve(l net.Listener, node net.Conn) {
	defer node.Close()
	if !p.keep(l, node) {
		return
	}
	defer p.drop(node)
	p.wait()
	// From the node's own address, so that the API server knows who asks.
	server, err := p.dialer.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(l, server) {
		return
	}
	defer p.drop(server)
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, node) })
	both.Go(func() { p.copy(node, server) })
	both.Wait()
}

// wait returns when bytes may pass.
func (p *proxy) wait() {
	p.mu.Lock()
	passing := p.passing
	p.mu.Unlock()
	<-passing
}

// copy carries one direction. Its end, for whatever reason, ends the other.
func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(gate{p, to}, from)
}

// gate is a connection that takes bytes only while they may pass.
type gate struct {
	proxy *proxy
	to    net.Conn
}

func (g gate) Write(b []byte) (int, error) {
	g.proxy.wait()
	return g.to.Write(b)
}
