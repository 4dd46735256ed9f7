package storage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// life is what an agent that is killed does to the snapshots.
type life struct {
	*kubetest.Cluster
	*kubetest.Mortal
}

// The effects, as the kill points name them.
const (
	changesJob = "ensure snapshot job: patch recurringjobs.longhorn.io"
	deletesJob = "delete snapshot job: delete recurringjobs.longhorn.io"
)

func (l life) EnsureSnapshotJob(ctx context.Context, cron string) (changed bool, err error) {
	err = l.Do(changesJob, func() error { changed, err = l.Cluster.EnsureSnapshotJob(ctx, cron); return err })
	return changed, err
}

func (l life) DeleteSnapshotJob(ctx context.Context, job types.SnapshotJob) (changed bool, err error) {
	err = l.Do(deletesJob, func() error { changed, err = l.Cluster.DeleteSnapshotJob(ctx, job); return err })
	return changed, err
}

func TestWhereverTheAgentDiesTheSnapshotsFollowTheirSetting(t *testing.T) {
	for range seeds.Each(t, 1) {
		for effect, cron := range map[string]string{changesJob: "0 5 * * *", deletesJob: ""} {
			for _, after := range []bool{false, true} {
				m := &kubetest.Mortal{At: effect, After: after, Died: make(chan struct{})}
				t.Run(m.Point("storage"), func(t *testing.T) {
					play(t, func(s *stage) { s.killed(m, cron) })
				})
			}
		}
	}
}

// killed tells of an agent that dies and starts again.
func (s *stage) killed(m *kubetest.Mortal, cron string) {
	m.Died = make(chan struct{})
	a := s.start("n1", true)
	a.stop()
	a.kube = life{s.cluster, m}
	s.start("n1", true)
	_ = a.settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{
		types.SettingSnapshotCron: {Key: types.SettingSnapshotCron, ItemType: types.ConfigItemString, StrValue: cron},
	}})
	select {
	case <-m.Died:
	case <-time.After(time.Hour):
		s.Fatal("it never came there")
	}
	synctest.Wait()
	a.stop()
	seeds.Killed(s, m.Point("storage"))
	a.kube = s.cluster
	s.start("n1", true)
	time.Sleep(time.Minute)
	synctest.Wait()
	if j, there := s.jobs.Get(types.SnapshotJobName); there != (cron != "") || j.Cron != cron {
		s.Errorf("the job is %+v, %v", j, there)
	}
}
