package drain

import (
	"cmp"
	"context"

	"github.com/zedkube/zedkube/types"
)

// tell asks the cluster why things take so long, and shows it how far we are.
func (c *Component) tell(ctx context.Context, f facts) {
	v := &c.mem.view
	if c.busy(telling) || !f.known || !f.living() {
		return
	}
	want := types.DrainConditions{
		InProgress: drains(c.rec.phase), Drained: c.rec.phase == types.PhaseComplete && !c.rec.dead,
		Reason: string(c.rec.phase), Message: cmp.Or(v.reason, c.rec.reason),
	}
	emptying := c.rec.phase == types.PhaseEmptying
	pods := f.evictions().slow(f.now, patience)
	if !v.asked {
		pods = f.evictions().slow(f.now, 0) // before they go: where could they?
	}
	in := call{node: f.node}
	switch {
	case len(v.events) > 0:
		in.verb, in.report = event, v.events[0]
		in.report.Node = f.node.Name
		v.events = v.events[1:]
	case f.due(conditions) && (differs(f.node, want) || want.InProgress && want != v.shown && f.now.Sub(v.shownAt) >= refreshEvery):
		in.verb, in.cond = conditions, want
	case emptying && len(pods) > 0 && f.due(situations):
		in.verb, v.asked = situations, true
		for _, e := range pods[:min(inquired, len(pods))] {
			in.pods = append(in.pods, e.pod)
		}
	case emptying && f.evictions().left() > 0 && f.now.Sub(f.rec.cordoned) >= patience && f.due(storage):
		in.verb = storage
	default:
		return
	}
	c.begin(ctx, f, telling, in)
}

// differs reports that the Node's conditions say something else than want; a Node
// without them says that nothing is going on.
func differs(n types.Node, want types.DrainConditions) bool {
	return (n.DrainInProgress == types.ConditionTrue) != want.InProgress || (n.Drained == types.ConditionTrue) != want.Drained
}

// queue keeps an Event until it can be written; what happened first matters most.
func (s *state) queue(e types.Event) {
	if v := &s.mem.view; len(v.events) < maxEvents {
		v.events = append(v.events, e)
	}
}

// tellPod writes an Event on a pod that will not go by itself.
func (c *Component) tellPod(f facts, b types.DrainBlocker) {
	v := &c.mem.view
	if v.told == nil {
		v.told = map[string]bool{}
	}
	v.told[b.Pod] = true
	for _, e := range f.pods {
		if e.pod.Key() == b.Pod {
			c.queue(types.Event{Pod: e.pod, Warning: true, Reason: "DrainBlocked", Message: b.Why})
		}
	}
}
