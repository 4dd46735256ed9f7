package members

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// look copies what is true now, a removal by whichever node included.
func (c *Component) look() facts {
	f := facts{
		now: time.Now().UTC().Round(0), uptime: c.Uptime(), looked: c.looked,
		pause: c.pause, tried: c.tried, reason: c.reason,
	}
	if c.running != nil {
		f.running = c.running.task
	}
	membership, _ := c.Membership.Get(types.Global)
	f.belongs = membership.Belongs() && membership.Config != nil
	f.valid = membership.State == types.MembershipMember && membership.InvalidSince.IsZero()
	agent, _ := c.Agent.Get(types.ZedAgentKey)
	f.fetched = agent.ConfigGetStatus == types.ConfigGetSuccess
	info, _ := c.Info.Get(types.Global)
	if f.belongs {
		f.configured = configured{
			cluster: membership.Config.ClusterID.UUID, masters: membership.Config.MasterNodeIDs,
			tie: membership.Config.TieBreakerNodeID.UUID, device: info.DeviceID,
		}
	}
	api, ok := c.API.Get(types.Global)
	f.seen = ok && api.Answers() && api.Synced
	nodes := c.Nodes.All()
	own, known := types.OwnNode(nodes, info)
	f.own, f.known = own, known && info.DeviceID != uuid.Nil
	f.nodes = make([]types.Node, 0, len(nodes))
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		f.nodes = append(f.nodes, nodes[name])
	}
	if f.seen && c.lost(f.nodes) {
		c.rest = f.uptime + restAfter
	}
	f.rest = c.rest
	settings, _ := c.Settings.Get(types.Global)
	f.interval = settings.Duration(types.SettingConfigInterval, time.Second, defaultInterval)
	f.past = c.remembered(f)
	f.pods = c.tiePods(f)
	return f
}

// remembered is the past with what f shows, from the journal at first. While the
// nodes are not all seen, those that are missing are not forgotten; whether the
// controller is reached is noted anyway.
func (c *Component) remembered(f facts) past {
	if c.past.stale == nil {
		j, _ := c.Journal.Get(types.Global)
		c.past = restored(j, f.uptime)
	}
	if !f.belongs || !f.seen {
		return c.past.unseen(f)
	}
	return c.past.next(f)
}

// tiePods are the application pods on the tie-breaker, by key. Most clusters have
// none, and there may be thousands elsewhere.
func (c *Component) tiePods(f facts) []types.Pod {
	ties := map[string]bool{}
	for _, n := range f.nodes {
		if f.configured.isTie(n) {
			ties[n.Name] = true
		}
	}
	pods := c.pods.Of(c.AppPods, ties, func(p types.Pod) bool { return ties[p.NodeName] })
	return slices.SortedFunc(maps.Values(pods), func(a, b types.Pod) int { return cmp.Compare(a.Key(), b.Key()) })
}
