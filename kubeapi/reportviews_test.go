package kubeapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// withLonghorn has a claim, a volume of it, and what Longhorn runs.
func withLonghorn() *fakeAPI {
	api := someCluster()
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "v-pvc-0", Namespace: access.Namespace, UID: "u1", CreationTimestamp: metav1.Unix(1e9, 0),
		Annotations: map[string]string{storage.ProvisionerAnnotation: "driver.longhorn.io"},
	}}
	claim.Spec.VolumeName, claim.Status.Phase = "v", corev1.ClaimBound
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	waiting := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "w-pvc-0", Namespace: access.Namespace}}
	waiting.Spec.Resources.Requests, waiting.Status.Phase = claim.Spec.Resources.Requests, corev1.ClaimPending
	daemons := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "longhorn-manager", Namespace: types.NamespaceLonghorn}}
	daemons.Status.DesiredNumberScheduled, daemons.Status.NumberReady = 3, 2
	api.storage = map[string][]any{
		"persistentvolumeclaims": {claim, waiting}, "daemonsets": {daemons}, "nodes": {lhNode("n1")},
		"volumes":   {lhVolume("v", "attached", "n1")},
		"engines":   {lhEngine("v-e-0", "v", "n1", "running", "v-r-1", "RW")},
		"replicas":  {lhReplica("v-r-1", "v", "n1", "running")},
		"snapshots": {lhSnapshot("s1", "v", 1<<20)},
	}
	return api
}

func lhNode(name string) *longhornv1.Node {
	n := &longhornv1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u1", ResourceVersion: "5"}}
	n.Spec.AllowScheduling = true
	n.Spec.Disks = map[string]longhornv1.DiskSpec{"d2": {Path: "/b"}, "d1": {Path: "/a", AllowScheduling: true, StorageReserved: 2 << 30}}
	yes := func(kind string) longhornv1.Condition {
		return longhornv1.Condition{Type: kind, Status: "True", LastProbeTime: "now"}
	}
	n.Status.Conditions = []longhornv1.Condition{yes("Ready"), {Type: "Schedulable", Status: "False"}}
	n.Status.DiskStatus = map[string]*longhornv1.DiskStatus{"d1": {
		Conditions: []longhornv1.Condition{yes("Ready"), yes("Schedulable")}, StorageAvailable: 4 << 30, StorageMaximum: 8 << 30,
	}}
	return n
}

func TestTheLeaderSeesWhatAReportIsMadeOfAndAFollowerNoneOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := withLonghorn()
		_ = tb.volumes.Publish("old", types.Volume{Name: "old"}) // as an earlier connection left it
		_ = tb.tables.Publish(types.TableLonghornEngines, types.TableStatus{Complete: true})
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		none := func(when string) {
			t.Helper()
			time.Sleep(time.Second)
			for _, name := range reportTables() {
				if s, ok := tb.tables.Get(name); ok || tb.rows() > 0 {
					t.Errorf("%s it has %d rows, and %s stands %+v", when, tb.rows(), name, s)
				}
			}
		}
		none("a follower")
		before := api.count()
		tb.lead(true)
		time.Sleep(time.Second)
		t.Logf("%d requests to begin", api.count()-before)
		for _, name := range reportTables() {
			if s := tb.stands(t, name); !s.Complete || s.Absent {
				t.Errorf("%s stands %+v", name, s)
			}
		}
		check(t, "volumes", kubetest.Keys(tb.volumes.All()), []string{"v"})
		if v, _ := tb.volumes.Get("v"); v.Snapshots != 1<<20 || v.HealthyReplicas() != 1 {
			t.Errorf("volume is %+v", v)
		}
		if diff := cmp.Diff(map[string]types.Claim{
			"v-pvc-0": {Name: "v-pvc-0", Volume: "v", Phase: types.ClaimBound, Bytes: 10 << 30, Created: time.Unix(1e9, 0), Provisioner: "driver.longhorn.io"},
			"w-pvc-0": {Name: "w-pvc-0", Phase: types.ClaimPending, Bytes: 5 << 30},
		}, tb.claims.All()); diff != "" {
			t.Errorf("claims: %s", diff)
		}
		if diff := cmp.Diff(map[string]types.DaemonSet{"longhorn-manager": {Name: "longhorn-manager", Wanted: 3, Ready: 2}}, tb.daemons.All()); diff != "" {
			t.Errorf("daemon sets: %s", diff)
		}
		if diff := cmp.Diff(map[string]types.LonghornNode{"n1": {
			Name: "n1", UID: "u1", Ready: types.ConditionTrue, Allowed: true, Disks: []types.LonghornDisk{
				{Name: "d1", Allowed: true, Reserved: 2 << 30, Maximum: 8 << 30, Ready: types.ConditionTrue, Schedulable: types.ConditionTrue},
				{Name: "d2"},
			},
		}}, tb.lhNodes.All()); diff != "" {
			t.Errorf("nodes of Longhorn: %s", diff)
		}
		tb.lead(false)
		none("a former leader")
	})
}

func reportTables() []string {
	return []string{
		types.TablePodCounts, types.TableClaims, types.TableLonghornVolumes, types.TableLonghornEngines, types.TableLonghornReplicas,
		types.TableLonghornSnapshots, types.TableLonghornNodes, types.TableLonghornDaemons,
	}
}

func TestAListThatFailsLeavesAllElseOfAReportTrue(t *testing.T) {
	forbidden := when(always, 403, metav1.StatusReasonForbidden)(nil)
	lies := map[string]http.HandlerFunc{
		"forbidden":    forbidden,
		"another kind": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, groups("storage.k8s.io")) },
		"no version": func(w http.ResponseWriter, r *http.Request) {
			reply(w, 200, jsonObject{"kind": "SnapshotList", "apiVersion": "longhorn.io/v1beta2", "items": []any{}})
		},
		"a page": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, "<html>") },
	}
	for name, lie := range lies {
		synctest.Test(t, func(t *testing.T) {
			c, tb := newTestClient(t)
			c.Log = kubetest.Quiet()
			tb.lead(true)
			var lies atomic.Pointer[http.HandlerFunc]
			lies.Store(&lie)
			api := withLonghorn()
			end := startInMemory(t, c, &kubetest.InMemory{Handler: forPath("/longhorn-system/snapshots", &lies, api)})
			defer end()
			time.Sleep(10 * time.Minute)
			for _, table := range reportTables() {
				s := tb.stands(t, table)
				if s.Complete != (table != types.TableLonghornSnapshots) || s.Complete == (s.Why != "") {
					t.Errorf("%s: %s stands %+v", name, table, s)
				}
			}
			if v, ok := tb.volumes.Get("v"); !ok || v.Snapshots != 0 || !v.Running || tb.pods() != 4 {
				t.Errorf("%s: the volume is %+v, %d pods", name, v, tb.pods())
			}
			lies.Store(nil)
			time.Sleep(2 * time.Minute)
			if v, _ := tb.volumes.Get("v"); v.Snapshots != 1<<20 || !tb.stands(t, types.TableLonghornSnapshots).Complete {
				t.Errorf("%s: after that the volume is %+v", name, v)
			}
		})
	}
}

func TestLonghornThatIsInstalledLaterAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		tb.lead(true)
		api := someCluster()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(3 * time.Minute)
		for _, name := range reportTables() {
			core := name == types.TablePodCounts || name == types.TableClaims || name == types.TableLonghornDaemons
			if s := tb.stands(t, name); !s.Complete || s.Absent == core || s.Why != "" {
				t.Errorf("without Longhorn %s stands %+v", name, s)
			}
		}
		if n := len(tb.volumes.All()) + len(tb.lhNodes.All()); n > 0 {
			t.Errorf("without Longhorn there are %d rows", n)
		}
		api.set(func() { api.storage = withLonghorn().storage })
		time.Sleep(65 * time.Second)
		check(t, "volumes once it is installed", kubetest.Keys(tb.volumes.All()), []string{"v"})
		if s := tb.stands(t, types.TableLonghornVolumes); !s.Complete || s.Absent {
			t.Errorf("once it is installed the table stands %+v", s)
		}
	})
}

// A part that changes comes by its own watch.
func TestAWatchOfAPartChangesTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		tb.lead(true)
		news := make(chan any)
		api := withLonghorn()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !isWatch(r) || r.URL.Query().Get("sendInitialEvents") == "true" || !strings.HasSuffix(r.URL.Path, "/engines") {
				api.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			for {
				select {
				case o := <-news:
					reply(w, 200, jsonObject{"type": "MODIFIED", "object": o})
				case <-r.Context().Done():
					return
				}
			}
		})})
		defer end()
		time.Sleep(time.Second)
		e := lhEngine("v-e-0", "v", "n1", "running", "v-r-1", "WO")
		e.TypeMeta = metav1.TypeMeta{Kind: "Engine", APIVersion: "longhorn.io/v1beta2"}
		e.ResourceVersion = "8"
		e.Status.RebuildStatus = map[string]*longhornv1.RebuildStatus{"tcp://10.1.0.1:10000": {IsRebuilding: true, Progress: 41}}
		news <- e
		time.Sleep(time.Millisecond)
		if v, _ := tb.volumes.Get("v"); len(v.Replicas) != 1 || v.Replicas[0].Percent != 41 {
			t.Errorf("volume is %+v", v)
		}
	})
}
