package drain

import (
	"fmt"
	"time"

	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
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

// quorum says what etcd lacks to go on without this node, "" for nothing.
func quorum(nodes []types.Node, own string) string {
	lack := types.LacksQuorum(nodes, own)
	if lack == "" {
		return ""
	}
	return "without this node " + lack
}

// ours reports that the lock is own's, for its drain. One that own holds to remove
// a stale member (docs/wire.md, "Drain lock") is not.
func ours(lock types.DrainLock, own string) bool { return lock.Holder == own && lock.Task == "" }

// lockable says why own may not take the lock, "" for it may.
func lockable(lock types.DrainLock, own string, nodes []types.Node, s types.Storage) string {
	if lock.Holder == "" || ours(lock, own) {
		return ""
	}
	return needed(lock, nodes, s)
}

// needed says why the holder still needs its lock, "" for it does not: its Node
// is gone, or it is back and as it was. That is evidence: time is none.
func needed(lock types.DrainLock, nodes []types.Node, s types.Storage) string {
	holder, there := nodeNamed(nodes, lock.Holder)
	switch {
	case !there:
		return ""
	case !lock.Ended && lock.Task != "" && holder.BootID == lock.BootID:
		return fmt.Sprintf("node %s removes a stale member of the cluster", lock.Holder)
	case !lock.Ended && (lock.BootID == "" || holder.BootID == lock.BootID):
		return fmt.Sprintf("node %s drains and has not rebooted yet", lock.Holder)
	case holder.Ready != types.ConditionTrue:
		return fmt.Sprintf("node %s, which was drained, is not Ready again", lock.Holder)
	case holder.Unschedulable && holder.CordonedBy != nil && !holder.TieBreaker && !holder.CordonKept:
		return fmt.Sprintf("node %s is still cordoned by its drain", lock.Holder)
	}
	if volumes := outlook.Degraded(lock.Volumes, s); len(volumes) > 0 {
		return fmt.Sprintf("volumes on node %s have fewer healthy replicas than before its drain: %s", lock.Holder, outlook.Some(volumes, "", ""))
	}
	return ""
}

func nodeNamed(nodes []types.Node, name string) (types.Node, bool) {
	for _, n := range nodes {
		if n.Name == name {
			return n, true
		}
	}
	return types.Node{}, false
}
