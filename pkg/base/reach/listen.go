package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
)

// ErrServed is the error for a port that someone serves already.
var ErrServed = errors.New("it is served already")

// maxHeard bounds what is remembered of who came: peers are few.
const maxHeard = 256

// Listeners stand in for services that do not run yet. Who comes is let in and
// shown out at once.
type Listeners struct {
	// Failed are the ports that are not ours, and why; ErrServed where someone
	// else answers there.
	Failed map[int]error

	open  []net.Listener
	ended sync.WaitGroup

	mu    sync.Mutex
	heard map[netip.AddrPort]bool // who came, and to which port of ours
}

// Listen takes the ports of an address that nobody serves.
func Listen(ctx context.Context, at netip.Addr, ports []int) *Listeners {
	l := &Listeners{Failed: map[int]error{}, heard: map[netip.AddrPort]bool{}}
	for _, port := range ports {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", host(at, port))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			l.Failed[port] = ErrServed
		case err != nil:
			l.Failed[port] = fmt.Errorf("listen: %w", err)
		default:
			l.open = append(l.open, listener)
			l.ended.Go(func() { l.serve(listener, port) })
		}
	}
	return l
}

func (l *Listeners) serve(listener net.Listener, port int) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed, or beyond use
		}
		from, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
		_ = conn.Close()
		l.mu.Lock()
		if len(l.heard) < maxHeard {
			l.heard[netip.AddrPortFrom(bare(from.Addr()), uint16(port))] = true //nolint:gosec // a port
		}
		l.mu.Unlock()
	}
}

// Heard are the ports to which someone came from that address.
func (l *Listeners) Heard(from netip.Addr) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []int
	for who := range l.heard {
		if who.Addr() == bare(from) {
			out = append(out, int(who.Port()))
		}
	}
	slices.Sort(out)
	return out
}

// Close gives the ports back.
func (l *Listeners) Close() {
	for _, listener := range l.open {
		_ = listener.Close()
	}
	l.ended.Wait()
}

func bare(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }
