package kubeapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// joining is a join with its four stores and what it made.
type joining struct {
	t                                     *testing.T
	volumes, engines, replicas, snapshots access.Store
	table                                 pubsub.Table[types.Volume]
	doubts                                []string
	join                                  *storage.VolumeJoin
}

func newJoining(t *testing.T) *joining {
	s := &joining{t: t}
	s.join = storage.NewVolumeJoin(&s.table)
	s.join.Doubts = func(why string) { s.doubts = append(s.doubts, why) }
	s.volumes, s.engines, s.replicas, s.snapshots = storage.VolumeParts(s.join), storage.EngineParts(s.join), storage.ReplicaParts(s.join), storage.SnapshotParts(s.join)
	t.Cleanup(s.join.Stop)
	return s
}

// list has a store take the whole list of these objects.
func list[T any](s *joining, store access.Store, objects ...any) {
	s.t.Helper()
	var slim []any
	for _, o := range objects {
		part, err := store.Transformer()(as[T](s.t, o))
		if err != nil {
			s.t.Fatal(err)
		}
		slim = append(slim, part)
	}
	if err := store.Replace(slim, "7"); err != nil {
		s.t.Fatal(err)
	}
}

// whole has one volume "v", healthy on n1 and n2, with two snapshots.
func (s *joining) whole() {
	s.t.Helper()
	v := lhVolume("v", "attached", "n1")
	v.CreationTimestamp = metav1.Unix(1e9, 0)
	v.Spec.Size, v.Status.ActualSize, v.Status.KubernetesStatus.PVStatus = 10<<30, 3<<30, "Bound"
	r := lhReplica("v-r-1", "v", "n1", "running")
	r.Status.OwnerID = "n1"
	list[storage.VolumePart](s, s.volumes, v)
	list[storage.EnginePart](s, s.engines, lhEngine("v-e-0", "v", "n1", "running", "v-r-1", "RW", "v-r-2", "RW"))
	list[storage.ReplicaPart](s, s.replicas, r, lhReplica("v-r-2", "v", "n2", "running"))
	list[storage.SnapshotPart](s, s.snapshots, lhSnapshot("s1", "v", 1<<20), lhSnapshot("s2", "v", 2<<20), lhSnapshot("v-volume-head", "v", 1<<40), lhSnapshot("s3", "gone", 4<<20))
}

func lhSnapshot(name, volume string, size int64) *longhornv1.Snapshot {
	s := &longhornv1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.Volume, s.Status.Size = volume, size
	return s
}

func (s *joining) volume(name string) types.Volume {
	v, _ := s.table.Get(name)
	return v
}

func TestAVolumeIsJoinedFromAllItsParts(t *testing.T) {
	s := newJoining(t)
	s.whole()
	healthy := time.Date(2026, 5, 3, 6, 0, 0, 0, time.UTC)
	want := map[string]types.Volume{"v": {
		UID: "uid-v", Name: "v", Claim: "eve-kube-app/v-pvc-0", State: "attached", Robustness: "healthy", Wanted: 2, Engine: "n1", Running: true,
		Replicas: []types.Replica{
			{Name: "v-r-1", Node: "n1", Running: true, Mode: "RW", HealthyAt: healthy, State: "running", Started: true},
			{Name: "v-r-2", Node: "n2", Running: true, Mode: "RW", HealthyAt: healthy, State: "running"},
		},
		Created: time.Unix(1e9, 0), Size: 10 << 30, Used: 3 << 30, Snapshots: 3 << 20, ClaimState: "Bound",
	}}
	if diff := cmp.Diff(want, s.table.All()); diff != "" {
		t.Error(diff)
	}
	released := lhVolume("v", "detached", "")
	released.Status.KubernetesStatus.LastPVCRefAt = "2026-05-03T06:00:00Z"
	_ = s.volumes.Update(as[storage.VolumePart](t, released))
	if v := s.volume("v"); v.Claim != "" || v.LastClaim != "eve-kube-app/v-pvc-0" || v.State != "detached" {
		t.Errorf("without its claim it is %+v", v)
	}
}

func TestAVolumeFollowsEachOfItsParts(t *testing.T) {
	s := newJoining(t)
	s.whole()
	rebuilding := lhEngine("v-e-0", "v", "n1", "running", "v-r-1", "RW", "v-r-2", "WO")
	rebuilding.Status.RebuildStatus = map[string]*longhornv1.RebuildStatus{"tcp://10.1.0.1:10000": {IsRebuilding: true, Progress: 41}}
	_ = s.engines.Update(as[storage.EnginePart](t, rebuilding))
	if r := s.volume("v").Replicas[1]; r.Mode != "WO" || r.Percent != 41 {
		t.Errorf("the rebuild is seen as %+v", r)
	}
	_ = s.snapshots.Add(as[storage.SnapshotPart](t, lhSnapshot("s4", "v", 8<<20)))
	_ = s.snapshots.Delete(as[storage.SnapshotPart](t, lhSnapshot("s1", "v", 0)))
	if got := s.volume("v").Snapshots; got != 10<<20 {
		t.Errorf("snapshots take %d bytes", got)
	}
	bell := make(chan struct{}, 1)
	s.table.Notify(bell)
	_ = s.engines.Update(as[storage.EnginePart](t, rebuilding))
	_ = s.snapshots.Update(as[storage.SnapshotPart](t, lhSnapshot("s4", "v", 8<<20)))
	_ = s.snapshots.Update(as[storage.SnapshotPart](t, lhSnapshot("s9", "none", 8<<20)))
	select {
	case <-bell:
		t.Error("what is not new rings")
	default:
	}
	_ = s.volumes.Add(as[storage.VolumePart](t, lhVolume("w", "detached", "")))
	_ = s.snapshots.Update(as[storage.SnapshotPart](t, lhSnapshot("s4", "w", 8<<20))) // it never is another's, but one may say so
	if v, w := s.volume("v"), s.volume("w"); v.Snapshots != 2<<20 || w.Snapshots != 8<<20 {
		t.Errorf("snapshots take %d and %d bytes", v.Snapshots, w.Snapshots)
	}
	_ = s.volumes.Delete(as[storage.VolumePart](t, lhVolume("v", "", "")))
	if got := kubetest.Keys(s.table.All()); !slices.Equal(got, []string{"w"}) {
		t.Errorf("after one is gone there are %v", got)
	}
}

func TestNoVolumeIsShownBeforeItsPartsAreListed(t *testing.T) {
	s := newJoining(t)
	_ = s.table.Publish("old", types.Volume{Name: "old"}) // as another connection left it
	v := lhVolume("v", "detached", "")
	list[storage.VolumePart](s, s.volumes, v)
	list[storage.SnapshotPart](s, s.snapshots)
	list[storage.EnginePart](s, s.engines)
	_ = s.volumes.Update(as[storage.VolumePart](t, v))
	if got := kubetest.Keys(s.table.All()); !slices.Equal(got, []string{"old"}) {
		t.Errorf("without a list of replicas there are %v", got)
	}
	list[storage.ReplicaPart](s, s.replicas)
	if got := kubetest.Keys(s.table.All()); !slices.Equal(got, []string{"v"}) {
		t.Errorf("after all lists there are %v", got)
	}
	other := newJoining(t)
	other.whole()
	without := newJoining(t)
	list[storage.VolumePart](without, without.volumes, lhVolume("v", "detached", ""))
	list[storage.EnginePart](without, without.engines)
	list[storage.ReplicaPart](without, without.replicas)
	if v, ok := without.table.Get("v"); !ok || v.Snapshots != 0 {
		t.Errorf("without a list of snapshots it is %+v", v)
	}
}

func TestPartsThatContradictOneAnotherLeaveTheRowAndAreDoubtedWhenThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJoining(t)
		s.whole()
		before := s.volume("v")
		_ = s.replicas.Delete(as[storage.ReplicaPart](t, lhReplica("v-r-2", "v", "n2", "running")))
		time.Sleep(storage.Lasting - time.Second)
		synctest.Wait()
		if diff := cmp.Diff(before, s.volume("v")); diff != "" || len(s.doubts) > 0 {
			t.Errorf("for a moment it is doubted %q and differs: %s", s.doubts, diff)
		}
		_ = s.replicas.Add(as[storage.ReplicaPart](t, lhReplica("v-r-2", "v", "n2", "running")))
		time.Sleep(2 * storage.Lasting)
		synctest.Wait()
		if len(s.doubts) > 0 {
			t.Errorf("what was short is doubted: %q", s.doubts)
		}
		odd := lhReplica("v-r-2", "v", "n2", "running")
		odd.Spec.FailedAt = "yesterday"
		_ = s.replicas.Update(as[storage.ReplicaPart](t, odd))
		_ = s.volumes.Add(as[storage.VolumePart](t, lhVolume("w", "attached", "n1")))
		time.Sleep(storage.Lasting + time.Second)
		synctest.Wait()
		if diff := cmp.Diff(before, s.volume("v")); diff != "" {
			t.Error(diff)
		}
		if _, ok := s.table.Get("w"); ok || len(s.doubts) != 2 || !strings.Contains(s.doubts[1], `volume v of Longhorn: replica v-r-2`) || !strings.Contains(s.doubts[1], "1 more") {
			t.Errorf("it is doubted %q", s.doubts)
		}
		_ = s.volumes.Delete(as[storage.VolumePart](t, lhVolume("w", "", "")))
		_ = s.replicas.Update(as[storage.ReplicaPart](t, lhReplica("v-r-2", "v", "n2", "running")))
		if last := s.doubts[len(s.doubts)-1]; last != "" {
			t.Errorf("it is still doubted: %q", last)
		}
	})
}

func TestListsOfPartsThatLieChangeNothing(t *testing.T) {
	s := newJoining(t)
	s.whole()
	before := s.table.All()
	for _, store := range []access.Store{s.volumes, s.engines, s.replicas, s.snapshots} {
		if store.Replace(nil, "") == nil || store.Replace([]any{&storage.NodePart{}}, "8") == nil || store.Update(&storage.NodePart{}) == nil || store.Delete("") == nil {
			t.Errorf("%T takes what is none of its", store)
		}
	}
	if s.volumes.Replace([]any{&storage.VolumePart{}}, "8") == nil || s.replicas.Replace([]any{&storage.ReplicaPart{}}, "8") == nil || s.snapshots.Update(&storage.SnapshotPart{}) == nil {
		t.Error("a nameless object is taken")
	}
	if diff := cmp.Diff(before, s.table.All()); diff != "" {
		t.Error(diff)
	}
}

func TestTwoThousandVolumesTakeLittleMemory(t *testing.T) {
	s := newJoining(t)
	before := kubetest.Heap()
	fillJoin(s, 2000)
	kept := kubetest.Heap() - before
	t.Logf("2,000 volumes, 6,000 replicas, 10,000 snapshots: %d kB", kept>>10)
	if n := len(s.table.All()); n != 2000 || kept > 9<<20 {
		t.Errorf("%d volumes in %d kB", n, kept>>10)
	}
}

// fillJoin lists n volumes of three replicas and five snapshots each.
func fillJoin(s *joining, n int) {
	var volumes, engines, replicas, snapshots []any
	for i := range n {
		name := fmt.Sprintf("pvc-%08d-1111-4222-8333-444455556666", i)
		var modes []string
		for j := range 3 {
			r := lhReplica(fmt.Sprintf("%s-r-%08d", name, j), name, fmt.Sprint("node-", j+1), "running")
			r.Status.OwnerID, r.Status.InstanceManagerName = r.Spec.NodeID, "instance-manager-1"
			replicas, modes = append(replicas, r), append(modes, r.Name, "RW")
		}
		for range 5 {
			snapshots = append(snapshots, lhSnapshot(fmt.Sprintf("snapshot-%08d-1111-4222-8333-444455556666", len(snapshots)), name, 1<<20))
		}
		volumes, engines = append(volumes, lhVolume(name, "attached", "node-1")), append(engines, lhEngine(name+"-e-0", name, "node-1", "running", modes...))
	}
	list[storage.VolumePart](s, s.volumes, volumes...)
	list[storage.EnginePart](s, s.engines, engines...)
	list[storage.ReplicaPart](s, s.replicas, replicas...)
	list[storage.SnapshotPart](s, s.snapshots, snapshots...)
}
