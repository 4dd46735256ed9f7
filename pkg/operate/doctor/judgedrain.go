package doctor

import (
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

type cordonFacts struct {
	nodesFacts
	drain overview.Drain
	now   time.Time
}

// longCordon is longer than a drain and a reboot take as a rule.
const longCordon = 24 * time.Hour

func judgeCordon(f cordonFacts) Finding {
	n, found := f.own()
	if f.err != nil || !found {
		if p := f.drain.Progress; p != nil && p.Cordon == "" && f.err != nil {
			return unknown("The Node is not seen; when the drain was last written it bore no cordon.")
		}
		return unknown("The Node of this device is not seen.")
	}
	held := ""
	if !n.CordonSince.IsZero() {
		held = " for " + span(f.now.Sub(n.CordonSince))
	}
	why := ""
	if n.CordonWhy != "" {
		why = ": " + strings.TrimSuffix(n.CordonWhy, ".")
	}
	switch {
	case !n.Cordoned:
		return ok("This node takes pods.")
	case slices.Contains(n.Roles, tieBreaker):
		return ok("It is the tie-breaker, which takes none.")
	case n.CordonedBy == "kept":
		return warn("kubectl uncordon "+n.Name+", or the next drain", "An operator keeps the cordon of a drain%s%s.", held, why)
	case n.CordonedBy == "zedkube" && (n.CordonSince.IsZero() || f.now.Sub(n.CordonSince) < longCordon):
		return ok("It is cordoned by zedkube%s%s.", held, why)
	case n.CordonedBy == "zedkube":
		return warn("zedkube drain status", "It is cordoned by zedkube%s, which is long%s.", held, why)
	}
	return warn("who did it: zedkube audit --op cordon,uncordon. Ask whom it names first, then: kubectl uncordon "+n.Name, "It is cordoned by somebody else%s%s.", held, why)
}

type lockFacts struct {
	nodesFacts
	lock    types.DrainLock
	lockErr error
	copied  bool
	now     time.Time
}

func judgeDrainLock(f lockFacts) Finding {
	holder := f.lock.Holder
	switch {
	case f.lockErr != nil:
		return unknown("The lock cannot be looked at: %v.", f.lockErr)
	case holder == "" && f.copied:
		return unknown("This is a copy of a device, and names no holder.")
	case holder == "":
		return ok("It is free.")
	}
	held := ""
	if !f.lock.Since.IsZero() {
		held = " for " + span(f.now.Sub(f.lock.Since))
	}
	unlock := "if that drain is of no use any more: zedkube drain unlock " + holder
	at := slices.IndexFunc(f.List, func(n overview.ClusterNode) bool { return n.Name == holder })
	switch {
	case len(f.List) > 0 && at < 0:
		return fail("zedkube drain unlock "+holder, "Node %s holds it%s, and the cluster has no such node.", holder, held)
	case at >= 0 && f.List[at].Status != ready && f.now.Sub(f.lock.Since) > time.Hour:
		return warn("mend the node. "+unlock, "Node %s holds it%s and is %s: no other node can drain.", holder, held, f.List[at].Status)
	case !f.lock.Since.IsZero() && f.now.Sub(f.lock.Since) > longCordon:
		return warn("zedkube drain status on that node. "+unlock, "Node %s holds it%s: no other node can drain.", holder, held)
	}
	return ok("Node %s holds it%s.", holder, held)
}
