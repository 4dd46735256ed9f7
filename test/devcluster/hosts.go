//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// enterProgram runs a command in a network namespace.
const enterProgram = "nsenter"

// Switch stands for the switch in place of a host's index.
const Switch = -1

// hostLease is how long a controller manager or a scheduler leads that is heard
// of no more: the shortest that a busy machine keeps.
const hostLease = 8 * time.Second

// host is a machine: a network namespace on the wire in which a k3s server runs,
// that is an etcd member with an API server and its companions, and a kubelet.
type host struct {
	seat   seat
	number int // on the wire
	space  *namespace

	mu       sync.Mutex
	services []*service        // what runs of the control plane; nil: it is stopped
	member   bool              // it has the data of a voting member of etcd
	removed  bool              // that member is out of etcd
	known    bool              // its Node has been seen
	programs map[string]string // by service; those that are missing are the usual ones

	power sync.Mutex // held while a real node is switched on or off
	real  *realNode  // guarded by Cluster.kubeletsMu; nil: it is off, or not real

	lineMu    sync.Mutex
	unplugged bool
	lines     map[*line]bool // our connections to its API server
}

// CanHost says why Options.Hosts cannot be had here; nil if it can.
func CanHost() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("hosts are network namespaces, which takes root on Linux; the user is %d", uid)
	}
	if _, err := exec.LookPath(enterProgram); err != nil {
		return fmt.Errorf("programs get onto hosts by a program of util-linux: %w", err)
	}
	w, err := newWire()
	if err != nil {
		return fmt.Errorf("hosts are network namespaces, which this machine refuses: %w", err)
	}
	return w.close()
}

// takeHosts plugs in the hosts and names the nodes that run there: by their
// number on the wire, so that no two devices there are the same. With
// route they know the ways to each other's pods.
func (c *Cluster) takeHosts(count int, on *Cluster, route bool) error {
	if on != nil {
		c.wire = on.wire
	} else {
		w, err := newWire()
		if err != nil {
			return err
		}
		c.wire = w
	}
	c.wire.join()
	c.hosts = []*host{}
	for range count {
		space, number, err := c.wire.plug()
		if err != nil {
			return errors.Join(err, c.dropHosts())
		}
		n := makeNode(number-firstHost+1, ipv4(number))
		n.IPv6, n.Management = ipv6(number), management(number)
		c.Nodes = append(c.Nodes, n)
		c.hosts = append(c.hosts, &host{
			number: number, space: space, lines: map[*line]bool{},
			seat: seat{
				name: n.Name, ip: n.IP, bind: "::", suffix: "-" + n.Name, lease: hostLease,
				ports: ports{api: 6443, etcd: 2379, peer: 2380, kcm: 10257, scheduler: 10259},
			},
		})
	}
	if route {
		if err := c.routePods(); err != nil {
			return errors.Join(err, c.dropHosts())
		}
	}
	return nil
}

// dropHosts gives the namespaces back; what still runs there keeps them.
func (c *Cluster) dropHosts() error {
	if c.wire == nil {
		return nil
	}
	var errs []error
	for _, h := range c.hosts {
		h.hangUp()
		errs = append(errs, h.space.close())
	}
	for _, e := range c.edges {
		errs = append(errs, e.space.close(), e.router.close())
	}
	errs = append(errs, c.wire.leave())
	c.wire = nil
	return errors.Join(errs...)
}

// DialFrom returns a way to connect from host i, or from the Switch, to a
// numeric address. On loopback there is but one place.
func (c *Cluster) DialFrom(i int) func(ctx context.Context, network, address string) (net.Conn, error) {
	switch {
	case c.hosts == nil:
		return (&net.Dialer{}).DialContext
	case i == Switch:
		return c.wire.sw.dial
	}
	return c.hosts[i].space.dial
}

// HostCommand returns what to put before a command so that it runs on host i, or
// on the Switch. It holds as long as this process and the cluster live. On
// loopback it is nothing.
func (c *Cluster) HostCommand(i int) []string {
	if c.hosts == nil {
		return nil
	}
	space := c.wire.sw
	if i != Switch {
		space = c.hosts[i].space
	}
	return []string{enterProgram, "--net=/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(int(space.file.Fd())), "--"}
}

// unplug switches the host's port off. What this process has open to the host's
// API server ends, for it could wait for ever.
func (c *Cluster) unplug(i int) error {
	h := c.hosts[i]
	if err := c.wire.switchPort(h.number, false); err != nil {
		return fmt.Errorf("cut %s: %w", h.seat.name, err)
	}
	h.lineMu.Lock()
	defer h.lineMu.Unlock()
	h.unplugged = true
	h.closeLines()
	return nil
}

// hangUp ends what this process has open to the host's API server.
func (h *host) hangUp() {
	h.lineMu.Lock()
	defer h.lineMu.Unlock()
	h.closeLines()
}

// closeLines is called with lineMu held.
func (h *host) closeLines() {
	for l := range h.lines {
		l.Conn.Close()
	}
	clear(h.lines)
}

func (c *Cluster) plugIn(i int) error {
	h := c.hosts[i]
	if err := c.wire.switchPort(h.number, true); err != nil {
		return fmt.Errorf("heal %s: %w", h.seat.name, err)
	}
	h.lineMu.Lock()
	defer h.lineMu.Unlock()
	h.unplugged = false
	return nil
}

func (h *host) isUnplugged() bool {
	h.lineMu.Lock()
	defer h.lineMu.Unlock()
	return h.unplugged
}

// line is a connection of ours to the API server of a host.
type line struct {
	net.Conn
	host *host
}

func (l *line) Close() error {
	l.host.lineMu.Lock()
	delete(l.host.lines, l)
	l.host.lineMu.Unlock()
	return l.Conn.Close()
}

// call connects to the API server of a host from the switch.
func (c *Cluster) call(ctx context.Context, h *host) (net.Conn, error) {
	if h.isUnplugged() {
		return nil, errors.New("its cable is out")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := c.wire.sw.dial(ctx, "tcp", h.seat.address(h.seat.ports.api))
	if err != nil {
		return nil, err
	}
	l := &line{conn, h}
	h.lineMu.Lock()
	defer h.lineMu.Unlock()
	if h.unplugged {
		conn.Close()
		return nil, errors.New("its cable is out")
	}
	h.lines[l] = true
	return l, nil
}

// dialAPI connects to the first host whose API server listens, whatever the
// address: it is for clients of the cluster, not of a host.
func (c *Cluster) dialAPI(ctx context.Context, _, _ string) (net.Conn, error) {
	var errs []error
	for _, h := range c.hosts {
		conn, err := c.call(ctx, h)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", h.seat.name, err))
	}
	return nil, fmt.Errorf("no host has an API server: %w", errors.Join(errs...))
}

// answering is the host that dialAPI would connect to.
func (c *Cluster) answering(ctx context.Context) (*host, error) {
	conn, err := c.dialAPI(ctx, "", "")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*line).host, nil
}
