package overview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

const panelVolume = "5b1c7c4e-58f6-4d2a-8c0e-6a1f0f7f9b21"

func replica(node, mode string, percent int) types.Replica {
	return types.Replica{Name: "r-" + node, Node: node, Mode: mode, Percent: percent, State: "running", Started: true, Running: true}
}

func TestVolumesOfTheAPIServerHaveTheirReplicasAndUsers(t *testing.T) {
	apps := []App{{Name: "Panel", VolumeIDs: []string{panelVolume}}, {Name: "Idle", VolumeIDs: []string{"6c"}}}
	pods := []types.Pod{
		{Namespace: "eve-kube-app", Name: "panel-2", NodeName: "n2", Phase: types.PodRunning, Claims: []string{panelVolume + "-pvc-0"}},
		{Namespace: "eve-kube-app", Name: "panel-1", NodeName: "n1", Phase: types.PodFailed, Claims: []string{panelVolume + "-pvc-0"}},
		{Namespace: "other", Name: "namesake", Phase: types.PodRunning, Claims: []string{panelVolume + "-pvc-0"}},
		{Namespace: "eve-kube-app", Name: "native", NodeName: "n3", Phase: types.PodRunning, Claims: []string{"data"}},
	}
	volumes := []types.Volume{
		{
			Name: "pvc-1", Claim: "eve-kube-app/" + panelVolume + "-pvc-0", State: "attached", Robustness: "degraded", Wanted: 3, Engine: "n2", Running: true, Size: 10, Used: 3, Snapshots: 2,
			Replicas: []types.Replica{replica("n1", "RW", 0), replica("n2", "WO", 42), replica("n3", "ERR", 0)},
		},
		{Name: "pvc-2", Claim: "eve-kube-app/data", State: "attached", Robustness: "healthy", Wanted: 1, Running: true, Replicas: []types.Replica{replica("n3", "RW", 0)}},
		{Name: "pvc-3", Claim: "eve-kube-app/6c-pvc-0", State: "detached", Robustness: "unknown", Wanted: 2, Replicas: []types.Replica{
			{Name: "a", Node: "n1", State: "stopped", Started: true, HealthyAt: time.Unix(1, 0)}, {Name: "b", Node: "n2", State: "stopped", Started: true, HealthyAt: time.Unix(1, 0), FailedAt: time.Unix(2, 0)},
		}},
		{Name: "pvc-4", State: "detached", Robustness: "faulted", Wanted: 2},
	}
	got := VolumesOf(volumes, pods, apps, "n1")
	first := got[0]
	if first.Name != panelVolume+"-pvc-0" || first.Namespace != "eve-kube-app" || first.Healthy != 1 || first.Wanted != 3 || !first.Here || first.Rebuilding != 42 || !first.Last() || first.Attached != "n2" || first.Used != 5 {
		t.Errorf("%+v", first)
	}
	if d := cmp.Diff([]VolumeReplica{{Name: "r-n1", Node: "n1", Status: "Online"}, {Name: "r-n2", Node: "n2", Status: "Rebuilding", Percent: 42}, {Name: "r-n3", Node: "n3", Status: "Failed"}}, first.Copies); d != "" {
		t.Error("want -, got +\n" + d)
	}
	for i, want := range [][]VolumeUser{{{App: "Panel", Pod: "panel-2", Node: "n2"}}, {{Pod: "native", Node: "n3"}}, {{App: "Idle"}}, nil} {
		if d := cmp.Diff(want, got[i].Users); d != "" {
			t.Errorf("users of %s: want -, got +\n%s", got[i].Name, d)
		}
	}
	if got[1].Last() || !got[2].Last() || got[2].Healthy != 1 || !got[3].Lost() || got[3].Name != "pvc-4" {
		t.Errorf("%+v", got[1:])
	}
	ByUrgency(got)
	order := ""
	for _, v := range got {
		order += v.Name[:1]
	}
	if order != "56pd" { // the last replicas, by name, then none, then the one that is as it should be
		t.Errorf("order %s", order)
	}
}

func TestReplicasOfADetachedVolumeAreHealthyAsTheyWere(t *testing.T) {
	info := types.KubeVolumeInfo{Name: "v", State: types.StorageVolumeStateDetached, Replicas: []types.KubeVolumeReplicaInfo{
		{OwnerNode: "n1", Status: types.StorageVolumeReplicaStatusOffline}, {OwnerNode: "n2", Status: types.StorageVolumeReplicaStatusFailed},
	}}
	if v := reportedVolume(info, "n1"); v.Healthy != 1 || v.Online != 0 || !v.Last() || v.Lost() {
		t.Errorf("%+v", v)
	}
	info.State = types.StorageVolumeStateAttached // no engine reads or writes any of them
	if v := reportedVolume(info, "n1"); v.Healthy != 0 || !v.Lost() {
		t.Errorf("%+v", v)
	}
}
