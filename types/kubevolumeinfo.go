package types

import "strings"

// KubeVolumeInfoOf is a volume of Longhorn as the report on the cluster has it, under the name
// of its claim (docs/wire.md, "KubeClusterInfo").
func KubeVolumeInfoOf(claim string, v Volume) KubeVolumeInfo {
	info := KubeVolumeInfo{
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
		status, percent := replicaOf(v, r)
		info.Replicas = append(info.Replicas, KubeVolumeReplicaInfo{
			Name: r.Name, OwnerNode: r.Node, RebuildProgressPercentage: percent, Status: status,
		})
		if r.State == "running" {
			running++
			if v.Running && r.Mode == "RW" {
				whole++
			}
		}
	}
	info.RobustnessSubstate = substateOf(info.Robustness, running, whole)
	return info
}

func replicaOf(v Volume, r Replica) (status StorageVolumeReplicaStatus, percent uint8) {
	switch {
	case r.State == "running" && (!v.Running || r.Mode == ""):
		return StorageVolumeReplicaStatusUnknown, 0 // no engine tells of it
	case r.State == "running" && r.Mode == "RW":
		return StorageVolumeReplicaStatusOnline, 100
	case r.State == "running" && r.Mode == "WO":
		return StorageVolumeReplicaStatusRebuilding, uint8(min(max(r.Percent, 0), 100))
	case r.State == "running" && r.Mode == "ERR", r.State == "error", !r.FailedAt.IsZero():
		return StorageVolumeReplicaStatusFailed, 0
	case r.State == "starting":
		return StorageVolumeReplicaStatusStarting, 0
	case r.State == "stopping":
		return StorageVolumeReplicaStatusStopping, 0
	case r.State == "stopped":
		return StorageVolumeReplicaStatusOffline, 0
	}
	return StorageVolumeReplicaStatusUnknown, 0
}

// substateOf counts running replicas, and those of them that are whole.
func substateOf(r StorageVolumeRobustness, running, whole int) StorageHealthStatus {
	switch {
	case r == StorageVolumeRobustnessFaulted:
		return StorageHealthStatusFailed
	case r == StorageVolumeRobustnessHealthy && running == whole:
		return StorageHealthStatusHealthy
	case running == 1:
		return StorageHealthStatusDegraded1ReplicaAvailableNotReplicating
	}
	switch [2]int{running, whole} {
	case [2]int{2, 1}, [2]int{3, 1}:
		return StorageHealthStatusDegraded1ReplicaAvailableReplicating
	case [2]int{2, 2}:
		return StorageHealthStatusDegraded2ReplicaAvailableNotReplicating
	case [2]int{3, 2}:
		return StorageHealthStatusDegraded2ReplicaAvailableReplicating
	}
	return StorageHealthStatusUnknown
}

var volumeStates = map[string]StorageVolumeState{
	"creating":  StorageVolumeStateCreating,
	"attached":  StorageVolumeStateAttached,
	"detached":  StorageVolumeStateDetached,
	"attaching": StorageVolumeStateAttaching,
	"detaching": StorageVolumeStateDetaching,
	"deleting":  StorageVolumeStateDeleting,
}

var robustnesses = map[string]StorageVolumeRobustness{
	"healthy":  StorageVolumeRobustnessHealthy,
	"degraded": StorageVolumeRobustnessDegraded,
	"faulted":  StorageVolumeRobustnessFaulted,
}
