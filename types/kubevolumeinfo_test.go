package types

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReplicasAreReportedAsTheEngineSeesThem(t *testing.T) {
	for name, r := range map[string]struct {
		replica Replica
		stopped bool // the engine
		want    StorageVolumeReplicaStatus
		percent uint8
	}{
		"read and written":                       {replica: Replica{State: "running", Mode: "RW"}, want: StorageVolumeReplicaStatusOnline, percent: 100},
		"being rebuilt":                          {replica: Replica{State: "running", Mode: "WO", Percent: 40}, want: StorageVolumeReplicaStatusRebuilding, percent: 40},
		"being rebuilt beyond all":               {replica: Replica{State: "running", Mode: "WO", Percent: 4000}, want: StorageVolumeReplicaStatusRebuilding, percent: 100},
		"found wrong by the engine":              {replica: Replica{State: "running", Mode: "ERR"}, want: StorageVolumeReplicaStatusFailed},
		"unknown to the engine":                  {replica: Replica{State: "running"}, want: StorageVolumeReplicaStatusUnknown},
		"unknown to the engine, and once failed": {replica: Replica{State: "running", FailedAt: time.Unix(1, 0)}, want: StorageVolumeReplicaStatusUnknown},
		"running without an engine":              {replica: Replica{State: "running", Mode: "RW"}, stopped: true, want: StorageVolumeReplicaStatusUnknown},
		"in error":                               {replica: Replica{State: "error"}, want: StorageVolumeReplicaStatusFailed},
		"failed some time ago and stopped":       {replica: Replica{State: "stopped", FailedAt: time.Unix(1, 0)}, want: StorageVolumeReplicaStatusFailed},
		"stopped":                                {replica: Replica{State: "stopped"}, stopped: true, want: StorageVolumeReplicaStatusOffline},
		"starting":                               {replica: Replica{State: "starting"}, want: StorageVolumeReplicaStatusStarting},
		"stopping":                               {replica: Replica{State: "stopping"}, want: StorageVolumeReplicaStatusStopping},
		"in a state of which nothing is known":   {replica: Replica{}, want: StorageVolumeReplicaStatusUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			r.replica.Name, r.replica.Node, r.replica.Started = "r", "n1", true
			never := Replica{Name: "never"}
			got := KubeVolumeInfoOf("v", Volume{Running: !r.stopped, Replicas: []Replica{never, r.replica}}).Replicas
			want := []KubeVolumeReplicaInfo{{Name: "r", OwnerNode: "n1", Status: r.want, RebuildProgressPercentage: r.percent}}
			if d := cmp.Diff(want, got); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

func TestSubstateSaysHowRedundantAVolumeIsAndWhetherItIsRebuilt(t *testing.T) {
	const healthy, degraded, faulted = StorageVolumeRobustnessHealthy, StorageVolumeRobustnessDegraded, StorageVolumeRobustnessFaulted
	for _, r := range []struct {
		robustness     StorageVolumeRobustness
		running, whole int
		want           StorageHealthStatus
	}{
		{faulted, 3, 3, StorageHealthStatusFailed},
		{healthy, 3, 3, StorageHealthStatusHealthy},
		{healthy, 1, 1, StorageHealthStatusHealthy},
		{healthy, 0, 0, StorageHealthStatusHealthy},
		{healthy, 3, 2, StorageHealthStatusDegraded2ReplicaAvailableReplicating},
		{degraded, 1, 1, StorageHealthStatusDegraded1ReplicaAvailableNotReplicating},
		{degraded, 1, 0, StorageHealthStatusDegraded1ReplicaAvailableNotReplicating},
		{degraded, 2, 1, StorageHealthStatusDegraded1ReplicaAvailableReplicating},
		{degraded, 2, 2, StorageHealthStatusDegraded2ReplicaAvailableNotReplicating},
		{degraded, 3, 1, StorageHealthStatusDegraded1ReplicaAvailableReplicating},
		{degraded, 3, 2, StorageHealthStatusDegraded2ReplicaAvailableReplicating},
		{degraded, 3, 3, StorageHealthStatusUnknown},
		{degraded, 4, 2, StorageHealthStatusUnknown},
		{StorageVolumeRobustnessUnknown, 0, 0, StorageHealthStatusUnknown},
	} {
		if got := substateOf(r.robustness, r.running, r.whole); got != r.want {
			t.Errorf("%v with %d running, %d of them whole: got %v, want %v", r.robustness, r.running, r.whole, got, r.want)
		}
	}
}

func TestWordsOfLonghornAndKubernetesHaveTheirNumbers(t *testing.T) {
	for i, state := range []string{"creating", "attached", "detached", "attaching", "detaching", "deleting"} {
		if got := volumeStates[state]; int(got) != i+1 {
			t.Errorf("%s is %d", state, got)
		}
	}
	for i, r := range []string{"unknown", "healthy", "degraded", "faulted"} {
		if got := robustnesses[r]; int(got) != i {
			t.Errorf("%s is %d", r, got)
		}
	}
	if volumeStates["other"] != 0 || robustnesses["other"] != 0 {
		t.Error("a word that nobody knows is given a meaning")
	}
}
