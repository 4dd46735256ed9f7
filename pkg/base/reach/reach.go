// Package reach tries whether the nodes of a cluster reach each other: it
// connects, and says nothing on a connection but a TLS hello.
package reach

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Ports are those that the nodes of a cluster need of each other.
func Ports() []int {
	return []int{types.PortAPI, types.PortEtcdClient, types.PortEtcdPeer, types.PortKubelet, types.PortStatus}
}

// Try connects from one address to ports of another, all at once, and says what
// became of it. What is not answered when ctx ends is silent. An invalid from
// leaves the choice to the kernel.
func Try(ctx context.Context, from, to netip.Addr, ports []int) []types.ReachPort {
	out := make([]types.ReachPort, len(ports))
	var tries sync.WaitGroup
	for i, port := range ports {
		tries.Go(func() {
			conn, err := Dialer(from).DialContext(ctx, "tcp", host(to, port))
			if err == nil {
				_ = conn.Close()
			}
			out[i] = types.ReachPort{Port: port, Outcome: outcome(err)}
		})
	}
	tries.Wait()
	return out
}

// DialTimeout is a second for a packet that is lost and sent again, and one more
// for a device that is busy.
const DialTimeout = 2 * time.Second

// Connect tries one address within DialTimeout and hangs up. What err means is as of
// Meaning.
func Connect(
	ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), address string,
) (answered, tried bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	conn, err := dial(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	answered, tried = Meaning(err)
	return answered, tried, err
}

// Meaning is what the end of an attempt to connect says about the other device:
// whether it answered, and if not, whether that was tried at all.
//
// To be refused is an answer: only a live kernel, or a firewall in front of it,
// sends that. Silence is silence, and so is "no route to host", which Linux says
// when nobody in the local network answers for the address, or when a router
// cannot deliver.
//
// All other errors are our own: "network is unreachable" is a missing route, so
// most likely an interface of ours that is down, and others are a lack of ports,
// files, or rights. They say nothing of the other device.
func Meaning(err error) (answered, tried bool) {
	switch {
	case err == nil, errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return true, true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return false, true
	}
	return false, false
}

// Hello connects and begins TLS. It fails where the server that answers speaks none;
// whom the certificate is of is not looked at.
func Hello(ctx context.Context, from, to netip.Addr, port int) error {
	conn, err := Dialer(from).DialContext(ctx, "tcp", host(to, port))
	if err != nil {
		return err
	}
	defer conn.Close()
	seen := false
	secure := tls.Client(conn, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // who has not joined knows no authority, and sends nothing
		VerifyConnection:   func(tls.ConnectionState) error { seen = true; return nil },
	})
	if err := secure.HandshakeContext(ctx); err != nil && !seen {
		return err // one that wants a certificate of ours has shown its own first
	}
	return nil
}

// Dialer connects from an address of this device.
func Dialer(from netip.Addr) *net.Dialer {
	d := &net.Dialer{}
	if from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	return d
}

func host(ip netip.Addr, port int) string { return net.JoinHostPort(ip.String(), strconv.Itoa(port)) }

func outcome(err error) types.ReachOutcome {
	switch timeout := net.Error(nil); {
	case err == nil:
		return types.ReachOpen
	case errors.Is(err, syscall.ECONNREFUSED):
		return types.ReachRefused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &timeout) && timeout.Timeout():
		return types.ReachSilent
	}
	return types.ReachUnreachable
}

// ErrServed is the error for a port that someone serves already.
var ErrServed = errors.New("it is already in use")

// maxHeard bounds what is remembered of who came: peers are few.
const maxHeard = 256

// Listeners stand in for services that do not run yet. Who comes is let in and
// shown out at once.
type Listeners struct {
	// Failed are the ports that are not ours, and why; ErrServed where someone
	// else answers there.
	Failed map[int]error

	open  map[int]net.Listener // by port
	ended sync.WaitGroup

	mu    sync.Mutex
	heard map[netip.AddrPort]bool // who came, and to which port of ours
}

// Listen takes the ports of an address that nobody serves.
func Listen(ctx context.Context, at netip.Addr, ports []int) *Listeners {
	l := &Listeners{Failed: map[int]error{}, open: map[int]net.Listener{}, heard: map[netip.AddrPort]bool{}}
	for _, port := range ports {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", host(at, port))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			l.Failed[port] = ErrServed
		case err != nil:
			l.Failed[port] = fmt.Errorf("listen: %w", err)
		default:
			l.open[port] = listener
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

// lateAfter is how long after its end a connection may still be unseen here: the kernel keeps it, and a
// busy device takes it late.
const lateAfter = 2 * time.Second

// Await are the ports to which someone came from that address, who says that these are open: it
// waits a moment for those at which nobody was seen.
func (l *Listeners) Await(ctx context.Context, from netip.Addr, open []int) []int {
	ctx, cancel := context.WithTimeout(ctx, lateAfter)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		heard := l.Heard(from)
		unseen := slices.ContainsFunc(open, func(port int) bool { return l.open[port] != nil && !slices.Contains(heard, port) })
		if !unseen || ctx.Err() != nil {
			return heard
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
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
