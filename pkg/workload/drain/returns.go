package drain

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

// maxPause is the longest pause before pods that came back are evicted again.
const maxPause = time.Minute

// maker is who makes the pods of a drain, as far as the drain has to know.
type maker struct {
	first   map[string]bool // UIDs of its pods that were there before one was evicted
	evicted bool            // one was
	again   bool            // one was since the last return was counted
	returns int             // how often pods of it have come back
	shared  bool            // it stands for all makers of its namespace that have no lasting name
	next    time.Time       // no eviction of those before this
}

// stays reports that a pod of it is evicted no more. That needs one that came
// back: any other is evicted, and its budgets are honoured.
func (m *maker) stays(uid string) bool {
	return m != nil && m.returns >= outlook.MaxReturns && !m.first[uid]
}

// makerOf is the key of who makes the pod, the same for all pods of it: the
// application, the controlling owner, or for a pod without one its namespace.
func makerOf(p types.Pod) string {
	switch {
	case p.AppDomain != "":
		return "application " + p.AppDomain
	case p.Owner.Name != "":
		return p.Namespace + "/" + p.Owner.Kind + " " + p.Owner.Name
	}
	return sharedOf(p)
}

// sharedOf is the key of all makers in the pod's namespace that have no lasting
// name: programs that make pods without an owner, and what makes the owner of its
// pods again under another name each time, such as a VirtualMachineInstanceReplicaSet.
func sharedOf(p types.Pod) string { return "namespace " + p.Namespace }

// nameOf is the maker of p, for people.
func (m *maker) nameOf(p types.Pod) string {
	if m.shared && p.Owner.Name != "" {
		return "what makes " + outlook.OwnerName(p)
	}
	return outlook.OwnerName(p)
}

// takeChosen notes a pod that was chosen for the first time. One whose maker had a
// pod evicted before has come back: then it may not be evicted before next, which
// is later and later.
func (s *state) takeChosen(now time.Time, p types.Pod) (next time.Time) {
	m := s.makes(p)
	switch {
	case !m.evicted:
		m.first[p.UID] = true
		return time.Time{}
	case m.again:
		m.again = false
		m.returns++
		if m.returns == outlook.MaxReturns {
			s.report(true, "DrainLeavesPods", fmt.Sprintf(
				"pods of %s in namespace %s have come back to this node %d times: they are evicted no more and go down with the device",
				m.nameOf(p), p.Namespace, m.returns))
		}
	}
	m.next = later(m.next, now.Add(min(maxPause, time.Second<<min(m.returns-1, 6))))
	return m.next
}

// makes is who makes the pod. An owner that is new on a cordoned node from whose
// namespace pods were evicted counts as the shared one.
func (s *state) makes(p types.Pod) *maker {
	key, all := makerOf(p), s.mem.makers
	shared := all[sharedOf(p)]
	if shared == nil {
		shared = &maker{first: map[string]bool{}, shared: true}
		all[sharedOf(p)] = shared
	}
	switch {
	case all[key] != nil:
	case p.AppDomain == "" && shared.evicted: // an application keeps its name
		all[key] = shared
	default:
		all[key] = &maker{first: map[string]bool{}}
	}
	return all[key]
}

// takeEvicted notes that a pod of a maker was evicted.
func (s *state) takeEvicted(p types.Pod) {
	for _, key := range []string{makerOf(p), sharedOf(p)} {
		if m := s.mem.makers[key]; m != nil {
			m.evicted, m.again = true, true
		}
	}
}

// staying is the makers whose pods stay on the node, by key, each with the UIDs
// of those that do not.
func (s *state) staying() map[string]map[string]bool {
	stays := map[string]map[string]bool{}
	for key, m := range s.mem.makers {
		if m.returns >= outlook.MaxReturns {
			stays[key] = maps.Clone(m.first)
		}
	}
	return stays
}

// remains reports that the drain waits for the end of p.
func (in call) remains(p types.Pod) bool {
	first, stays := in.stays[makerOf(p)]
	return !stays || first[p.UID]
}

// leavesUseToPods reports that the use of volumes by pods that stay on the node and
// go down with the device does not count: for a reboot and never for a leave.
func (in call) leavesUseToPods(s types.Storage) bool {
	return !in.forGood && len(in.stays) > 0 && outlook.InUse(s, in.node.Name)
}

// usedByStaying reports of a volume that only pods use it that stay.
func (r reading) usedByStaying(in call) func(volume string) bool {
	return func(volume string) bool {
		return len(r.users[volume]) > 0 && !slices.ContainsFunc(r.users[volume], in.remains)
	}
}
