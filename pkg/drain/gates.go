package drain

import (
	"fmt"
	"strings"
	"time"

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

// quorum says what etcd lacks to go on without the node own, "" for nothing:
// more than half of its voting members Ready, which of one or two is all the
// others. Where all the others are Ready nothing is lacking.
func quorum(nodes []types.Node, own string) string {
	voters, ready := 0, 0
	var down []string
	for _, n := range nodes {
		if !n.Etcd || n.EtcdVoter == types.ConditionFalse {
			continue
		}
		voters++
		switch {
		case n.Name == own:
		case n.Ready == types.ConditionTrue:
			ready++
		default:
			down = append(down, n.Name)
		}
	}
	if len(down) == 0 || 2*ready > voters {
		return ""
	}
	return fmt.Sprintf("without this node %d of %d etcd members would be Ready, which is no quorum: %s not",
		ready, voters, some(down, "is", "are"))
}

// lockable says why own may not take the lock, "" for it may.
func lockable(lock types.DrainLock, own string, nodes []types.Node, s types.Storage) string {
	if lock.Holder == "" || lock.Holder == own {
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
	case !lock.Ended && (lock.BootID == "" || holder.BootID == lock.BootID):
		return fmt.Sprintf("node %s drains and has not rebooted yet", lock.Holder)
	case holder.Ready != types.ConditionTrue:
		return fmt.Sprintf("node %s, which was drained, is not Ready again", lock.Holder)
	case holder.Unschedulable && holder.CordonedBy != nil && !holder.TieBreaker && !holder.CordonKept:
		return fmt.Sprintf("node %s is still cordoned by its drain", lock.Holder)
	}
	if volumes := worse(lock.Volumes, s); len(volumes) > 0 {
		return fmt.Sprintf("volumes on node %s have fewer healthy replicas than before its drain: %s", lock.Holder, some(volumes, "", ""))
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

// readyNodes is the set of nodes that are Ready.
func readyNodes(nodes []types.Node) map[string]bool {
	ready := map[string]bool{}
	for _, n := range nodes {
		ready[n.Name] = n.Ready == types.ConditionTrue
	}
	return ready
}

// some names the first few, with the verb that fits their number, if any.
func some(names []string, one, many string) string {
	const few = 5
	text := strings.Join(names[:min(few, len(names))], ", ")
	if more := len(names) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	verb := many
	if len(names) == 1 {
		verb = one
	}
	return strings.TrimSpace(text + " " + verb)
}
