package statusserver

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/types"
)

// crowd is a listener without a network: 10.0.0.x are members, 10.x others
// neighbours, the rest outsiders.
type crowd struct {
	bounded
	gone []*trackedConn
}

func newCrowd() *crowd {
	c := &crowd{}
	c.rank = func(ip netip.Addr) rank {
		switch {
		case strings.HasPrefix(ip.String(), "10.0.0."):
			return member
		case strings.HasPrefix(ip.String(), "10."):
			return neighbour
		}
		return outsider
	}
	return c
}

// comes is a new connection from ip.
func (c *crowd) comes(ip string) *trackedConn {
	h := &trackedConn{owner: &c.bounded}
	if out := c.add(h, netip.MustParseAddr(ip)); out != nil {
		c.gone = append(c.gone, out)
		c.remove(out)
	}
	return h
}

func (c *crowd) has(h *trackedConn) bool {
	for _, o := range c.open {
		if o == h {
			return true
		}
	}
	return false
}

// flood is n connections from as many addresses of a network like 10.7.%d.%d.
func (c *crowd) flood(network string, n int) {
	for i := range n {
		c.comes(fmt.Sprintf(network, i/250, 1+i%250))
	}
}

func TestOneSourceCrowdsOutItselfOnly(t *testing.T) {
	c := newCrowd()
	joiner := c.comes("10.1.0.1")
	first := c.comes("10.2.0.1")
	for range 3 * maxOfOneSource {
		c.comes("10.2.0.1")
	}
	if !c.has(joiner) || c.has(first) || len(c.open) != maxOfOneSource+1 {
		t.Errorf("joiner stays %v, oldest of the flood stays %v, %d are open", c.has(joiner), c.has(first), len(c.open))
	}
}

func TestFloodOfOneRankLeavesTheOthersTheirShare(t *testing.T) {
	for name, r := range map[string]struct {
		flood     string
		stays     string
		evictable rank
	}{
		"outsiders flood, a neighbour stays":  {"192.168.%d.%d", "10.1.0.1", outsider},
		"outsiders flood, a member stays":     {"192.168.%d.%d", "10.0.0.1", outsider},
		"neighbours flood, a member stays":    {"10.7.%d.%d", "10.0.0.1", neighbour},
		"neighbours flood, an outsider stays": {"10.7.%d.%d", "192.168.1.1", neighbour},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd()
			h := c.comes(r.stays)
			c.flood(r.flood, 10*maxConnections)
			if !c.has(h) || len(c.open) != maxConnections || len(c.of) != maxConnections {
				t.Errorf("stays: %v, %d open, %d sources remembered", c.has(h), len(c.open), len(c.of))
			}
			for _, g := range c.gone {
				if g.from.rank != r.evictable {
					t.Fatalf("one of rank %d went", g.from.rank)
				}
			}
		})
	}
}

func TestRankWithinItsShareStaysThoughItIsTheLargest(t *testing.T) {
	c := newCrowd()
	c.flood("10.7.%d.%d", share[neighbour])
	c.flood("192.168.%d.%d", 5*maxConnections)
	if c.by[neighbour] != share[neighbour] {
		t.Errorf("%d of %d neighbours are left", c.by[neighbour], share[neighbour])
	}
}

func TestWhoeverWaitsForHisAnswerGoesLast(t *testing.T) {
	c := newCrowd()
	c.flood("10.7.%d.%d", 2*maxConnections)
	joiner := c.comes("10.1.0.1")
	joiner.busy.Store(true)
	c.flood("10.8.%d.%d", 10*maxConnections)
	if !c.has(joiner) {
		t.Error("a joiner with a request under way was closed")
	}
}

func TestNewConnectionGetsInWhateverTheOthersDo(t *testing.T) {
	c := newCrowd()
	c.flood("10.7.%d.%d", 2*maxConnections)
	for _, o := range c.open {
		o.busy.Store(true)
	}
	if h := c.comes("10.1.0.1"); !c.has(h) || len(c.open) != maxConnections {
		t.Error("a new connection was closed at once")
	}
}

func TestJoinerOutlastsAsManyNewcomersAsThereArePlaces(t *testing.T) {
	c := newCrowd()
	c.flood("10.7.%d.%d", 2*maxConnections)
	joiner := c.comes("10.1.0.1")
	c.flood("10.8.%d.%d", share[neighbour]-1)
	if !c.has(joiner) {
		t.Error("a joiner had to go before those who were there first")
	}
}

func TestSharesMakeUpTheWhole(t *testing.T) {
	sum := 0
	for _, n := range share {
		sum += n
	}
	if sum != maxConnections || maxOfOneSource > share[outsider] {
		t.Errorf("shares of %d, %d of one source, %d in all", sum, maxOfOneSource, maxConnections)
	}
}

func TestRankIsByNodesAndByTheClustersNetwork(t *testing.T) {
	s, six := status("10.244.244.2/28", true), status("fd00::2/64", true)
	nodes := map[string]types.Node{"a": {InternalIP: "10.9.9.9"}, "b": {InternalIP: "fd00::3"}, "c": {}}
	for ip, want := range map[string]rank{
		"10.244.244.2": member, "10.9.9.9": member, "fd00::3": member, "10.244.244.5": neighbour,
		"fe80::5": neighbour, "10.244.245.5": outsider, "127.0.0.1": outsider,
	} {
		if got := rankOf(netip.MustParseAddr(ip), s, nodes); got != want {
			t.Errorf("%s has rank %d, want %d", ip, got, want)
		}
	}
	if got := rankOf(netip.MustParseAddr("fd00::77"), six, nodes); got != neighbour {
		t.Errorf("an IPv6 neighbour has rank %d", got)
	}
	if got := rankOf(netip.Addr{}, types.EdgeNodeClusterStatus{}, nil); got != outsider {
		t.Errorf("nobody has rank %d", got)
	}
}
