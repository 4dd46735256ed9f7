package kubeapi

import (
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// reported are the tables that only the leader keeps.
type reported struct {
	counts   pubsub.Table[types.KubePodNameSpaceInfo]
	claims   pubsub.Table[types.Claim]
	volumes  pubsub.Table[types.Volume]
	lhNodes  pubsub.Table[types.LonghornNode]
	daemons  pubsub.Table[types.DaemonSet]
	settings pubsub.Table[types.LonghornSetting]
	jobs     pubsub.Table[types.SnapshotJob]
	creds    pubsub.Table[types.Credentials]
	clocks   pubsub.Table[types.NodeClock]
}

func (r *reported) fill(c *Client) {
	c.PodCounts, c.Claims, c.Volumes, c.LonghornNodes, c.Daemons = &r.counts, &r.claims, &r.volumes, &r.lhNodes, &r.daemons
	c.Settings, c.SnapshotJobs = &r.settings, &r.jobs
	c.Credentials, c.Clocks = &r.creds, &r.clocks
}

// counted reports whether the pods of the cluster are.
func (tb *tables) counted() bool {
	s, ok := tb.tables.Get(types.TablePodCounts)
	return ok && s.Complete
}

// rows counts those of all of them.
func (r *reported) rows() int {
	return len(r.counts.All()) + len(r.claims.All()) + len(r.volumes.All()) + len(r.lhNodes.All()) + len(r.daemons.All()) +
		len(r.settings.All()) + len(r.jobs.All())
}

// pods counts those of all namespaces.
func (r *reported) pods() (n int) {
	for _, c := range r.counts.All() {
		n += int(c.PodCount)
	}
	return n
}
