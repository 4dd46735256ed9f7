package drain

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/zedkube/zedkube/types"
)

// lookAtCluster finds the own node, its peers, and how long the API is silent.
func (c *Component) lookAtCluster(f *facts, config types.EdgeNodeClusterConfig) {
	m := &c.mem
	api, ok := c.API.Get(types.Global)
	f.synced = ok && api.Synced
	c.lookAtSilence(f, api, ok)
	nodes := c.Nodes.All()
	info, _ := c.Info.Get(types.Global)
	f.self = info.NodeName()
	named := f.self != ""
	f.node, f.known = types.OwnNode(nodes, info)
	f.tieBreaker = f.node.TieBreaker ||
		info.DeviceID != uuid.Nil && info.DeviceID == config.TieBreakerNodeID.UUID
	if id := config.TieBreakerNodeID.UUID; id != uuid.Nil {
		f.tie = id.String()
	}
	f.up = f.known && f.node.Ready == types.ConditionTrue &&
		(c.rec.nodeBoot == "" || f.node.BootID == c.BootID || f.node.BootID != c.rec.nodeBoot)
	c.lookAtPeers(f, nodes)
	c.lookAtCordons(f, nodes)
	lease, _ := c.Leases.Get(types.DrainLockName)
	f.lease = f.known && lease.Holder == f.node.Name && lease.Version != m.notLock
	// The pods of an own node that does not exist are never watched, so nothing
	// is ever synced then; that other nodes are seen tells as much.
	listed := f.synced || len(nodes) > 0
	m.missing = since(m.missing, f.now, !f.known && named && f.living() && listed)
	f.missing = m.missing
	m.seen = m.seen || f.known
	f.registered = m.seen || !c.rec.cordoned.IsZero()
	switch {
	case !f.living():
		f.why = "the API server does not answer: " + cmp.Or(api.Reason, "nothing was heard of it yet")
		// It may be back in a moment, and then it is another one.
		clear(m.retry)
		clear(m.backoff)
	case !named:
		f.why = "EdgeNodeInfo has not said yet which node this is"
	case !listed:
		f.why = "the API server has not listed the nodes yet"
	case !f.known:
		f.why = "this node is not one of the cluster's"
		if !f.registered {
			f.why += ", or not yet: it has not registered since this agent started"
		}
	}
	c.lookAtCordon(f)
}

// lookAtPeers says whether another node would take the pods, and whether all
// the others know the lock.
func (c *Component) lookAtPeers(f *facts, nodes map[string]types.Node) {
	all := slices.Collect(maps.Values(nodes))
	for i := range all {
		all[i].TieBreaker = all[i].TieBreaker || f.tie != "" && all[i].UUID == f.tie
	}
	f.ends, _ = types.LastOf(all, f.node.Name)
	takers, foreign := 0, 0
	for _, n := range nodes {
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
		if n.MaybeForeign() {
			foreign++
		}
	}
	if foreign == 0 {
		f.window = 0
	}
	f.freed = c.mem.freed
	c.mem.alone = since(c.mem.alone, f.now, f.known && f.synced && f.living() && takers == 0)
	f.alone = c.mem.alone
}

// lookAtSilence says since when the API server is silent. What an earlier
// process of this boot saw of the same silence counts, once this one sees it too.
func (c *Component) lookAtSilence(f *facts, api types.APIStatus, known bool) {
	switch {
	case !known:
		f.silentSince = c.mem.started // nothing was ever heard of it
	case !api.Answers():
		// The monotonic clock has the last word on how long ago that was.
		f.silentSince = f.now.Add(-max(0, time.Since(api.SilentSince)))
	}
	m := &c.mem
	if f.living() && f.now.Sub(m.late) > muteFor {
		m.mute = time.Time{} // an answer that was lost is no silence
	}
	f.deadSince = f.silentSince
	if f.living() {
		f.deadSince = m.mute
	} else if was := c.rec.silent; known && !was.IsZero() && was.Before(f.silentSince) {
		f.deadSince = was
	} else if !m.mute.IsZero() && m.mute.Before(f.silentSince) {
		f.deadSince = m.mute
	}
	switch {
	case f.living() || !drains(c.rec.phase) && c.rec.phase != types.PhaseComplete:
		c.rec.silent = time.Time{}
	case c.rec.silent.IsZero():
		c.rec.silent = f.deadSince
	}
}

// lookAtCordon notices that somebody has undone this drain's cordon; what a
// failure gives back is not lost.
func (c *Component) lookAtCordon(f *facts) {
	m := &c.mem
	wanted := drains(c.rec.phase) || c.rec.phase == types.PhaseComplete
	switch {
	case m.cordonAgain.IsZero() || !f.known || !wanted:
	case f.node.Unschedulable:
		m.cordonSeen = true
	case m.cordonSeen:
		m.cordonSeen, m.cordonAgain = false, time.Time{}
		c.rec.losses++
		c.report(true, "CordonLost", "somebody made the node schedulable in the middle of its drain")
	}
}
