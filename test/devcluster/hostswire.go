//go:build linux

package devcluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// maxHosts is what the addresses of a wire leave room for.
const maxHosts = 89

// The addresses of a wire end in the same number: that of a host, or the switch's.
const (
	switchNumber = 254
	firstHost    = 11
)

// wire is a switch and what is plugged into it.
type wire struct {
	sw    *namespace
	links *netlink.Handle // of the switch

	mu    sync.Mutex
	ports int // plugged in so far, by all clusters
	users int // clusters
}

// newWire makes a switch with addresses of its own, from which the test speaks.
func newWire() (*wire, error) {
	sw, err := newNamespace()
	if err != nil {
		return nil, err
	}
	w := &wire{sw: sw}
	if err := w.build(); err != nil {
		return nil, fmt.Errorf("build the switch: %w", errors.Join(err, w.close()))
	}
	return w, nil
}

func (w *wire) build() error {
	err := w.sw.enter(func() (err error) {
		w.links, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return err
	}
	off := false // nobody on the wire asks for groups: their packets go everywhere
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}, MulticastSnooping: &off}
	if err := w.links.LinkAdd(bridge); err != nil {
		return err
	}
	return address(w.links, "br0", switchNumber)
}

// join counts a cluster.
func (w *wire) join() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users++
}

// leave is the end of a cluster on the wire; the last one takes it away.
func (w *wire) leave() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users--; w.users > 0 {
		return nil
	}
	return w.close()
}

// plug makes a namespace with a cable into the switch, and returns its number.
func (w *wire) plug() (*namespace, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ports == maxHosts {
		return nil, 0, errors.New("plug in a host: the switch is full")
	}
	number := firstHost + w.ports
	n, err := newNamespace()
	if err != nil {
		return nil, 0, err
	}
	if err := w.cable(n, number); err != nil {
		return nil, 0, fmt.Errorf("plug in a host: %w", errors.Join(err, n.close()))
	}
	w.ports++
	return n, number, nil
}

func (w *wire) cable(n *namespace, number int) error {
	cable := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: port(number)}, PeerName: "eth0", PeerNamespace: netlink.NsFd(n.file.Fd()),
	}
	if err := w.links.LinkAdd(cable); err != nil {
		return err
	}
	bridge, err := w.links.LinkByName("br0")
	if err != nil {
		return err
	}
	if err := errors.Join(w.links.LinkSetMaster(cable, bridge), w.links.LinkSetUp(cable)); err != nil {
		return err
	}
	return n.enter(func() error {
		links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer links.Close()
		return address(links, "eth0", number)
	})
}

// address gives a link the addresses of a number and switches it on.
func address(links *netlink.Handle, name string, number int) error {
	link, err := links.LinkByName(name)
	if err != nil {
		return err
	}
	for _, a := range []string{ipv4(number) + "/24", ipv6(number) + "/64", management(number) + "/24"} {
		addr, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		addr.Flags = unix.IFA_F_NODAD // nobody else can have it, so nobody need wait
		if err := links.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("give %s to %s: %w", a, name, err)
		}
	}
	return raise(links, name)
}

func raise(links *netlink.Handle, name string) error {
	link, err := links.LinkByName(name)
	if err != nil {
		return err
	}
	return links.LinkSetUp(link)
}

// switchPort switches the port of a host on or off.
func (w *wire) switchPort(number int, on bool) error {
	link, err := w.links.LinkByName(port(number))
	if err != nil {
		return err
	}
	if on {
		return w.links.LinkSetUp(link)
	}
	return w.links.LinkSetDown(link)
}

// routePods lets each host pass packets on, and tells it the ways to the pods of
// the others.
func (c *Cluster) routePods() error {
	for _, h := range c.hosts {
		err := h.space.enter(func() error {
			links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
			if err != nil {
				return err
			}
			defer links.Close()
			for _, other := range c.hosts {
				subnet, err := netlink.ParseIPNet(podSubnet(other.number))
				if err != nil {
					return err
				}
				if other == h {
					continue
				}
				if err := links.RouteAdd(&netlink.Route{Dst: subnet, Gw: net.ParseIP(other.seat.ip)}); err != nil {
					return fmt.Errorf("to %s: %w", other.seat.name, err)
				}
			}
			return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
		})
		if err != nil {
			return fmt.Errorf("route pods on %s: %w", h.seat.name, err)
		}
	}
	return nil
}

func (w *wire) close() error {
	if w.links != nil {
		w.links.Close()
	}
	return w.sw.close()
}

func port(number int) string       { return "port" + strconv.Itoa(number) }
func ipv4(number int) string       { return "10.77.0." + strconv.Itoa(number) }
func ipv6(number int) string       { return "fd77::" + strconv.Itoa(number) }
func management(number int) string { return "192.0.2." + strconv.Itoa(number) }
