//go:build linux

package kubeapi_test

import (
	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// reported are the tables of reports and of what is kept in Longhorn.
type reported struct {
	services  pubsub.Table[types.Service]
	ingresses pubsub.Table[types.Ingress]
	vip       pubsub.Table[types.KubeVIP]
	disks     pubsub.Table[types.LonghornNode]
	counts    pubsub.Table[types.PodCount]
	claims    pubsub.Table[types.Claim]
	volumes   pubsub.Table[types.Volume]
	lhNodes   pubsub.Table[types.LonghornNode]
	daemons   pubsub.Table[types.DaemonSet]
	settings  pubsub.Table[types.LonghornSetting]
	jobs      pubsub.Table[types.SnapshotJob]
}

func (r *reported) fill(c *kubeapi.Client) {
	c.Services, c.Ingresses, c.KubeVIP, c.OwnDisks = &r.services, &r.ingresses, &r.vip, &r.disks
	c.PodCounts, c.Claims, c.Volumes, c.LonghornNodes, c.Daemons = &r.counts, &r.claims, &r.volumes, &r.lhNodes, &r.daemons
	c.Settings, c.SnapshotJobs = &r.settings, &r.jobs
}

func (r *reported) count(namespace string) types.PodCount {
	c, _ := r.counts.Get(namespace)
	return c
}

// counted reports whether the pods of the cluster are.
func (a *agent) counted() bool {
	s, ok := a.tables.Get(types.TablePodCounts)
	return ok && s.Whole
}
