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
		info := types.KubeVolumeInfoOf(c.Name, v)
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
		info := types.KubeVolumeInfoOf(claim, v)
		info.PvcStatus = releasedStatuses[v.ClaimState]
		out = append(out, info)
	}
	slices.SortStableFunc(out, func(a, b types.KubeVolumeInfo) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.CreatedAt.Compare(b.CreatedAt))
	})
	return out
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
