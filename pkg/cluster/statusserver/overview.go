package statusserver

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	overviewPath = "/overview"
	// maxOverview is that of pkg/operate/clusterview, which makes it.
	maxOverview = 256 << 10
	// One node makes two views of the cluster at a time, each of which lasts as long as its
	// nodes take, and asks at most once for each.
	overviewTurn  = 2 * time.Second
	overviewsEach = 4
)

// serveOverview tells another member what this node knows of itself (docs/wire.md,
// "Overview of a node").
func (c *Component) serveOverview(w http.ResponseWriter, r *http.Request) {
	if !allowed(w, r) {
		return
	}
	source, ok := c.member(w, r, c.judgeMember)
	if !ok {
		return
	}
	if !c.limits.told.take(source, time.Now()) || !c.limits.reports.enter(source, maxReports, maxReportsEach) {
		w.Header().Set("Retry-After", "2")
		http.Error(w, errBusy.Error(), http.StatusTooManyRequests)
		return
	}
	defer c.limits.reports.leave(source)
	ctx, cancel := context.WithTimeout(r.Context(), reportTimeout)
	defer cancel()
	content, err := c.Overview(ctx)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(content) // who asked is gone: nobody could act on it
}

// judgeMember says why r is not to be answered, nil if it is. Only agents of ours ask, and
// all of these can prove it: nobody is answered without, not even this device.
func (c *Component) judgeMember(r *http.Request, remote, local netip.AddrPort) error {
	if admit(remote.Addr(), local.Addr(), c.Nodes.All(), types.Node.Foreign, false) == denied {
		return errNotAMember
	}
	return c.proves(r, local)
}

// AskOverview asks the node at an address for its overview. The answer is not looked at;
// of a longer one than may be it is one byte too long.
func (c *Component) AskOverview(ctx context.Context, ip netip.Addr) ([]byte, error) {
	status, _ := c.Status.Get(types.Global)
	content, err := c.newAsker(ctx, status).send(ctx, http.MethodGet, plain(ip), overviewPath, maxOverview)
	if errors.Is(err, errCode(http.StatusNotFound)) {
		return nil, errors.New("its zedkube is of an earlier version, which does not tell of itself")
	}
	return content, err
}

// turns are how often each address was answered within a time.
type turns struct {
	mu    sync.Mutex
	since time.Time
	of    map[netip.Addr]int
}

// take reports whether an address is to be answered once more. Only addresses of Nodes
// come so far, so few are remembered.
func (t *turns) take(ip netip.Addr, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.since).Abs() >= overviewTurn {
		t.since, t.of = now, map[netip.Addr]int{}
	}
	if t.of[ip] >= overviewsEach {
		return false
	}
	t.of[ip]++
	return true
}
