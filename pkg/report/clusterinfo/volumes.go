package clusterinfo

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// provisioner is that of Longhorn's claims.
const provisioner = "driver.longhorn.io"

// volumes reports the claims that Longhorn serves or is to serve, and the
// volumes whose claims are gone while they are not, by name (docs/wire.md,
// "KubeClusterInfo").
func volumes(f facts) []types.KubeVolumeInfo {
	var out []types.KubeVolumeInfo
	for _, c := range f.claims {
		v, ok := f.volumes[c.Volume]
		if !ok && c.Provisioner != provisioner {
			continue
		}
		info := volume(c.Name, v)
		info.PvcStatus = claimStatuses[c.Phase]
		if info.CreatedAt.IsZero() {
			info.CreatedAt = c.Created.UTC()
		}
		if info.ProvisionedBytes == 0 {
			info.ProvisionedBytes = uint64(max(c.Bytes, 0))
		}
		out = append(out, info)
	}
	for _, name := range slices.Sorted(maps.Keys(f.volumes)) { // several may have had claims of one name
		v := f.volumes[name]
		namespace, claim, _ := strings.Cut(cmp.Or(v.Claim, v.LastClaim), "/")
		if _, taken := f.claims[claim]; namespace != types.NamespaceApps || taken {
			continue
		}
		info := volume(claim, v)
		info.PvcStatus = releasedStatuses[v.ClaimState]
		out = append(out, info)
	}
	slices.SortStableFunc(out, func(a, b types.KubeVolumeInfo) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.CreatedAt.Compare(b.CreatedAt))
	})
	return out
}

func volume(claim string, v types.Volume) types.KubeVolumeInfo {
	info := types.KubeVolumeInfo{
		Name:             claim,
		State:            volumeStates[v.State],
		Robustness:       robustnesses[v.Robustness],
		CreatedAt:        v.Created.UTC(),
		ProvisionedBytes: uint64(max(v.Size, 0)),
		AllocatedBytes:   uint64(max(v.Used, 0)) + uint64(max(v.Snapshots, 0)),
		VolumeID:         strings.TrimSuffix(claim, "-pvc-0"),
	}
	running, whole := 0, 0
	for _, r := range v.Replicas {
		if !r.Started {
			continue
		}
		status, percent := replica(v, r)
		info.Replicas = append(info.Replicas, types.KubeVolumeReplicaInfo{
			Name: r.Name, OwnerNode: r.Node, RebuildProgressPercentage: percent, Status: status,
		})
		if r.State == "running" {
			running++
			if v.Running && r.Mode == "RW" {
				whole++
			}
		}
	}
	info.RobustnessSubstate = substate(info.Robustness, running, whole)
	return info
}

func replica(v types.Volume, r types.Replica) (status types.StorageVolumeReplicaStatus, percent uint8) {
	switch {
	case r.State == "running" && (!v.Running || r.Mode == ""):
		return types.StorageVolumeReplicaStatusUnknown, 0 // no engine tells of it
	case r.State == "running" && r.Mode == "RW":
		return types.StorageVolumeReplicaStatusOnline, 100
	case r.State == "running" && r.Mode == "WO":
		return types.StorageVolumeReplicaStatusRebuilding, uint8(min(max(r.Percent, 0), 100))
	case r.State == "running" && r.Mode == "ERR", r.State == "error", !r.FailedAt.IsZero():
		return types.StorageVolumeReplicaStatusFailed, 0
	case r.State == "starting":
		return types.StorageVolumeReplicaStatusStarting, 0
	case r.State == "stopping":
		return types.StorageVolumeReplicaStatusStopping, 0
	case r.State == "stopped":
		return types.StorageVolumeReplicaStatusOffline, 0
	}
	return types.StorageVolumeReplicaStatusUnknown, 0
}

// substate counts running replicas, and those of them that are whole.
func substate(r types.StorageVolumeRobustness, running, whole int) types.StorageHealthStatus {
	switch {
	case r == types.StorageVolumeRobustnessFaulted:
		return types.StorageHealthStatusFailed
	case r == types.StorageVolumeRobustnessHealthy && running == whole:
		return types.StorageHealthStatusHealthy
	case running == 1:
		return types.StorageHealthStatusDegraded1ReplicaAvailableNotReplicating
	}
	switch [2]int{running, whole} {
	case [2]int{2, 1}, [2]int{3, 1}:
		return types.StorageHealthStatusDegraded1ReplicaAvailableReplicating
	case [2]int{2, 2}:
		return types.StorageHealthStatusDegraded2ReplicaAvailableNotReplicating
	case [2]int{3, 2}:
		return types.StorageHealthStatusDegraded2ReplicaAvailableReplicating
	}
	return types.StorageHealthStatusUnknown
}

var volumeStates = map[string]types.StorageVolumeState{
	"creating":  types.StorageVolumeStateCreating,
	"attached":  types.StorageVolumeStateAttached,
	"detached":  types.StorageVolumeStateDetached,
	"attaching": types.StorageVolumeStateAttaching,
	"detaching": types.StorageVolumeStateDetaching,
	"deleting":  types.StorageVolumeStateDeleting,
}

var robustnesses = map[string]types.StorageVolumeRobustness{
	"healthy":  types.StorageVolumeRobustnessHealthy,
	"degraded": types.StorageVolumeRobustnessDegraded,
	"faulted":  types.StorageVolumeRobustnessFaulted,
}

var claimStatuses = map[types.ClaimPhase]types.StorageVolumePvcStatus{
	types.ClaimBound:   types.StorageVolumePvcStatusBound,
	types.ClaimPending: types.StorageVolumePvcStatusPending,
	types.ClaimLost:    types.StorageVolumePvcStatusFaulted,
}

// releasedStatuses are of a volume without a claim, by its PersistentVolume. One
// that is said to be bound has just lost its claim.
var releasedStatuses = map[string]types.StorageVolumePvcStatus{
	"Available": types.StorageVolumePvcStatusAvailable,
	"Failed":    types.StorageVolumePvcStatusFaulted,
	"Bound":     types.StorageVolumePvcStatusReleased,
	"Released":  types.StorageVolumePvcStatusReleased,
}

// storageHealth is of Longhorn as a service (docs/wire.md, "KubeClusterInfo").
func storageHealth(daemons map[string]types.DaemonSet, nodes map[string]types.LonghornNode) types.ServiceStatus {
	wanted, short, disks, usable := 0, false, 0, 0
	for _, d := range daemons {
		wanted += d.Wanted
		if d.Wanted > 0 && d.Ready == 0 {
			return types.ServiceStatusFailed
		}
		short = short || d.Ready < d.Wanted
	}
	for _, n := range nodes {
		for _, d := range n.Disks {
			if !n.Allowed || !d.Allowed {
				continue // someone does not want it used
			}
			disks++
			if n.Ready == types.ConditionTrue && d.Ready == types.ConditionTrue && d.Schedulable == types.ConditionTrue {
				usable++
			}
		}
	}
	switch {
	case wanted == 0 || disks > 0 && usable == 0:
		return types.ServiceStatusFailed
	case short || usable < disks:
		return types.ServiceStatusDegraded
	}
	return types.ServiceStatusHealthy
}
