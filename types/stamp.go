package types

import "time"

const (
	// StampEvery is how often an agent writes its stamp, whether or not it has
	// anything new to say.
	StampEvery = 10 * time.Minute
	// StampFresh is how long a stamp may stay unchanged: two writes may fail, and
	// the third has five minutes. Who has just begun to look waits as long.
	StampFresh = 25 * time.Minute
)

// Foreign reports whether no zedkube of this kind is known to run on the node:
// it has no stamp, or the stamp has outlived the agent that wrote it, as after
// an update to an image with EVE's own (docs/wire.md, "Nodes"). Every rule that
// waits for one of ours to speak or to agree asks this, and not whether there is a
// stamp.
//
// It is the word of this device, and of a process that has watched for a while:
// until StampFresh has passed, an agent that has just started takes every node
// with a stamp for one of ours. The row rings when the answer changes.
func (n Node) Foreign() bool { return n.Agent == nil || n.StampStale }

// MaybeForeign reports whether no zedkube of this kind is known to run on the
// node, or its stamp has not been seen to change yet. Every rule that spares what
// EVE's own zedkube may need, or waits for what that may be doing, asks this: to
// take a node wrongly for one of ours would do harm there.
func (n Node) MaybeForeign() bool { return n.Foreign() || n.StampUnconfirmed }

// eveManager is under which name the API server files what EVE's own agents
// write: they name no field manager, so it is that of their program.
const eveManager = "zedbox"

// CordonedByEVE reports whether the node is cordoned by EVE's own zedkube alone,
// as far as the API server tells.
func (n Node) CordonedByEVE() bool {
	eve := false
	for _, w := range n.Writers {
		switch {
		case w.Field != FieldCordon:
		case w.Manager != eveManager:
			return false
		default:
			eve = true
		}
	}
	return eve && n.Unschedulable && n.CordonedBy == nil
}
