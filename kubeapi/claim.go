package kubeapi

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/types"
)

// provisionerAnnotation says who is to make or has made the volume of a claim.
const provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"

func claimRows(table Writer[types.Claim]) rowStore {
	return &rows[*corev1.PersistentVolumeClaim, types.Claim]{
		table: table, row: claimRow, slim: slimClaim,
		key: func(c types.Claim) string { return c.Name },
	}
}

// claimRow is the row of a PersistentVolumeClaim.
func claimRow(c *corev1.PersistentVolumeClaim) types.Claim {
	row := types.Claim{
		Name:        c.Name,
		UID:         string(c.UID),
		Volume:      c.Spec.VolumeName,
		Phase:       types.ClaimPhase(c.Status.Phase),
		Created:     c.CreationTimestamp.Time,
		Provisioner: c.Annotations[provisionerAnnotation],
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

// slimClaim keeps what claimRow reads.
func slimClaim(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	slim := &corev1.PersistentVolumeClaim{ObjectMeta: slimMeta(c.ObjectMeta)}
	slim.Annotations = only(c.Annotations, provisionerAnnotation)
	slim.Spec.VolumeName, slim.Spec.Resources = c.Spec.VolumeName, c.Spec.Resources
	slim.Status.Phase, slim.Status.Capacity = c.Status.Phase, c.Status.Capacity
	return slim
}

func daemonRows(table Writer[types.DaemonSet]) rowStore {
	return &rows[*appsv1.DaemonSet, types.DaemonSet]{
		table: table, row: daemonOf, slim: slimDaemon,
		key: func(d types.DaemonSet) string { return d.Name },
	}
}

// daemonOf is the row of a DaemonSet.
func daemonOf(d *appsv1.DaemonSet) types.DaemonSet {
	return types.DaemonSet{Name: d.Name, Wanted: int(d.Status.DesiredNumberScheduled), Ready: int(d.Status.NumberReady)}
}

// slimDaemon keeps what daemonOf reads.
func slimDaemon(d *appsv1.DaemonSet) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: slimMeta(d.ObjectMeta),
		Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: d.Status.DesiredNumberScheduled, NumberReady: d.Status.NumberReady},
	}
}
