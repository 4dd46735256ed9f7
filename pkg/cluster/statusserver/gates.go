package statusserver

import (
	"net/netip"
	"sync"

	"github.com/zedkube/zedkube/pkg/base/proof"
)

const (
	// A report reads some dozens of files: more than these at a time would be
	// felt, and a peer needs one.
	maxReports     = 8
	maxReportsEach = 4
	maxRounds      = 2 // every round holds up to maxPeers answers
	maxRoundsEach  = 1
)

// limits are the bounds of what costs more than /status does. Nobody waits at
// them: who finds one shut is told to come back.
type limits struct {
	reports limiter // reports of this node being made
	rounds  limiter // rounds of questions to the other nodes
	proofs  proof.Memory
}

// limiter lets limit requests in, and each from one source.
type limiter struct {
	mu     sync.Mutex
	inside int
	of     map[netip.Addr]int
}

// enter reports whether source may go in; it then has to leave.
func (g *limiter) enter(source netip.Addr, limit, each int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside >= limit || g.of[source] >= each {
		return false
	}
	if g.of == nil {
		g.of = map[netip.Addr]int{}
	}
	g.inside++
	g.of[source]++
	return true
}

func (g *limiter) leave(source netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.of[source]--; g.of[source] == 0 {
		delete(g.of, source)
	}
}
