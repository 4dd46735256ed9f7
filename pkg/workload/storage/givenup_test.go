package storage

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// givenUp is a table that is emptied as it is looked at, since its node leads no more.
type givenUp struct {
	pubsub.Table[types.SnapshotJob]
	empty func()
}

func (g *givenUp) Get(key string) (types.SnapshotJob, bool) {
	g.empty()
	return g.Table.Get(key)
}

func TestALeadThatIsLostDuringALookIsNoReasonToMakeTheJobAnew(t *testing.T) {
	var (
		settings spoken
		info     pubsub.Table[types.EdgeNodeInfo]
		leader   pubsub.Table[types.KubeLeaderElectInfo]
		nodes    pubsub.Table[types.Node]
		tables   pubsub.Table[types.TableStatus]
		disks    pubsub.Table[types.LonghornNode]
		policies pubsub.Table[types.LonghornSetting]
		status   pubsub.Table[types.KubeStorageStatus]
		jobs     givenUp
	)
	jobs.empty = func() {
		_ = leader.Publish(types.Global, types.KubeLeaderElectInfo{})
		_ = tables.Unpublish(types.TableSnapshotJob)
		_ = jobs.Unpublish(types.SnapshotJobName)
	}
	_ = settings.Publish(types.Global, types.ConfigItemValueMap{})
	_ = leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: true})
	_ = tables.Publish(types.TableSnapshotJob, types.TableStatus{Complete: true})
	_ = jobs.Publish(types.SnapshotJobName, types.SnapshotJob{Name: types.SnapshotJobName, Cron: defaultCron, Ours: true})
	c := &Component{
		Settings: &settings, Info: &info, Leader: &leader, Nodes: &nodes, Tables: &tables, OwnDisks: &disks, LonghornSettings: &policies,
		SnapshotJobs: &jobs, Uptime: func() time.Duration { return time.Hour }, Status: &status,
	}
	if a := decide(c.look()); a.moves[snapshots].begin || a.status.SnapshotJob.Kept {
		t.Errorf("it writes %v and says %+v", a.moves[snapshots].begin, a.status.SnapshotJob)
	}
}
