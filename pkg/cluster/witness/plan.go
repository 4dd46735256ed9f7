package witness

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/types"
)

const (
	// most is how many nodes are looked at. Where more are not Ready at once it is
	// hardly they that are gone.
	most = 8
	// controls is how many Ready nodes are to show that this device's own network
	// works: one that has died this minute still counts as Ready.
	controls = 3
)

// reply is what came of an attempt to connect.
type reply int

const (
	untried reply = iota // it says nothing about the other end
	silence
	answer
)

// dial is one attempt to connect.
type dial struct {
	uid     string // of the Node
	address string // with its port
	control bool   // of a Ready node
	inner   bool   // the address in the network that nodes and volumes use among themselves
	later   bool   // only where no control has answered yet

	reply reply
	why   string // it was not tried
}

// toLost are the connections to lost nodes of the next look, nil where none makes
// sense.
func toLost(f facts, lost []types.Node) []dial {
	var plan []dial
	targets := 0
	for _, n := range lost {
		if targets < most && reachable(n, f.own) {
			targets++
			plan = append(plan, places(n, f)...)
		}
	}
	return plan
}

// places are all where the device of a node may answer.
func places(n types.Node, f facts) []dial {
	var plan []dial
	inner, outer := addresses(n, f.own)
	for _, addr := range slices.Concat(inner, outer) {
		for _, port := range f.ports {
			plan = append(plan, dial{uid: n.UID, address: join(addr, port), inner: slices.Contains(inner, addr)})
		}
	}
	return plan
}

// toControls are connections to a few other nodes that are Ready, in turn. They
// go to the inner address: that an uplink works says nothing of the cluster's
// network. A kubelet logs each connection that says nothing, so its port is for
// later.
func toControls(f facts) []dial {
	ready := slices.DeleteFunc(slices.Clone(f.others), func(n types.Node) bool {
		inner, _ := addresses(n, f.own)
		return n.Ready != types.ConditionTrue || n.UID == "" || len(inner) == 0
	})
	slices.SortFunc(ready, func(a, b types.Node) int { return cmp.Compare(a.Name, b.Name) })
	var plan []dial
	for i := range min(controls, len(ready)) {
		n := ready[(int(uint64(f.round)%uint64(len(ready)))+i)%len(ready)] //nolint:gosec // a negative one is no index
		inner, _ := addresses(n, f.own)
		for p, port := range f.ports {
			plan = append(plan, dial{uid: n.UID, address: join(inner[0], port), control: true, inner: true, later: p > 0})
		}
	}
	return plan
}

// reachable reports whether there is anything to look at: a Node of its own, with
// an inner address.
func reachable(n, own types.Node) bool {
	inner, _ := addresses(n, own)
	return n.UID != "" && n.UID != own.UID && len(inner) > 0
}

// addresses are those of the node, without what is no address of another device.
func addresses(n, own types.Node) (inner, outer []netip.Addr) {
	inner, outer = usable(n.InternalIP, own), usable(n.ExternalIP, own)
	if slices.Equal(inner, outer) {
		outer = nil
	}
	return inner, outer
}

// usable is the address that text says, or none.
func usable(text string, own types.Node) []netip.Addr {
	addr, err := netip.ParseAddr(text)
	addr = addr.Unmap()
	if err != nil || addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast() {
		return nil
	}
	for _, ours := range []string{own.InternalIP, own.ExternalIP} {
		if a, err := netip.ParseAddr(ours); err == nil && a.Unmap() == addr {
			return nil
		}
	}
	return []netip.Addr{addr}
}

// join adds the port; IPv6 gets its brackets.
func join(addr netip.Addr, port int) string {
	return net.JoinHostPort(addr.String(), strconv.Itoa(port))
}

// controlled reports whether this device's own network is known to work: a Ready
// node has answered, or there is not one that could.
func controlled(result []dial) bool {
	isControl := func(d dial) bool { return d.control }
	return !slices.ContainsFunc(result, isControl) ||
		slices.ContainsFunc(result, func(d dial) bool { return d.control && d.reply == answer })
}

// heard is what a look tells of a node. Any answer shows that it lives, and what
// is its address. That it is silent is said only where all of its inner address
// was tried: nothing else is open to the cluster (docs/wire.md, "Firewall"), nor
// does storage use anything else. Else it is untried, and what says why, "" where
// it was not in the plan.
func heard(result []dial, uid string) (r reply, what string) {
	for _, d := range result {
		switch {
		case d.control || d.uid != uid:
		case d.reply == answer:
			return answer, d.address
		case d.inner && d.reply == untried:
			what = d.why
		case d.inner:
			r = silence
		}
	}
	if what != "" {
		return untried, what
	}
	return r, ""
}

// lookTimeout is for both rounds of connections, and a moment to end.
const lookTimeout = 2*reach.DialTimeout + time.Second

// dialAll tries the connections of a plan, all at the same time: a plan is short.
func (c *Component) dialAll(ctx context.Context, plan []dial) []dial {
	c.try(ctx, plan, false)
	if !controlled(plan) {
		c.try(ctx, plan, true)
	}
	return plan
}

// try tries those of the plan that are for now, or for later.
func (c *Component) try(ctx context.Context, plan []dial, later bool) {
	var all sync.WaitGroup
	for i := range plan {
		if d := &plan[i]; d.later == later {
			all.Go(func() { c.connect(ctx, d) })
		}
	}
	all.Wait()
}

func (c *Component) connect(ctx context.Context, d *dial) {
	switch answered, tried, err := reach.Connect(ctx, c.Dial, d.address); {
	case answered:
		d.reply = answer
	case tried:
		d.reply = silence
	default:
		d.why = err.Error()
	}
}
