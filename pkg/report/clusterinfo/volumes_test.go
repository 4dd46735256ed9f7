package clusterinfo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestVolumesAreReportedByTheirClaims(t *testing.T) {
	longhorn := func(v types.Volume) types.Volume {
		v.State, v.Robustness, v.Created, v.Size, v.Used, v.Snapshots = "detached", "unknown", then, 10, 3, 2
		return v
	}
	got := volumes(facts{
		claims: map[string]types.Claim{
			"b-pvc-0": {Name: "b-pvc-0", Volume: "pvc-b", Phase: types.ClaimBound},
			"a-pvc-0": {Name: "a-pvc-0", Phase: types.ClaimPending, Provisioner: "driver.longhorn.io", Bytes: 7, Created: then.Add(time.Minute)},
			"c-pvc-1": {Name: "c-pvc-1", Volume: "pvc-c", Phase: types.ClaimLost, Provisioner: "driver.longhorn.io"},
			"local":   {Name: "local", Volume: "pvc-local", Phase: types.ClaimBound, Provisioner: "rancher.io/local-path"},
		},
		volumes: map[string]types.Volume{
			"pvc-b":   longhorn(types.Volume{Name: "pvc-b", Claim: "eve-kube-app/b-pvc-0", ClaimState: "Bound"}),
			"pvc-old": longhorn(types.Volume{Name: "pvc-old", LastClaim: "eve-kube-app/b-pvc-0", ClaimState: "Released"}),
			"pvc-d":   longhorn(types.Volume{Name: "pvc-d", LastClaim: "eve-kube-app/d-pvc-0", ClaimState: "Released"}),
			"pvc-e":   longhorn(types.Volume{Name: "pvc-e", LastClaim: "eve-kube-app/e-pvc-0", ClaimState: "Available"}),
			"pvc-f":   longhorn(types.Volume{Name: "pvc-f", LastClaim: "eve-kube-app/f-pvc-0", ClaimState: "Failed"}),
			"pvc-g":   longhorn(types.Volume{Name: "pvc-g", Claim: "eve-kube-app/g-pvc-0", ClaimState: "Bound"}),
			"pvc-x":   longhorn(types.Volume{Name: "pvc-x", Claim: "other/x-pvc-0", ClaimState: "Bound"}),
			"pvc-y":   longhorn(types.Volume{Name: "pvc-y"}),
		},
	})
	released := func(id string, status types.StorageVolumePvcStatus) types.KubeVolumeInfo {
		return types.KubeVolumeInfo{
			Name: id + "-pvc-0", VolumeID: id, State: types.StorageVolumeStateDetached, CreatedAt: then, ProvisionedBytes: 10, AllocatedBytes: 5, PvcStatus: status,
		}
	}
	want := []types.KubeVolumeInfo{
		{Name: "a-pvc-0", VolumeID: "a", CreatedAt: then.Add(time.Minute), ProvisionedBytes: 7, PvcStatus: types.StorageVolumePvcStatusPending},
		released("b", types.StorageVolumePvcStatusBound),
		{Name: "c-pvc-1", VolumeID: "c-pvc-1", PvcStatus: types.StorageVolumePvcStatusFaulted},
		released("d", types.StorageVolumePvcStatusReleased),
		released("e", types.StorageVolumePvcStatusAvailable),
		released("f", types.StorageVolumePvcStatusFaulted),
		released("g", types.StorageVolumePvcStatusReleased), // its claim has just gone
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

func TestStatesOfClaimsAndVolumesThatNobodyKnowsHaveNoMeaning(t *testing.T) {
	if claimStatuses["other"] != 0 || releasedStatuses["other"] != 0 {
		t.Error("a word that nobody knows is given a meaning")
	}
}

func TestStorageIsAsHealthyAsItsDaemonsAndDisks(t *testing.T) {
	daemons := func(list ...[2]int) map[string]types.DaemonSet {
		out := map[string]types.DaemonSet{}
		for i, d := range list {
			out[string(rune('a'+i))] = types.DaemonSet{Wanted: d[0], Ready: d[1]}
		}
		return out
	}
	good := types.LonghornDisk{Allowed: true, Ready: types.ConditionTrue, Schedulable: types.ConditionTrue}
	with := func(change func(*types.LonghornDisk)) types.LonghornDisk { d := good; change(&d); return d }
	full := with(func(d *types.LonghornDisk) { d.Schedulable = types.ConditionFalse })
	disks := func(list ...types.LonghornDisk) map[string]types.LonghornNode {
		return map[string]types.LonghornNode{"n": {Allowed: true, Ready: types.ConditionTrue, Disks: list}}
	}
	const failed, degraded, healthy = types.ServiceStatusFailed, types.ServiceStatusDegraded, types.ServiceStatusHealthy
	for name, r := range map[string]struct {
		daemons map[string]types.DaemonSet
		nodes   map[string]types.LonghornNode
		want    types.ServiceStatus
	}{
		"all there":                                   {daemons([2]int{3, 3}, [2]int{3, 3}), disks(good, good), healthy},
		"a daemon lacks one of its pods":              {daemons([2]int{3, 3}, [2]int{3, 2}), disks(good), degraded},
		"a daemon has none of its pods":               {daemons([2]int{3, 3}, [2]int{1, 0}), disks(good), failed},
		"one that wants none does not matter":         {daemons([2]int{3, 3}, [2]int{0, 0}), disks(good), healthy},
		"none wants any":                              {daemons([2]int{0, 0}), disks(good), failed},
		"there are none":                              {nil, disks(good), failed},
		"a disk is full":                              {daemons([2]int{3, 3}), disks(good, full), degraded},
		"a disk is not ready":                         {daemons([2]int{3, 3}), disks(good, with(func(d *types.LonghornDisk) { d.Ready = types.ConditionFalse })), degraded},
		"all disks are full":                          {daemons([2]int{3, 3}), disks(full), failed},
		"a disk that is not to be used":               {daemons([2]int{3, 3}), disks(good, with(func(d *types.LonghornDisk) { d.Allowed, d.Ready = false, types.ConditionFalse })), healthy},
		"a node that is not ready has no usable disk": {daemons([2]int{3, 3}), map[string]types.LonghornNode{"n": {Allowed: true, Ready: types.ConditionFalse, Disks: []types.LonghornDisk{good}}}, failed},
	} {
		if got := storageHealth(r.daemons, r.nodes); got != r.want {
			t.Errorf("%s: got %v, want %v", name, got, r.want)
		}
	}
}

func TestHealthKeepsTheTimeOfItsLastChange(t *testing.T) {
	well := func(f *facts) { f.daemons = map[string]types.DaemonSet{"m": {Wanted: 1, Ready: 1}} }
	a := decide(leading(well))
	later := func(f *facts) { f.now, f.mem = f.now.Add(time.Hour), a.mem }
	if b := decide(leading(well, later)); b.publish.Storage.TransitionTime != then.Add(time.Hour) {
		t.Errorf("the same health since %v", b.publish.Storage.TransitionTime)
	}
	if b := decide(leading(later)); b.publish.Storage.TransitionTime != then.Add(2*time.Hour) || b.publish.Storage.Health != types.ServiceStatusFailed {
		t.Errorf("another health: %+v", b.publish.Storage)
	}
}
