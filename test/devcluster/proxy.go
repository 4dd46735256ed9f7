//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

	connections, requests, faulted atomic.Int64
	sent, received                 atomic.Int64 // bytes, as the node sees it

	mu       sync.Mutex
	fault    Fault
	plan     plan
	rand     *rand.Rand // draws what part of the requests meets it
	identity identity
	agentFor time.Duration // how long the certificate of the agent is good; 0 is the usual
	listener net.Listener  // nil: nobody listens
	conns    map[*gate]bool
	watches  map[*watchBody]bool
	passing  chan struct{} // closed: bytes pass
	changed  chan struct{} // closed at the next change of the fault
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
	Faulted     int // those of them that a fault answered or reset

	// Bytes on the node's connections, as TCP carries them: encrypted, and
	// compressed where the node asks for that.
	Sent, Received int64
}

// NodeTraffic returns what node i has asked so far.
func (c *Cluster) NodeTraffic(i int) Traffic {
	p := c.proxies[i]
	return Traffic{
		int(p.connections.Load()), int(p.requests.Load()), int(p.faulted.Load()),
		p.sent.Load(), p.received.Load(),
	}
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
	close(p.changed)
	p.changed = make(chan struct{})
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
