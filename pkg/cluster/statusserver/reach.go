package statusserver

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/types"
)

const (
	reachPath = "/reach"
	// reachTimeout is far beyond a round trip in a cluster's network, and lets
	// a first packet that was lost be sent again.
	reachTimeout = 2 * time.Second
	maxReaches   = 4               // under way at a time, and each address has one
	reachPause   = 5 * time.Second // how long an address waits for its next answer
	maxReached   = 1024            // bounds how many addresses are remembered as having had theirs
	maxName      = 253             // the longest name of a Node
)

var errReachQuery = errors.New("want node=<name of the Node> and device=<UUID>, or neither")

// serveReach tries whether this node reaches anyone who asks, at the address that
// the connection came from and at no other (docs/wire.md, "Reach").
func (c *Component) serveReach(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is answered here", http.StatusMethodNotAllowed)
		return
	}
	local, remote := ends(r)
	if status, _ := c.Status.Get(types.Global); !inCluster(status, remote.Addr()) {
		http.Error(w, "not for "+plain(remote.Addr()).String()+": only addresses in the cluster's network are dialed", http.StatusForbidden)
		return
	}
	name, device, err := reachAsked(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if wait := c.reach.enter(plain(remote.Addr()), time.Now()); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		http.Error(w, errBusy.Error(), http.StatusTooManyRequests)
		return
	}
	defer func() { c.reach.leave(plain(remote.Addr()), time.Now()) }()
	ctx, cancel := context.WithTimeout(r.Context(), reachTimeout)
	defer cancel()
	out := c.reached(name, device)
	out.From = plain(remote.Addr()).String()
	// From the address that was asked, as the services would: a way that only
	// another interface has is none.
	out.Ports = reach.Try(ctx, local.Addr().Unmap(), remote.Addr().Unmap(), reach.Ports())
	out.At = time.Now().UTC()
	answerJSON(w, out)
}

// inCluster reports whether an address is one that the cluster's nodes have.
func inCluster(status types.EdgeNodeClusterStatus, ip netip.Addr) bool {
	ip = plain(ip)
	return ip.IsValid() && status.ClusterIPPrefix != nil && status.ClusterIPPrefix.Contains(ip.AsSlice())
}

// reachAsked reads for which name and device it is asked, "" for none.
func reachAsked(raw string) (name string, device uuid.UUID, err error) {
	query, err := url.ParseQuery(raw)
	name = query.Get("node")
	if id := query.Get("device"); err == nil && id != "" {
		device, err = uuid.Parse(id)
	}
	if err != nil || len(name) > maxName {
		return "", uuid.Nil, errReachQuery
	}
	return name, device, nil
}

// reached is what this node says of itself and of its cluster.
func (c *Component) reached(name string, device uuid.UUID) types.Reach {
	f := c.look()
	out := types.Reach{Node: f.info.NodeName(), Zedkube: c.Version}
	if unseen(f) != (verdict{}) {
		return out
	}
	nodes := slices.Collect(maps.Values(f.nodes))
	cluster := types.ReachClusterOf(nodes)
	cluster.Name = types.ReachNameOf(nodes, name, device)
	if _, taken := c.EdgeNodes.Get(name); taken {
		cluster.Name = types.ReachNameTaken
	}
	out.Cluster = &cluster
	return out
}

// reaches bounds the tries: few at a time, one for each address, and then a
// pause. An address that never comes again is forgotten after that.
type reaches struct {
	mu     sync.Mutex
	inside int
	next   map[netip.Addr]time.Time // when it may come again; zero while it is inside
}

// enter lets an address in, or says after how long to come again.
func (b *reaches) enter(ip netip.Addr, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.next, func(_ netip.Addr, at time.Time) bool { return !at.IsZero() && !at.After(now) })
	at, known := b.next[ip]
	switch {
	case known && at.IsZero():
		return reachTimeout
	case known:
		return at.Sub(now)
	case b.inside >= maxReaches:
		return reachTimeout
	case len(b.next) >= maxReached:
		return reachPause
	}
	if b.next == nil {
		b.next = map[netip.Addr]time.Time{}
	}
	b.next[ip] = time.Time{}
	b.inside++
	return 0
}

func (b *reaches) leave(ip netip.Addr, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside--
	b.next[ip] = now.Add(reachPause)
}
