package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Timeout is the bound of one drain, by the setting for it. An hour is an hour
// long, but in tests.
func Timeout(settings types.ConfigItemValueMap, hour time.Duration) time.Duration {
	return settings.Duration(types.SettingDrainTimeout, hour, defaultTimeout*hour)
}

// cordoned is a node that somebody else than zedkube has cordoned.
type cordoned struct {
	types.Node
	age time.Duration // of the cordon, as far as is known
}

// cordonedByOthers are the nodes other than own, in the order of their names. A
// tie-breaker is cordoned for good, which is no news.
func cordonedByOthers(nodes []types.Node, own string, now time.Time) []cordoned {
	var all []cordoned
	for _, n := range nodes {
		if n.Name == own || n.TieBreaker || !n.Unschedulable || n.CordonedBy != nil {
			continue
		}
		c := cordoned{Node: n}
		if !n.TaintedAt.IsZero() {
			c.age = max(0, now.Sub(n.TaintedAt))
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b cordoned) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// drainsUnlocked reports that the node may be draining without the drain lock: a
// server on which no zedkube of this kind is known to run, cordoned for no longer
// than a drain may take. EVE's own zedkube leaves no other sign.
func (c cordoned) drainsUnlocked(timeout time.Duration) bool {
	server := c.ControlPlane || c.Master || c.Etcd
	return server && c.MaybeForeign() && c.age < timeout
}

// sayCordons says which of them a drain waits for, "" for none, and what is to be
// known of the others.
func sayCordons(all []cordoned, timeout time.Duration) (waits string, warnings []string) {
	var unlocked []string
	for _, c := range all {
		by, since := "somebody else", ""
		for _, w := range c.Writers {
			if w.Field == types.FieldCordon {
				by = w.Manager
			}
		}
		if !c.TaintedAt.IsZero() {
			since = " since " + c.TaintedAt.UTC().Format("2006-01-02 15:04:05Z")
		}
		head := fmt.Sprintf("node %s is cordoned by %s%s", c.Name, by, since)
		switch {
		case c.drainsUnlocked(timeout) && !c.Foreign():
			unlocked = append(unlocked, fmt.Sprintf("%s and may be draining, for it is not known yet whether its agent knows the drain lock: it is waited for until its stamp changes, which takes up to %s where it does, or the cordon is gone or %s old", head, types.StampEvery, timeout))
		case c.drainsUnlocked(timeout):
			unlocked = append(unlocked, fmt.Sprintf("%s and may be draining, for its agent knows no drain lock: it is waited for until the cordon is gone or %s old", head, timeout))
		case c.age >= timeout:
			warnings = append(warnings, fmt.Sprintf("%s, for more than %s: it takes no pods, and no drain waits for it", head, timeout))
		default:
			warnings = append(warnings, head+": it takes no pods, and no drain waits for it")
		}
	}
	return strings.Join(unlocked, "; "), warnings
}

// takeCordons notes the other nodes' foreign cordons. A drain waits for none of them
// for longer than a drain may take since this agent first saw it, whatever the
// cordon's date and the clocks say.
func (s *state) takeCordons(f *facts) {
	var rows []types.Node
	for _, n := range f.nodes {
		if !n.Unschedulable { // as most of a thousand are not
			continue
		}
		n.TieBreaker = breaksTies(n, f.tie)
		rows = append(rows, n)
	}
	all := cordonedByOthers(rows, f.node.Name, f.wall)
	seen := map[string]time.Time{}
	for i := range all {
		name := all[i].Name
		seen[name] = since(s.mem.cordons[name], f.now, true)
		all[i].age = max(all[i].age, f.now.Sub(seen[name]))
	}
	s.mem.cordons = seen
	f.unlocked, f.warnings = sayCordons(all, f.timeout)
}
