package storage

import (
	"maps"
	"slices"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/types"
)

// ProvisionerAnnotation says who is to make or has made the volume of a claim.
const ProvisionerAnnotation = "volume.kubernetes.io/storage-provisioner"

// ClaimRow is the row of a PersistentVolumeClaim.
func ClaimRow(c *corev1.PersistentVolumeClaim) types.Claim {
	row := types.Claim{
		Name:        c.Name,
		UID:         string(c.UID),
		Volume:      c.Spec.VolumeName,
		Phase:       types.ClaimPhase(c.Status.Phase),
		Created:     c.CreationTimestamp.Time,
		Provisioner: c.Annotations[ProvisionerAnnotation],
	}
	size, ok := c.Status.Capacity[corev1.ResourceStorage]
	if !ok {
		size = c.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	row.Bytes = size.Value()
	if c.DeletionTimestamp != nil {
		row.Deleted = c.DeletionTimestamp.Time
	}
	return row
}

// DaemonOf is the row of a DaemonSet.
func DaemonOf(d *appsv1.DaemonSet) types.DaemonSet {
	return types.DaemonSet{Name: d.Name, Wanted: int(d.Status.DesiredNumberScheduled), Ready: int(d.Status.NumberReady)}
}

// SnapshotLabel marks the RecurringJob that zedkube made.
const SnapshotLabel = "zedkube.github.io/snapshots"

// SettingOf is the row of a setting.
func SettingOf(s *longhornv1.Setting) types.LonghornSetting {
	return types.LonghornSetting{Name: s.Name, UID: string(s.UID), Version: s.ResourceVersion, Value: s.Value}
}

// SnapshotJobOf is the row of a recurring job.
func SnapshotJobOf(j *longhornv1.RecurringJob) types.SnapshotJob {
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
	return j.Labels[SnapshotLabel] == "true" || eves
}

// LonghornNodeOf is the row of a node of Longhorn without what changes time and
// again: the version and the free space.
func LonghornNodeOf(n *NodePart) types.LonghornNode {
	row := types.LonghornNode{
		Name: n.Name, UID: string(n.UID),
		Ready:       partCondition(n.Status.Conditions, "Ready"),
		Schedulable: partCondition(n.Status.Conditions, "Schedulable"),
		Allowed:     n.Spec.AllowScheduling,
	}
	for _, name := range slices.Sorted(maps.Keys(n.Spec.Disks)) {
		d := n.Spec.Disks[name]
		disk := types.LonghornDisk{Name: name, Path: d.Path, Allowed: d.AllowScheduling, Reserved: d.StorageReserved}
		if s := n.Status.Disks[name]; s != nil {
			disk.Maximum = s.StorageMaximum
			disk.Ready, disk.Schedulable = partCondition(s.Conditions, "Ready"), partCondition(s.Conditions, "Schedulable")
		}
		row.Disks = append(row.Disks, disk)
	}
	return row
}

func partCondition(conditions []conditionPart, kind string) types.ConditionStatus {
	for _, c := range conditions {
		if c.Type == kind {
			return types.ConditionStatus(c.Status)
		}
	}
	return ""
}
