package conditions

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{
		now: time.Now().UTC().Round(0), uptime: c.Uptime(),
		nodes: c.Nodes.All(), pods: c.NodePods.All(), clocks: c.Clocks.All(), pending: c.pending,
	}
	f.credentials, f.connected = c.Credentials.Get(types.Global)
	f.api, f.watched = c.API.Get(types.Global)
	nodes, _ := c.Tables.Get(types.TableNodes)
	f.whole = nodes.Whole
	f.info, f.named = c.Info.Get(types.Global)
	f.membership, _ = c.Membership.Get(types.Global)
	f.k3s, _ = c.K3s.Get(types.Global)
	f.leader, f.elects = c.Leader.Get(types.Global)
	f.health, f.reported = c.Health.Get(types.Global)
	f.published, _ = c.Conditions.Get(types.Global)
	if f.named {
		f.own, f.seen = types.OwnNode(f.nodes, f.info)
	}
	return f
}
