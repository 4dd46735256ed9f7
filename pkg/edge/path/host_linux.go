package path

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// protocol marks the routes that are ours, among those of the kernel, of EVE and of the cluster's network.
const protocol netlink.RouteProtocol = 222

// Routes is the Host that the program runs on.
type Routes struct{}

// Local implements Host by a route of the table local, which the kernel asks before all others.
func (Routes) Local(block netip.Prefix) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	ours := &netlink.Route{Table: unix.RT_TABLE_LOCAL, Protocol: protocol}
	have, err := netlink.RouteListFiltered(netlink.FAMILY_V4, ours, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	there := false
	for _, r := range have {
		if r.Dst != nil && block.IsValid() && r.Dst.String() == block.String() && r.Type == unix.RTN_LOCAL && r.LinkIndex == lo.Attrs().Index {
			there = true
			continue
		}
		if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove the route to %s: %w", r.Dst, err)
		}
	}
	if there || !block.IsValid() {
		return nil
	}
	ours.LinkIndex, ours.Type, ours.Scope = lo.Attrs().Index, unix.RTN_LOCAL, unix.RT_SCOPE_HOST
	ours.Dst = &net.IPNet{IP: block.Addr().AsSlice(), Mask: net.CIDRMask(block.Bits(), 32)}
	if err := netlink.RouteAdd(ours); err != nil {
		return fmt.Errorf("add the route to %s: %w", block, err)
	}
	return nil
}
