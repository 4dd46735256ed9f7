package drain

import (
	"time"
)

// yieldFor is how long a node that has had the lock leaves it to those who wait
// for it: longer than they may take to look again.
const yieldFor = 6 * time.Second

// gates is the way to the cordon: one node of the cluster at a time, and never
// without quorum.
func gates(f facts, a *action) {
	switch {
	case !f.living() || !f.known:
		a.waits = f.why
	case f.unlocked != "":
		a.waits = f.unlocked
	case !f.entered && f.queued && !f.freed.IsZero() && f.now.Sub(f.freed) < yieldFor:
		a.waits = "another node waits for the drain lock, which this one has just had"
		a.wait(yieldFor - f.now.Sub(f.freed))
	case !f.entered && f.due(enter):
		a.verb, a.waits = enter, f.gates
		a.rec.locked, a.rec.node, a.rec.nodeBoot = true, f.node.Name, f.node.BootID
	case !f.entered:
		a.waits = f.gates
		a.wait(f.retry[enter].Sub(f.now))
	case f.due(cordon):
		a.verb = cordon
	default:
		a.wait(f.retry[cordon].Sub(f.now))
	}
}
