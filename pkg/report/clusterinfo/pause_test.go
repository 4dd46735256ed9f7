package clusterinfo

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// sample is a report with one of each.
func sample(change ...func(*types.KubeClusterInfo)) types.KubeClusterInfo {
	r := types.KubeClusterInfo{
		Nodes:   []types.KubeNodeInfo{{Name: "n1", Status: types.KubeNodeReady, Schedulable: true, CreationTime: then, LastTransitionTime: then}},
		AppPods: []types.KubePodInfo{{Name: "p", Status: types.KubePodRunning, NodeName: "n1"}},
		AppVMIs: []types.KubeVMIInfo{{Name: "v", Status: types.KubeVMIRunning, IsReady: true, NodeName: "n1"}},
		Storage: types.KubeStorageInfo{Health: types.ServiceStatusHealthy, TransitionTime: then, Volumes: []types.KubeVolumeInfo{{
			Name: "x", State: types.StorageVolumeStateAttached, Robustness: types.StorageVolumeRobustnessHealthy, AllocatedBytes: 1,
			Replicas: []types.KubeVolumeReplicaInfo{{Name: "x-r-1", OwnerNode: "n1", Status: types.StorageVolumeReplicaStatusOnline, RebuildProgressPercentage: 100}},
		}}},
		PodNsInfo: []types.KubePodNameSpaceInfo{{Name: "default", PodCount: 1}},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// Of nodes and pods zedagent does not read every field: a new one is to
// be named here if it is not read.
func TestEveryFieldThatZedagentReadsIsReported(t *testing.T) {
	notRead := map[string]bool{
		"KubeNodeInfo.IsMaster": true, "KubeNodeInfo.UsesEtcd": true, "KubeNodeInfo.ExternalIP": true, "KubeNodeInfo.Conditions": true,
		"KubePodInfo.Reason": true,
	}
	fieldsReported(t, notRead, nodeDiffers)
	fieldsReported(t, notRead, podDiffers)
	fieldsReported(t, notRead, vmiDiffers)
	fieldsReported(t, notRead, volumeDiffers)
	fieldsReported(t, notRead, replicaDiffers)
}

// fieldsReported fails the test where a change of a field makes no difference, but for
// those that are not read.
func fieldsReported[T any](t *testing.T, notRead map[string]bool, differs func(a, b T) difference) {
	t.Helper()
	for field := range reflect.TypeFor[T]().Fields() {
		var changed T
		v := reflect.ValueOf(&changed).Elem().FieldByIndex(field.Index)
		switch v.Kind() {
		case reflect.String:
			v.SetString("other")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Struct:
			v.Set(reflect.ValueOf(then).Convert(v.Type()))
		default:
			if v.CanUint() {
				v.SetUint(1)
			} else {
				v.SetInt(1)
			}
		}
		var zero T
		name := reflect.TypeFor[T]().Name() + "." + field.Name
		if got := differs(zero, changed) != none; got == notRead[name] {
			t.Errorf("a change of %s is reported: %t", name, got)
		}
	}
}

func TestWhatAChangeOfTheReportIsWorth(t *testing.T) {
	const never = -1
	type report = types.KubeClusterInfo
	bytes := func(r *report) { r.Storage.Volumes[0].AllocatedBytes = 2 }
	restarted := func(r *report) { r.AppPods[0].RestartCount, r.AppPods[0].RestartTimestamp = 1, types.TextTime(then) }
	reason := func(r *report) { r.AppPods[0].Reason = "CrashLoopBackOff" }
	for _, tc := range []struct {
		what   string
		want   time.Duration
		change []func(*report)
	}{
		{"nothing", never, nil},
		{"namespaces", never, []func(*report){func(r *report) { r.PodNsInfo = nil }}},
		{"conditions of a node", never, []func(*report){func(r *report) {
			r.Nodes[0].Conditions = []types.KubeNodeCondition{{Type: types.KubeNodeConditionDiskPressure, Set: true}}
		}}},
		{"role, etcd and outer address of a node", never, []func(*report){func(r *report) {
			r.Nodes[0].IsMaster, r.Nodes[0].UsesEtcd, r.Nodes[0].ExternalIP = true, true, "192.0.2.1"
		}}},
		{"reason of a pod", never, []func(*report){reason}},
		{"bytes", time.Minute, []func(*report){bytes}},
		{"bytes and a reason", time.Minute, []func(*report){bytes, reason}},
		{"restart of a pod", 10 * time.Second, []func(*report){restarted}},
		{"restart and bytes", 10 * time.Second, []func(*report){restarted, bytes}},
		{"address of a pod", 10 * time.Second, []func(*report){func(r *report) { r.AppPods[0].PodIP = "10.42.0.9" }}},
		{"since when a node is ready", 10 * time.Second, []func(*report){func(r *report) { r.Nodes[0].LastTransitionTime = then.Add(1) }}},
		{"since when a machine runs", 10 * time.Second, []func(*report){func(r *report) { r.AppVMIs[0].LastTransitionTime = then }}},
		{"since when storage is healthy", 10 * time.Second, []func(*report){func(r *report) { r.Storage.TransitionTime = then.Add(1) }}},
		{"size of a volume", 10 * time.Second, []func(*report){func(r *report) { r.Storage.Volumes[0].ProvisionedBytes = 2 }}},
		{"progress of a replica", 10 * time.Second, []func(*report){func(r *report) { r.Storage.Volumes[0].Replicas[0].RebuildProgressPercentage = 40 }}},
		{"a node goes", 0, []func(*report){func(r *report) { r.Nodes = nil }}},
		{"a node is lost", 0, []func(*report){func(r *report) { r.Nodes[0].Status = types.KubeNodeNotReachable }}},
		{"a node is cordoned", 0, []func(*report){func(r *report) { r.Nodes[0].Schedulable = false }}},
		{"a node leaves", 0, []func(*report){func(r *report) { r.Nodes[0].Admission = types.KubeNodeAdmissionLeaving }}},
		{"a node is updated", 0, []func(*report){func(r *report) { r.Nodes[0].KubeletVersion = "v2" }}},
		{"a pod comes", 0, []func(*report){func(r *report) { r.AppPods = append(r.AppPods, types.KubePodInfo{Name: "q"}) }}},
		{"another pod in its place", 0, []func(*report){func(r *report) { r.AppPods[0].Name = "q" }}},
		{"a pod fails and restarts", 0, []func(*report){restarted, func(r *report) { r.AppPods[0].Status = types.KubePodFailed }}},
		{"a pod moves", 0, []func(*report){func(r *report) { r.AppPods[0].NodeName = "n2" }}},
		{"a machine is not ready", 0, []func(*report){func(r *report) { r.AppVMIs[0].IsReady = false }}},
		{"storage fails", 0, []func(*report){func(r *report) { r.Storage.Health = types.ServiceStatusFailed }}},
		{"a volume is degraded", 0, []func(*report){func(r *report) { r.Storage.Volumes[0].Robustness = types.StorageVolumeRobustnessDegraded }}},
		{"a replica fails", 0, []func(*report){func(r *report) { r.Storage.Volumes[0].Replicas[0].Status = types.StorageVolumeReplicaStatusFailed }}},
		{"a replica goes", 0, []func(*report){func(r *report) { r.Storage.Volumes[0].Replicas = nil }}},
	} {
		if got := Pause(sample(), sample(tc.change...)); got != tc.want {
			t.Errorf("%s: told after %s, want %s", tc.what, got, tc.want)
		}
	}
}

// guestsWrite is ten minutes of a cluster with ten volumes that are written,
// whose sizes Longhorn measures every 5 s, each at its own moment, and a pod that
// comes and goes in another namespace every minute. It returns how often
// zedagent is told, and how old the sizes in the file were at most.
func guestsWrite(t *testing.T, pause pubsub.Pause[types.KubeClusterInfo], states func(*story)) (told uint64, oldest time.Duration) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	tell(t, func(s *story) {
		bus := pubsub.NewBus(s.TempDir(), log)
		pub := pubsub.NewPacedPublication(bus, "zedkube", pause, pubsub.FilesOnly())
		if err := bus.Open(); err != nil {
			s.Fatal(err)
		}
		s.published, s.bus = pub, bus
		leads(s)
	}, func(s *story) {
		write := func(tick int) {
			v := fmt.Sprintf("pvc-%d", tick%10)
			_ = s.claims.Publish(v, types.Claim{Name: "disk-" + v, Volume: v, Provisioner: provisioner, Phase: "Bound"})
			_ = s.volumes.Publish(v, types.Volume{Name: v, State: "attached", Robustness: "healthy", Used: int64(tick), Running: true})
			_ = s.counts.Publish("jobs", types.KubePodNameSpaceInfo{Name: "jobs", PodCount: uint32(tick / 120 % 2)})
		}
		for tick := range 10 {
			write(tick)
		}
		time.Sleep(10 * time.Second)
		before := s.bus.Stats()[0].Sent
		for tick := range 1200 {
			write(tick)
			if tick == 600 && states != nil {
				states(s)
			}
			time.Sleep(time.Second / 2)
			oldest = max(oldest, time.Duration(tick-newest(s.published))*time.Second/2)
		}
		told = s.bus.Stats()[0].Sent - before
	})
	return told, oldest
}

// newest is the tick of the newest size in a report.
func newest(report pubsub.Reader[types.KubeClusterInfo]) (tick int) {
	r, _ := report.Get(types.Global)
	for _, v := range r.Storage.Volumes {
		tick = max(tick, int(v.AllocatedBytes))
	}
	return tick
}

func TestWritingGuestsCostTheControllerOneReportAMinute(t *testing.T) {
	always, _ := guestsWrite(t, func(_, _ types.KubeClusterInfo) time.Duration { return 0 }, nil)
	told, oldest := guestsWrite(t, Pause, nil)
	t.Logf("10 volumes, 10 minutes: told %d times, with every change told %d times; the file is %s old at most", told, always, oldest)
	if told > 11 {
		t.Errorf("zedagent is told %d times in ten minutes", told)
	}
	if always < 300 {
		t.Errorf("the guests changed the report %d times only", always)
	}
	if oldest > time.Second {
		t.Errorf("the file was %s old", oldest)
	}
}

func TestAStateIsToldWhileGuestsWrite(t *testing.T) {
	guestsWrite(t, Pause, func(s *story) {
		time.Sleep(time.Second)
		before := s.bus.Stats()[0].Sent
		s.pod("p")
		time.Sleep(time.Second)
		if n := s.bus.Stats()[0].Sent - before; n != 1 {
			s.Errorf("a pod that came was told %d times within a second", n)
		}
	})
}

// A new leader reports with the last of its lists: not one look later, and not
// before what has not come yet would be missing.
func TestTheFirstReportComesWithTheLastList(t *testing.T) {
	tell(t, func(s *story) {}, func(s *story) {
		s.pod("a")
		began := time.Now()
		_ = s.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: true})
		names := slices.Sorted(maps.Keys(all()))
		for i, name := range names {
			s.expect(-1, "before "+name+" is listed")
			s.sees(name, false)
			time.Sleep(10 * time.Millisecond)
			s.expect(-1, "while "+name+" is not listed")
			if i == len(names)/2 {
				_ = s.nodes.Publish("n1", types.Node{Name: "n1", Ready: types.ConditionTrue})
			}
			s.sees(name, true)
		}
		s.expect(1, "everything is listed")
		if passed := time.Since(began); passed > time.Duration(len(names))*10*time.Millisecond {
			t.Errorf("the report came after %s", passed)
		}
		r, _ := s.report.Get(types.Global)
		if len(r.Nodes) != 1 {
			t.Errorf("it names %d nodes", len(r.Nodes))
		}
	})
}

// Volumes of which Longhorn's objects contradict one another have no row: they are
// unknown, not gone, and the others are as they are.
func TestAVolumeInDoubtDelaysNoReportAndIsNotMissing(t *testing.T) {
	tell(t, func(s *story) {
		for i := range 10 {
			v := fmt.Sprintf("pvc-%d", i)
			_ = s.claims.Publish("disk-"+v, types.Claim{Name: "disk-" + v, Volume: v, Provisioner: provisioner, Phase: "Bound"})
			if i > 0 {
				_ = s.volumes.Publish(v, types.Volume{Name: v, State: "attached", Robustness: "healthy", Running: true})
			}
		}
		leads(s)
		_ = s.tables.Publish(types.TableLonghornVolumes, types.TableStatus{InDoubt: true, Since: time.Now(), Why: "volume pvc-0 is odd"})
	}, func(s *story) {
		states := func() (known int) {
			s.expect(0, "at once")
			r, _ := s.report.Get(types.Global)
			if len(r.Storage.Volumes) != 10 {
				t.Errorf("it names %d of 10 volumes", len(r.Storage.Volumes))
			}
			for _, v := range r.Storage.Volumes {
				known += btoi(v.State == types.StorageVolumeStateAttached)
			}
			return known
		}
		if n := states(); n != 9 {
			t.Errorf("%d of 9 volumes are known", n)
		}
		said := func() (storage types.ReportSection) {
			for _, section := range s.told().Sections {
				if section.Name == types.SectionStorage {
					storage = section
				}
			}
			return storage
		}
		if storage := said(); !storage.Known || storage.StaleSince.IsZero() || storage.Why != "volume pvc-0 is odd" {
			t.Errorf("of volumes it says %+v", storage)
		}
		time.Sleep(time.Minute + time.Second)
		_ = s.volumes.Publish("pvc-0", types.Volume{Name: "pvc-0", State: "attached", Robustness: "healthy", Running: true})
		s.sees(types.TableLonghornVolumes, true)
		time.Sleep(minPause)
		if n := states(); n != 10 {
			t.Errorf("%d of 10 volumes are known once none is odd", n)
		}
		if storage := said(); !storage.Known || !storage.StaleSince.IsZero() {
			t.Errorf("of volumes it says %+v", storage)
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
