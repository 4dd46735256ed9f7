// Package path leads requests to edge nodes to the cloudcore that has their tunnel, on one server (docs/edge.md, "The
// path of a log"). The API server dials the address and port of an edge node's kubelet, as it does of every node; the
// addresses of edge nodes are made local to the server, and what comes in there is carried to cloudcore's pod as it is.
// Nothing of the host's iptables is used.
//
//	reads:  the settings, KubeEdge's record of tunnels
//	serves: the recorded ports at the addresses of edge nodes
//	writes: one route of the host
package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
)

const (
	period      = 5 * time.Second // how soon a route is back that somebody has removed
	dialWithin  = 2 * time.Second
	connections = 1000 // at once on one server
	ownKubelet  = 10250

	// lostAfter is how long the server of a cloudcore may not acknowledge anything. The API server sends a request
	// into a connection that it has had before, and when that ends it dials: both have to be over within 10 s.
	lostAfter  = 5 * time.Second
	watchEvery = time.Second
)

// Wanted is what the path shall do.
type Wanted struct {
	Block netip.Prefix   // the addresses of edge nodes; the zero Prefix for none
	Ports map[int]Target // by the port at which they are asked
}

// Target is where to carry what comes in at one port.
type Target struct {
	To string // as in 10.42.0.7:10003
	// Unneeded says that no edge node of this KubeEdge is asked there: it is served where the host has the port free.
	Unneeded bool
}

// Kube tells what is wanted.
type Kube interface {
	loop.Input
	Wanted() (Wanted, error)
}

// Host makes addresses local to this host.
type Host interface {
	// Local makes all addresses of a block local, or takes back what it made before where the block is the zero
	// Prefix. It changes nothing where that is so already.
	Local(block netip.Prefix) error
}

// Component serves one server. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse
	Kube  Kube
	Host  Host

	mu     sync.Mutex
	wanted Wanted
	looked bool  // at what is wanted, at least once
	why    error // why something of it is not so

	ports  map[int]*listener
	places chan struct{} // one for each connection
}

// Run steps until ctx is done, and leaves no route and no connection behind.
func (c *Component) Run(ctx context.Context) {
	c.ports, c.places = map[int]*listener{}, make(chan struct{}, connections)
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Kube)
	c.stop()
}

// stop takes back all that Step has done.
func (c *Component) stop() {
	for _, l := range c.ports {
		l.close()
	}
	if err := c.Host.Local(netip.Prefix{}); err != nil {
		c.Log.WithError(err).Warn("could not remove the route to edge nodes")
	}
}

// Ready returns nil while everything that is wanted is so.
func (c *Component) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.looked {
		return errors.New("what is wanted is not known yet")
	}
	return c.why
}

func (c *Component) set(w Wanted, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted, c.why, c.looked = w, why, true
}

// Step looks and does what is missing.
func (c *Component) Step(ctx context.Context) error {
	w, err := c.Kube.Wanted()
	if err != nil {
		return fmt.Errorf("read what is wanted: %w", err) // what there is goes on
	}
	if !w.Block.IsValid() {
		w.Ports = nil
	}
	c.set(w, c.Ready()) // connections see at once where they lead now
	err = c.Host.Local(w.Block)
	for port, l := range c.ports {
		if w.Ports[port].To == "" {
			l.close()
			delete(c.ports, port)
			c.Log.Infof("port %d of edge nodes is served no longer", port)
		}
	}
	for _, port := range slices.Sorted(maps.Keys(w.Ports)) {
		if c.ports[port] != nil {
			continue
		}
		l, why := c.listen(ctx, port)
		if why == nil {
			c.ports[port] = l
			c.Log.Infof("port %d of edge nodes is served, by %s", port, w.Ports[port].To)
		} else if !w.Ports[port].Unneeded {
			err = errors.Join(err, why)
		}
	}
	c.set(w, err)
	return err
}

// target is where a connection to an address leads; "" where it leads nowhere.
func (c *Component) target(to netip.AddrPort) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.wanted.Block.Contains(to.Addr().Unmap()) {
		return "" // another address of this host
	}
	return c.wanted.Ports[int(to.Port())].To
}

// listener serves one port, until it is closed.
type listener struct {
	net.Listener
	stop context.CancelFunc
	done sync.WaitGroup
}

func (l *listener) close() {
	l.stop()
	_ = l.Close() // nothing was written
	l.done.Wait()
}

func (c *Component) listen(ctx context.Context, port int) (*listener, error) {
	at, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, fmt.Errorf("serve port %d of edge nodes: %w", port, err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // a step ends long before
	l := &listener{Listener: at, stop: stop}
	l.done.Go(func() {
		for {
			conn, err := at.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // of one connection, or there are too many
				if !pause(ctx, 10*time.Millisecond) {
					return
				}
				continue
			}
			select {
			case c.places <- struct{}{}:
				l.done.Go(func() {
					defer func() { <-c.places }()
					c.carry(ctx, conn)
				})
			default:
				_ = conn.Close() // too many
			}
		}
	})
	return l, nil
}

// pause waits, and reports whether it did so to its end.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// carry carries one connection until both sides have ended it, its port leads elsewhere, or cloudcore's server is lost.
func (c *Component) carry(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	to, err := netip.ParseAddrPort(conn.LocalAddr().String())
	target := c.target(to)
	if err != nil || target == "" {
		return
	}
	out, err := dial(ctx, target)
	if err != nil {
		c.Log.WithError(err).Warnf("could not reach the cloudcore of edge node %s", to.Addr())
		return
	}
	defer out.Close()
	ctx, end := context.WithCancel(ctx)
	stopped := context.AfterFunc(ctx, func() { _, _ = conn.Close(), out.Close() }) // nothing that matters is lost
	defer stopped()
	var both sync.WaitGroup
	both.Go(func() { half(out, conn) })
	both.Go(func() { half(conn, out) })
	go func() { both.Wait(); end() }()
	for c.target(to) == target && !lost(out) && pause(ctx, watchEvery) {
	}
	end()
	both.Wait()
}

// half carries one way, and passes the end on.
func half(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = from.Close() // the other way has ended too
		_ = to.Close()
		return
	}
	if way, is := to.(interface{ CloseWrite() error }); is {
		_ = way.CloseWrite()
	}
}

// Ports are where the ports of KubeEdge's record lead: record has a port for each address of a cloudcore, and the
// stream is at streamPort of each. destination is instead of all cloudcores, "" for none. The further ports are those
// of the settings, for edge nodes from before KubeEdge 1.12; they lead to the first cloudcore.
func Ports(record map[string]int, streamPort int, destination string, further ...int) map[int]Target {
	ports := map[int]Target{}
	first := destination
	for _, address := range slices.Sorted(maps.Keys(record)) {
		if _, err := netip.ParseAddr(address); err != nil || !isPort(record[address]) {
			continue // KubeEdge has written it, but it is no address and port
		}
		to := cmp.Or(destination, net.JoinHostPort(address, strconv.Itoa(streamPort)))
		first = cmp.Or(first, to)
		ports[record[address]] = Target{To: to}
	}
	for _, port := range further {
		if ports[port].To == "" && first != "" && isPort(port) {
			ports[port] = Target{To: first, Unneeded: true}
		}
	}
	return ports
}

// isPort reports whether a port may be served. That of the server's own kubelet is never taken, also while it is free:
// the kubelet could not start again.
func isPort(n int) bool { return n > 0 && n <= math.MaxUint16 && n != ownKubelet }
