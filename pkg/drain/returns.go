package drain

import (
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// maxReturns is how often the pods of one maker come back before they are
	// left on the node (docs/decisions/0023-pods-that-come-back.md).
	maxReturns = 10
	// maxPause is the longest pause before pods that came back are evicted again.
	maxPause = time.Minute
)

// maker is who makes the pods of a drain, as far as the drain has to know.
type maker struct {
	evicted bool      // a pod of it has been evicted since the last return was counted
	returns int       // how often pods of it have come back
	next    time.Time // no eviction of those before this
}

// stays reports that the pods of it are evicted no more.
func (m *maker) stays() bool { return m != nil && m.returns >= maxReturns }

// makerOf is the key of who makes the pod, the same for all pods of it: the
// application, the controlling owner, or for a pod without one its own name.
func makerOf(p types.Pod) string {
	switch {
	case p.AppDomain != "":
		return "application " + p.AppDomain
	case p.Owner.Name != "":
		return p.Namespace + "/" + p.Owner.Kind + " " + p.Owner.Name
	}
	return p.Key()
}

// nameOf is who makes the pod, for people.
func nameOf(p types.Pod) string {
	if p.Owner.Name == "" {
		return "a program that the pod does not name as its owner"
	}
	return p.Owner.Kind + " " + p.Owner.Name
}

// takeReturn counts a pod that was not there when the drain began, if one of the
// same maker was evicted before, and says when it may be evicted: later and later.
func (c *Component) takeReturn(now time.Time, p types.Pod) (next time.Time) {
	m := c.mem.makers[makerOf(p)]
	switch {
	case m == nil:
		return time.Time{}
	case m.evicted:
		m.evicted = false
		m.returns++
		if m.returns == maxReturns {
			c.report(true, "DrainLeavesPods", fmt.Sprintf(
				"pods of %s in namespace %s have come back to this node %d times: they are evicted no more and go down with the device",
				nameOf(p), p.Namespace, m.returns))
		}
	}
	if m.returns > 0 {
		m.next = later(m.next, now.Add(min(maxPause, time.Second<<(m.returns-1))))
	}
	return m.next
}

// takeEvicted notes that a pod of a maker was evicted.
func (c *Component) takeEvicted(p types.Pod) {
	key := makerOf(p)
	if c.mem.makers[key] == nil {
		c.mem.makers[key] = &maker{}
	}
	c.mem.makers[key].evicted = true
}

// staying is the makers whose pods stay on the node, by key.
func (c *Component) staying() map[string]bool {
	stays := map[string]bool{}
	for key, m := range c.mem.makers {
		if m.stays() {
			stays[key] = true
		}
	}
	return stays
}

// leftAlone says which pods stay on the node, "" for none.
func leftAlone(f facts) string {
	var names []string
	for _, e := range f.pods {
		if e.stays && !e.gone {
			names = append(names, e.pod.Key())
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("; %s came back %d times and will go down with the device: %s", counted(len(names), "pod"), maxReturns, some(names, "", ""))
}

// comesBack explains a pod whose maker has made it again here.
func (o obstacle) comesBack() finding {
	s := o.situation
	name, how, what := nameOf(s.Pod), "", ""
	switch {
	case s.Pinned:
		how, what = ": its spec.nodeName is "+s.Pod.NodeName, "take spec.nodeName out of the template of "+name+", or "
	case s.Tolerates:
		how, what = ": it tolerates the taint node.kubernetes.io/unschedulable", "take that toleration out of the template of "+name+", or "
	}
	ends := fmt.Sprintf("it is evicted less and less often, and after %d returns it is left to go down with the device", maxReturns)
	if o.returns >= maxReturns {
		ends = "it is evicted no more, and goes down with the device"
	}
	remedy := what + "scale " + name + " to 0"
	if s.Pod.Owner.Name == "" {
		remedy = fmt.Sprintf("see who makes it, kubectl -n %s get pod %s -o yaml --show-managed-fields, and stop that", s.Pod.Namespace, s.Pod.Name)
	}
	return finding{
		cause: "returns", remedy: remedy,
		why: fmt.Sprintf("%s has made it again on this cordoned node %s%s; %s", name, times(o.returns), how, ends),
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
