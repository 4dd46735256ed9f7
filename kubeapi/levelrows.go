package kubeapi

import (
	"slices"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"

	"github.com/zedkube/zedkube/types"
)

// snapshotLabel marks the RecurringJob that zedkube made.
const snapshotLabel = "zedkube.github.io/snapshots"

func settingRows(table Writer[types.LonghornSetting]) rowStore {
	return &rows[*longhornv1.Setting, types.LonghornSetting]{
		table: table, row: settingOf, slim: asIs[longhornv1.Setting],
		key: func(s types.LonghornSetting) string { return s.Name },
	}
}

func snapshotJobRows(table Writer[types.SnapshotJob]) rowStore {
	return &rows[*longhornv1.RecurringJob, types.SnapshotJob]{
		table: table, row: snapshotJobOf, slim: asIs[longhornv1.RecurringJob],
		key: func(j types.SnapshotJob) string { return j.Name },
	}
}

// asIs leaves an object as it is: there is only one in its list.
func asIs[T any](o *T) *T { return o }

func settingOf(s *longhornv1.Setting) types.LonghornSetting {
	return types.LonghornSetting{Name: s.Name, UID: string(s.UID), Version: s.ResourceVersion, Value: s.Value}
}

func snapshotJobOf(j *longhornv1.RecurringJob) types.SnapshotJob {
	return types.SnapshotJob{
		Name: j.Name, UID: string(j.UID), Version: j.ResourceVersion,
		Task: string(j.Spec.Task), Groups: slices.Clone(j.Spec.Groups), Cron: j.Spec.Cron,
		Retain: j.Spec.Retain, Concurrency: j.Spec.Concurrency, Ours: ourJob(j),
	}
}

// ourJob tells a job that zedkube made, and one that EVE's own zedkube did, who
// leaves no mark, from somebody else's of the same name.
func ourJob(j *longhornv1.RecurringJob) bool {
	eves := j.Spec.Task == longhornv1.RecurringJobTypeSnapshot && slices.Equal(j.Spec.Groups, []string{longhornv1.RecurringJobGroupDefault})
	return j.Labels[snapshotLabel] == "true" || eves
}
