//go:build linux

package devcluster

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Way is a direction on the cable of a host.
type Way int

// The ways, as the host sees them.
const (
	Sending Way = iota
	Hearing
)

// CutWay drops what goes one way on the cable of host i, without a word to
// anybody; the other way goes on. What this process has open to the host's API
// server ends, for it could wait for ever.
func (c *Cluster) CutWay(i int, way Way) error {
	err := c.onWay(i, way, func(link netlink.Link) error {
		request := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK)
		request.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(link.Attrs().Index), Parent: netlink.HANDLE_ROOT})
		// A queue that takes no packet. It is in every kernel, netem is not.
		request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("pfifo")))
		request.AddData(nl.NewRtAttr(nl.TCA_OPTIONS, nl.Uint32Attr(0)))
		_, err := request.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
	if err == nil {
		c.hosts[i].hangUp()
	}
	return err
}

// HealWay undoes CutWay.
func (c *Cluster) HealWay(i int, way Way) error {
	return c.onWay(i, way, func(link netlink.Link) error {
		queues, err := netlink.QdiscList(link)
		if err != nil {
			return err
		}
		for _, q := range queues {
			if q.Type() == "pfifo" {
				return netlink.QdiscDel(q)
			}
		}
		return nil
	})
}

// onWay calls do where packets leave for that way.
func (c *Cluster) onWay(i int, way Way, do func(netlink.Link) error) error {
	if c.hosts == nil {
		return errors.New("only hosts have a cable")
	}
	h := c.hosts[i]
	space, name := c.wire.sw, port(h.number)
	if way == Sending {
		space, name = h.space, "eth0"
	}
	err := space.enter(func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return do(link)
	})
	if err != nil {
		return fmt.Errorf("one way of the cable of %s: %w", h.seat.name, err)
	}
	return nil
}
