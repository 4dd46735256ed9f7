package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// updateCluster says what the own node and its peers are, and for how long.
func (s *state) updateCluster(f *facts) {
	m := &s.mem
	s.updateSilence(f)
	f.up = f.known && f.node.Ready == types.ConditionTrue &&
		(s.rec.NodeBoot == "" || f.node.BootID == f.bootID || f.node.BootID != s.rec.NodeBoot)
	s.updatePeers(f)
	s.updateCordons(f)
	was := m.lease
	was.Version = f.lockLease.Version // volumes that are added make it no other lock
	if f.lockLease != was {
		m.leased = f.now
	}
	m.lease = f.lockLease
	f.lockSeen = f.now - m.leased
	f.lease = f.known && f.lockLease.Holder == f.node.Name && f.lockLease.Version != m.notLock
	// The pods of an own node that does not exist are never watched, so nothing
	// is ever synced then; that other nodes are seen tells as much.
	listed := f.synced || len(f.nodes) > 0
	m.missing = since(m.missing, f.now, !f.known && f.self != "" && f.living() && listed)
	m.seen = m.seen || f.known
	f.registered = m.seen || s.rec.Cordoned != 0
	switch {
	case !f.living():
		f.why = "the API server does not answer: " + cmp.Or(f.api.Reason, "it has not answered yet")
		// It may be back in a moment, and then it is another one.
		clear(m.retry)
		clear(m.backoff)
	case f.self == "":
		f.why = "EdgeNodeInfo has not said yet which node this is"
	case !listed:
		f.why = "the API server has not listed the nodes yet"
	case !f.known:
		f.why = "this node is not in the cluster's list of nodes"
		if !f.registered {
			f.why += ", or not yet: it has not registered since this agent started"
		}
	}
	s.countCordonLoss(f)
}

// updatePeers says whether another node would take the pods, and whether all the
// others know the lock.
func (s *state) updatePeers(f *facts) {
	f.ends, _ = types.LastOf(f.nodes, f.node.Name)
	takers, foreign := 0, 0
	for _, n := range f.nodes {
		if n.Name == f.node.Name {
			continue
		}
		f.others++
		if n.Ready == types.ConditionTrue && !n.Unschedulable {
			takers++
		}
		if n.DrainInProgress == types.ConditionTrue {
			f.queued = true
		}
		if n.IsServer() && n.MaybeForeign() {
			foreign++ // no drain waits for a worker's cordon, which is all that the window could show
		}
	}
	if foreign == 0 {
		f.window = 0
	}
	s.mem.alone = since(s.mem.alone, f.now, f.known && f.synced && f.living() && takers == 0)
}

// updateSilence says since when the API server is silent. What an earlier process of
// this boot saw of the same silence counts, once this one sees it too.
func (s *state) updateSilence(f *facts) {
	m, r := &s.mem, &s.rec
	switch {
	case !f.apiSeen:
		f.silentSince = m.started // nothing was ever heard of it
	case !f.api.Answers():
		// The monotonic clock has the last word on how long ago that was.
		f.silentSince = max(1, f.now-max(0, f.wall.Sub(f.api.SilentSince)))
	}
	if f.living() && f.now-m.late > muteFor {
		m.mute = 0 // an answer that was lost is no silence
	}
	f.deadSince = f.silentSince
	if f.living() {
		f.deadSince = m.mute
	} else if f.apiSeen && r.Silent != 0 && r.Silent < f.silentSince {
		f.deadSince = r.Silent
	} else if m.mute != 0 && m.mute < f.silentSince {
		f.deadSince = m.mute
	}
	switch {
	case f.living() || !drains(r.Phase) && r.Phase != types.PhaseComplete:
		r.Silent = 0
	case r.Silent == 0:
		r.Silent = f.deadSince
	}
}

// countCordonLoss notices that somebody has undone this drain's cordon; what a
// failure gives back is not lost. Nothing that was listed before the next cordon
// counts, whose answer may be lost.
func (s *state) countCordonLoss(f *facts) {
	m := &s.mem
	wanted := drains(s.rec.Phase) || s.rec.Phase == types.PhaseComplete
	if drains(s.rec.Phase) && f.known && !f.node.Unschedulable {
		m.check, m.list = checked{}, 0
	}
	switch {
	case m.cordonAgain == 0 || !f.known || !wanted:
	case f.node.Unschedulable:
		m.cordonSeen, m.unseen = true, 0
	case m.cordonSeen:
		m.cordonSeen, m.cordonAgain = false, 0
		s.rec.Losses++
		s.report(true, "CordonLost", "the node was uncordoned by another client during its drain")
	}
}

// boundUnlocked ends the wait for cordons that may be drains without the lock
// while there is a tenth of the drain's time left for the lock, the quorum and the
// pods: such a cordon may be as young as the drain, and stand for longer.
func (s *state) boundUnlocked(f *facts) {
	if f.unlocked == "" || !drains(s.rec.Phase) {
		return
	}
	if f.now-s.rec.began() < f.timeout-f.timeout/10 {
		f.unlocked += fmt.Sprintf(", or the drain has %s left", f.timeout/10)
		return
	}
	f.warnings = append(f.warnings, "the drain no longer waits, because it would not end in time: "+f.unlocked)
	f.unlocked = ""
}

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
	return c.IsServer() && c.MaybeForeign() && c.age < timeout
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
			unlocked = append(unlocked, fmt.Sprintf("%s and may be draining, because it is not known yet whether its agent uses the drain lock: this node waits until its stamp changes, which takes up to %s if it does, or the cordon is gone or %s old", head, types.StampEvery, timeout))
		case c.drainsUnlocked(timeout):
			unlocked = append(unlocked, fmt.Sprintf("%s and may be draining, because its agent does not use the drain lock: this node waits until the cordon is gone or %s old", head, timeout))
		case c.age >= timeout:
			warnings = append(warnings, fmt.Sprintf("%s, for more than %s: it is not schedulable, and no drain waits for it", head, timeout))
		default:
			warnings = append(warnings, head+": it is not schedulable, and no drain waits for it")
		}
	}
	return strings.Join(unlocked, "; "), warnings
}

// updateCordons notes the other nodes' foreign cordons. A drain waits for none of them
// for longer than a drain may take since this agent first saw it, whatever the
// cordon's date and the clocks say.
func (s *state) updateCordons(f *facts) {
	all := cordonedByOthers(f.nodes, f.node.Name, f.wall)
	seen := map[string]time.Duration{}
	for i := range all {
		name := all[i].Name
		seen[name] = since(s.mem.cordons[name], f.now, true)
		all[i].age = max(all[i].age, f.now-seen[name])
	}
	s.mem.cordons = seen
	f.unlocked, f.warnings = sayCordons(all, f.timeout)
}
