package kubeapi

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/types"
)

// as is the part of a whole object that is decoded.
func as[T any](t *testing.T, whole any) *T {
	t.Helper()
	part := new(T)
	text, err := json.Marshal(whole)
	if err == nil {
		err = json.Unmarshal(text, part)
	}
	if err != nil {
		t.Fatal(err)
	}
	return part
}

func TestAReplicaIsAsTheRunningEngineHasIt(t *testing.T) {
	rebuild := func(key string, progress int) map[string]*longhornv1.RebuildStatus {
		return map[string]*longhornv1.RebuildStatus{key: {IsRebuilding: true, Progress: progress}}
	}
	for name, test := range map[string]struct {
		engine  func(*longhornv1.Engine)
		mode    string
		percent int
	}{
		"RW":               {func(*longhornv1.Engine) {}, "RW", 0},
		"ERR":              {func(e *longhornv1.Engine) { e.Status.ReplicaModeMap["v-r-1"] = "ERR" }, "ERR", 0},
		"absent":           {func(e *longhornv1.Engine) { delete(e.Status.ReplicaModeMap, "v-r-1") }, "", 0},
		"the engine stops": {func(e *longhornv1.Engine) { e.Status.CurrentState = "stopping" }, "", 0},
		"WO by the engine's address": {func(e *longhornv1.Engine) {
			e.Status.ReplicaModeMap["v-r-1"] = "WO"
			e.Status.CurrentReplicaAddressMap = map[string]string{"v-r-1": "10.9.9.9:10010"}
			e.Status.RebuildStatus = rebuild("tcp://10.9.9.9:10010", 41)
		}, "WO", 41},
		"WO by the replica's address": {func(e *longhornv1.Engine) {
			e.Status.ReplicaModeMap["v-r-1"] = "WO"
			e.Status.RebuildStatus = rebuild("tcp://10.1.0.1:10000", 42)
		}, "WO", 42},
		"WO beyond all bounds": {func(e *longhornv1.Engine) {
			e.Status.ReplicaModeMap["v-r-1"] = "WO"
			e.Status.RebuildStatus = rebuild("tcp://10.1.0.1:10000", 420)
		}, "WO", 100},
		"WO that has not begun": {func(e *longhornv1.Engine) { e.Status.ReplicaModeMap["v-r-1"] = "WO" }, "WO", 0},
	} {
		e := lhEngine("v-e-0", "v", "n1", "running", "v-r-1", "RW")
		test.engine(e)
		r, err := storage.ReplicaOf(as[storage.ReplicaPart](t, lhReplica("v-r-1", "v", "n1", "running")))
		if err != nil {
			t.Fatal(err)
		}
		own := storage.EngineOf(as[storage.EnginePart](t, e))
		if got := own.Shows(r); got.Mode != test.mode || got.Percent != test.percent {
			t.Errorf("%s: replica is %q, %d %%", name, got.Mode, got.Percent)
		}
	}
}

func TestAReplicaIsStoppedWhenItIsAndIsToBe(t *testing.T) {
	for _, row := range []struct {
		desired, current longhornv1.InstanceState
		running          bool
	}{
		{"stopped", "stopped", false},
		{"stopped", "", false},
		{"stopped", "stopping", true},
		{"stopped", "unknown", true},
		{"running", "stopped", true},
		{"running", "running", true},
		{"", "stopped", true},
	} {
		r := lhReplica("v-r-1", "v", "n1", "")
		r.Spec.DesireState, r.Status.CurrentState = row.desired, row.current
		if got, err := storage.ReplicaOf(as[storage.ReplicaPart](t, r)); err != nil || got.Running != row.running {
			t.Errorf("%q wanted, is %q: running %v, %v", row.desired, row.current, got.Running, err)
		}
	}
}

func TestADetachedVolumeKeepsWhenItsReplicasWereHealthyAndFailed(t *testing.T) {
	s := longhornAPI()
	failed := lhReplica("v-r-2", "v", "n2", "stopped")
	failed.Spec.FailedAt = "2026-05-03T07:00:00Z"
	s.lists[pathVolumes] = []any{lhVolume("v", "detached", "")}
	s.lists[pathEngines] = []any{lhEngine("v-e-0", "v", "", "stopped")}
	s.lists[pathReplicas] = []any{lhReplica("v-r-1", "v", "n1", "stopped"), failed}
	got, err := s.client(t).Storage(t.Context(), "n1")
	if err != nil || len(got.Volumes) != 1 {
		t.Fatal(got, err)
	}
	v := got.Volumes[0]
	at := time.Date(2026, 5, 3, 6, 0, 0, 0, time.UTC)
	want := []types.Replica{
		{Name: "v-r-1", Node: "n1", HealthyAt: at, State: "stopped"},
		{Name: "v-r-2", Node: "n2", HealthyAt: at, FailedAt: at.Add(time.Hour), State: "stopped"},
	}
	if diff := cmp.Diff(want, v.Replicas); diff != "" || v.Running || v.Engine != "" || v.State != "detached" || v.HealthyReplicas() != 1 {
		t.Errorf("volume is %+v\n%s", v, diff)
	}
}

// Longhorn's finalizer keeps a replica until its data is gone, and an engine may use it as long.
func TestAReplicaThatIsBeingDeletedIsListedAndNotHealthy(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 5, 3, 7, 0, 0, 0, time.UTC))
	for state, engine := range map[string]*longhornv1.Engine{
		"attached": lhEngine("v-e-0", "v", "n1", "running", "v-r-1", "RW", "v-r-2", "RW"),
		"detached": lhEngine("v-e-0", "v", "", "stopped"),
	} {
		s := longhornAPI()
		deleted := lhReplica("v-r-2", "v", "n2", "running")
		deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds, deleted.Finalizers = &at, new(int64), []string{"longhorn.io"}
		s.lists[pathVolumes] = []any{lhVolume("v", state, engine.Spec.NodeID)}
		s.lists[pathEngines] = []any{engine}
		s.lists[pathReplicas] = []any{lhReplica("v-r-1", "v", "n1", "running"), deleted}
		got, err := s.client(t).Storage(t.Context(), "n1")
		if err != nil || len(got.Volumes) != 1 {
			t.Fatal(got, err)
		}
		v := got.Volumes[0]
		if v.HealthyReplicas() != 1 || !v.HealthyOn("n1") || v.HealthyOn("n2") || !v.On("n2") || !v.Replicas[1].Deleted.Equal(at.Time) {
			t.Errorf("%s, it is %+v", state, v)
		}
	}
}

// A volume of KubeVirt that migrates has two engines and each replica twice.
func TestAMigratingVolumeIsTheOneItWas(t *testing.T) {
	migrating := func(at string, first, second string) types.Volume {
		t.Helper()
		s := longhornAPI()
		other := lhReplica("v-r-9", "v", "n2", "running")
		other.Spec.EngineName = "v-e-1"
		s.lists[pathVolumes] = []any{lhVolume("v", "attached", at)}
		s.lists[pathReplicas] = append(s.lists[pathReplicas], other)
		s.lists[pathEngines] = []any{
			lhEngine("v-e-0", "v", "n1", first, "v-r-1", "RW", "v-r-2", "RW"),
			lhEngine("v-e-1", "v", "n3", second, "v-r-9", "RW"),
		}
		got, err := s.client(t).Storage(t.Context(), "n1")
		if err != nil || len(got.Volumes) != 1 {
			t.Fatal(got, err)
		}
		return got.Volumes[0]
	}
	if v := migrating("n1", "running", "running"); v.Engine != "n1" || !v.Running || v.HealthyReplicas() != 2 || len(v.Replicas) != 2 || !cmp.Equal(v.Also, []string{"n3"}) {
		t.Errorf("while it migrates it is %+v", v)
	}
	if v := migrating("n3", "stopping", "running"); v.Engine != "n3" || v.HealthyReplicas() != 1 || !cmp.Equal(v.Also, []string{"n1"}) {
		t.Errorf("after that it is %+v", v)
	}
	if v := migrating("n1", "stopped", "running"); !v.Running || v.HealthyReplicas() != 0 {
		t.Errorf("with only the other engine running it is %+v", v)
	}
	if v := migrating("n1", "running", "stopped"); !v.Running || v.HealthyReplicas() != 2 || len(v.Also) != 0 {
		t.Errorf("with the other engine stopped it is %+v", v)
	}
	if v := migrating("n7", "running", "running"); !v.Running || v.HealthyReplicas() != 0 || v.Engine != "" || len(v.Also) != 2 {
		t.Errorf("attached to neither engine's node it is %+v", v)
	}
}

// Longhorn keeps the name of a claim that a volume has lost.
func TestAVolumeIsOfTheClaimThatItIsBoundTo(t *testing.T) {
	bound, former := lhVolume("v", "attached", "n1"), lhVolume("v", "detached", "")
	former.Status.KubernetesStatus.LastPVCRefAt = "2026-05-03T06:00:00Z"
	for want, v := range map[string]*longhornv1.Volume{"eve-kube-app/v-pvc-0": bound, "": former} {
		if got := storage.DiskOf(as[storage.VolumePart](t, v)).Claim; got != want {
			t.Errorf("it is of claim %q, want %q", got, want)
		}
	}
}
