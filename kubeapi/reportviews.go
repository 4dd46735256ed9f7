package kubeapi

import (
	"time"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubevirt"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/types"
)

// reportsGap is how far apart the tries for the tables of a report come to be.
// They have a back-off of their own: one that cannot be had for long is not to hold
// up those that a drain or an application waits for.
const reportsGap = 30 * time.Second

// reports keeps the tables that only the node needs that reports for the
// cluster.
func (s *viewSet) reports(longhorn *listwatch.Group) {
	kube, client := s.conn.Kube, access.Kept[storage.Clients](s.conn)
	keep := func(name string, lw *cache.ListWatch, rows access.Store) { s.keep(s.reported, name, lw, rows) }
	if err := s.appPods.begin(s.PodCounts); err != nil {
		s.Log.WithError(err).Error("pods of the applications cannot be counted")
	}
	s.stops = append(s.stops, s.appPods.end)
	keep(types.TablePodCounts, countedPods(kube.CoreV1().Pods(metav1.NamespaceAll)), countedRows(s.PodCounts, access.Namespace))
	keep(types.TableClaims, listwatch.ListWatch(kube.CoreV1().PersistentVolumeClaims(access.Namespace), ""),
		access.RowsOf(s.Claims, storage.ClaimRow, access.Name))
	keep(types.TableLonghornDaemons, listwatch.ListWatch(kube.AppsV1().DaemonSets(access.LonghornNamespace), ""),
		access.RowsOf(s.Daemons, storage.DaemonOf, access.Name))
	keep(types.TableLonghornNodes, ofLonghorn(longhorn, client.Nodes, ""), longhornNodeRows(s.LonghornNodes))

	join := storage.NewVolumeJoin(s.Volumes)
	s.stops = append(s.stops, join.Stop)
	volumes := &listwatch.Table{Name: types.TableLonghornVolumes, Backoff: s.reported, Status: s.statusOf(types.TableLonghornVolumes)}
	join.Doubts = volumes.Status.Doubts
	s.start(volumes, ofLonghorn(longhorn, client.Volumes, ""), storage.VolumeParts(join))
	keep(types.TableLonghornEngines, ofLonghorn(longhorn, client.Engines, ""), storage.EngineParts(join))
	keep(types.TableLonghornReplicas, ofLonghorn(longhorn, client.Replicas, ""), storage.ReplicaParts(join))
	keep(types.TableLonghornSnapshots, ofLonghorn(longhorn, client.Snapshots, ""), storage.SnapshotParts(join))
}

// emptyReports drops what an earlier connection may have left while this node led.
func (r *run) emptyReports() {
	empty(r, types.TableDrainPolicy, r.Settings)
	empty(r, types.TableSnapshotJob, r.SnapshotJobs)
	empty(r, types.TablePodCounts, r.PodCounts)
	empty(r, types.TableClaims, r.Claims)
	empty(r, types.TableLonghornNodes, r.LonghornNodes)
	empty(r, types.TableLonghornDaemons, r.Daemons)
	empty(r, types.TableLonghornVolumes, r.Volumes)
	for _, parts := range []string{types.TableLonghornEngines, types.TableLonghornReplicas, types.TableLonghornSnapshots} {
		r.statusOf(parts).End(false)
	}
}

// appsGap is how far apart the tries for the tables of applications come to be.
// They have a back-off of their own, as KubeVirt may fail by itself for long and the
// other tables are not to wait for it; when those are had again, so are these.
const appsGap = time.Minute

// applications keeps the tables of virtual machines and of replica sets.
func (s *viewSet) applications() {
	virtual := listwatch.NewGroup(s.conn, kubevirtv1.SchemeGroupVersion)
	machines := listwatch.Optional(virtual, listwatch.ListWatch(s.conn.Virt.VirtualMachineInstances(access.Namespace), ""),
		&kubevirtv1.VirtualMachineInstanceList{}, &kubevirtv1.VirtualMachineInstance{})
	sets := listwatch.Optional(virtual, listwatch.ListWatch(s.conn.Virt.VirtualMachineInstanceReplicaSets(access.Namespace), ""),
		&kubevirtv1.VirtualMachineInstanceReplicaSetList{}, &kubevirtv1.VirtualMachineInstanceReplicaSet{})
	s.keep(s.apps, viewVMIs, machines, access.RowsOf(s.VMIs, kubevirt.VMIOf, access.Name))
	s.keep(s.apps, viewVMISets, sets, setRows(s.Sets, types.KindVMIReplicaSet, kubevirt.VMISetOf))
	s.keep(s.apps, viewSets, listwatch.ListWatch(s.conn.Kube.AppsV1().ReplicaSets(access.Namespace), ""),
		setRows(s.Sets, types.KindReplicaSet, kubevirt.PodSetOf))
}

// setRows fills the part of the table that the sets of one kind have.
func setRows[O metav1.Object](table access.Writer[types.AppSet], kind string, row func(O) types.AppSet) access.Store {
	return access.RowsOf(ofKind{Writer: table, kind: kind}, row, func(o O) string {
		if o.GetName() == "" {
			return ""
		}
		return types.AppSet{Kind: kind, Name: o.GetName()}.Key()
	})
}

// ofKind is the part of a table that one view fills.
type ofKind struct {
	access.Writer[types.AppSet]
	kind string
}

// All implements Reader.
func (k ofKind) All() map[string]types.AppSet {
	all := map[string]types.AppSet{}
	for key, s := range k.Writer.All() {
		if s.Kind == k.kind {
			all[key] = s
		}
	}
	return all
}

// levels keeps the tables of what zedkube keeps in Longhorn for the cluster: each watches
// one object. They share a back-off with that of the own disks, for nothing else is to
// wait for them.
func (s *viewSet) levels(longhorn *listwatch.Group, backoff *listwatch.SharedBackoff) {
	settings := s.conn.Longhorn.Settings(access.LonghornNamespace)
	policy := listwatch.Optional(longhorn, listwatch.ListWatch(settings, byName(types.LonghornDrainPolicy)),
		&longhornv1.SettingList{}, &longhornv1.Setting{})
	jobs := s.conn.Longhorn.RecurringJobs(access.LonghornNamespace)
	job := listwatch.Optional(longhorn, listwatch.ListWatch(jobs, byName(types.SnapshotJobName)),
		&longhornv1.RecurringJobList{}, &longhornv1.RecurringJob{})
	s.keep(backoff, types.TableDrainPolicy, policy, access.RowsOf(s.Settings, storage.SettingOf, access.Name))
	s.keep(backoff, types.TableSnapshotJob, job, access.RowsOf(s.SnapshotJobs, storage.SnapshotJobOf, access.Name))
}

// listDisks is the Node of Longhorn of that name.
func listDisks(conn *access.Connection, longhorn *listwatch.Group, node string) *cache.ListWatch {
	return ofLonghorn(longhorn, access.Kept[storage.Clients](conn).Nodes, byName(node))
}

// ofLonghorn is what the field selector on chooses of a kind of Longhorn's, "" for all;
// none without Longhorn.
func ofLonghorn[S, T any](longhorn *listwatch.Group, api *storage.PartClient[S, T], on string) *cache.ListWatch {
	return listwatch.Optional(longhorn, listwatch.ListWatch(api, on), &storage.PartList[S, T]{}, &storage.Part[S, T]{})
}

func longhornNodeRows(table access.Writer[types.LonghornNode]) access.Store {
	return access.RowsOf(table, storage.LonghornNodeOf, access.Name)
}
