package stream

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The priorities of the rules that Close makes. The kernel's own rule for the table local has 0.
const (
	fromInside = 1
	closed     = 2
	local      = 3
)

// Close closes the TCP ports from first to last in the network of this pod to everything that comes from outside of it,
// whatever is in the host's iptables: a packet for them has no route, by rules that come before the kernel's own for
// local addresses. It must have run before cloudcore starts. It may run again.
func Close(first, last uint16) error {
	ports := netlink.NewRulePortRange(first, last)
	if err := closeFamily(netlink.FAMILY_V4, ports); err != nil {
		return fmt.Errorf("close ports %d to %d for IPv4: %w", first, last, err)
	}
	// Other pods of the node reach this one at its link-local address too.
	if err := closeFamily(netlink.FAMILY_V6, ports); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("close ports %d to %d for IPv6: %w", first, last, err)
	}
	return nil
}

func closeFamily(family int, ports *netlink.RulePortRange) error {
	rule := func(priority int) *netlink.Rule {
		r := netlink.NewRule()
		r.Family, r.Priority = family, priority
		return r
	}
	inside := rule(fromInside)
	inside.IifName, inside.Table = "lo", unix.RT_TABLE_LOCAL
	shut := rule(closed)
	shut.IPProto, shut.Dport, shut.Type = unix.IPPROTO_TCP, ports, unix.RTN_BLACKHOLE
	locals := rule(local)
	locals.Table = unix.RT_TABLE_LOCAL
	for _, r := range []*netlink.Rule{inside, shut, locals} {
		if err := netlink.RuleAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add rule %d: %w", r.Priority, err)
		}
	}
	first := rule(0)
	first.Table = unix.RT_TABLE_LOCAL
	if err := netlink.RuleDel(first); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove rule 0: %w", err)
	}
	return verify(family, ports)
}

// verify reads back what the kernel has: nothing may come before the rule that closes but what is from inside. Of a
// rule that leads to no table packets are dropped.
func verify(family int, ports *netlink.RulePortRange) error {
	rules, err := netlink.RuleList(family)
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	slices.SortStableFunc(rules, func(a, b netlink.Rule) int { return a.Priority - b.Priority })
	for _, r := range rules {
		switch {
		case r.Priority == fromInside && r.IifName == "lo":
		case r.Priority == closed && r.Table == unix.RT_TABLE_UNSPEC && r.Dport != nil && r.Dport.Start <= ports.Start && r.Dport.End >= ports.End:
			return nil
		default:
			return fmt.Errorf("rule %d comes before the one that closes them", r.Priority)
		}
	}
	return errors.New("the rule that closes them is not there")
}
