package joincmd

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/types"
)

const (
	// furtherPeers bounds the members that are asked beside the one to join
	// through: etcd has seven at most.
	furtherPeers = 6
	// listenWithin bounds how long this device listens in place of services. It
	// is never reached: two rounds of questions take a third of it, and twice
	// that where members say to come again.
	listenWithin = 45 * time.Second
)

// askPeers asks the other side, while this device listens where k3s will.
func (l *joinLook) askPeers(ctx context.Context) {
	first := l.server
	if l.facts.Role == joinplan.Member {
		first = l.given.candidate
	}
	if !first.IsValid() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listenWithin)
	defer cancel()
	ears := l.listen(ctx)
	defer ears.Close()
	q := newInquirer(l.facts.Own, l.flags.apiPort, ears)
	l.facts.Peers = []joinplan.Peer{q.ask(ctx, first)}
	others := l.others(first)
	found := make([]joinplan.Peer, len(others))
	var asking errgroup.Group
	for i, ip := range others {
		asking.Go(func() error {
			found[i] = q.ask(ctx, ip)
			return nil // what failed is in it
		})
	}
	_ = asking.Wait()
	l.facts.Peers = append(l.facts.Peers, found...)
}

// listen opens the ports that a candidate will serve.
func (l *joinLook) listen(ctx context.Context) *reach.Listeners {
	o := &l.facts.Own
	starts := l.kube != nil && l.kube.Membership == types.KubeMembershipJoining
	switch {
	case l.flags.noListen:
		o.Silent = "--no-listen."
	case starts:
		o.Silent = "k3s is being started here, and needs these ports itself."
	case !binds(ctx, o.Address):
		o.Silent = "this device does not have its address in the cluster's network yet."
	default:
		ears := reach.Listen(ctx, o.Address, reach.Ports())
		o.Closed = map[int]string{}
		for port, err := range ears.Failed {
			if o.Closed[port] = ""; !errors.Is(err, reach.ErrServed) {
				o.Closed[port] = "nothing could listen there, " + err.Error() + "."
			}
		}
		return ears
	}
	return reach.Listen(ctx, o.Address, nil)
}

// others are the further members of etcd: a new one talks to each of them. Only
// addresses in the own network are taken from what a member says.
func (l *joinLook) others(first netip.Addr) []netip.Addr {
	if l.facts.Role == joinplan.Member || l.facts.Own.Worker || !l.facts.Own.Network.IsValid() {
		return nil
	}
	var said []string
	if r := l.facts.Peers[0].Reach; r != nil && r.Cluster != nil {
		said = r.Cluster.Addresses
	}
	if l.facts.Nodes != nil {
		said = types.ReachClusterOf(l.facts.Nodes).Addresses
	}
	var out []netip.Addr
	for _, text := range said {
		ip, err := netip.ParseAddr(text)
		ip = ip.Unmap()
		known := slices.Contains(out, ip) || ip == first.WithZone("") || ip == l.facts.Own.Address.WithZone("")
		if err == nil && !known && l.facts.Own.Network.Contains(ip) && len(out) < furtherPeers {
			out = append(out, ip)
		}
	}
	return out
}
