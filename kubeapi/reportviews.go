package kubeapi

import (
	"time"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/gentype"
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
type reports struct {
	*run
	conn     *access.Connection
	longhorn *listwatch.Group
	backoff  *listwatch.SharedBackoff

	begun bool // leads is known
	leads bool
	stops []func()
}

func (r *run) reports(conn *access.Connection, longhorn *listwatch.Group) *reports {
	return &reports{run: r, conn: conn, longhorn: longhorn, backoff: r.reported}
}

// want keeps the tables while this node leads. Where it does not, an earlier
// connection may have left rows.
func (p *reports) want(leads bool) {
	if p.begun && leads == p.leads {
		return
	}
	p.begun, p.leads = true, leads
	p.stop()
	if leads {
		p.begin()
		return
	}
	empty(p.run, types.TablePodCounts, p.PodCounts)
	empty(p.run, types.TableClaims, p.Claims)
	empty(p.run, types.TableLonghornNodes, p.LonghornNodes)
	empty(p.run, types.TableLonghornDaemons, p.Daemons)
	empty(p.run, types.TableLonghornVolumes, p.Volumes)
	for _, parts := range []string{types.TableLonghornEngines, types.TableLonghornReplicas, types.TableLonghornSnapshots} {
		p.statusOf(parts).End(false)
	}
}

func (p *reports) begin() {
	kube, longhorn := p.conn.Kube, access.Kept[storage.Clients](p.conn)
	if err := p.appPods.begin(p.PodCounts); err != nil {
		p.Log.WithError(err).Error("pods of the applications cannot be counted")
	}
	p.stops = append(p.stops, p.appPods.end)
	p.start(types.TablePodCounts, countedPods(kube.CoreV1().Pods(metav1.NamespaceAll)), countedRows(p.PodCounts, access.Namespace))
	p.start(types.TableClaims, listwatch.ListWatch(kube.CoreV1().PersistentVolumeClaims(access.Namespace), ""), access.RowsOf(p.Claims, storage.ClaimRow, access.Name))
	p.start(types.TableLonghornDaemons, listwatch.ListWatch(kube.AppsV1().DaemonSets(access.LonghornNamespace), ""), access.RowsOf(p.Daemons, storage.DaemonOf, access.Name))
	p.start(types.TableLonghornNodes, ofLonghorn(p.longhorn, longhorn.Nodes), access.RowsOf(p.LonghornNodes, storage.LonghornNodeOf, access.Name))

	join := storage.NewVolumeJoin(p.Volumes)
	p.stops = append(p.stops, join.Stop)
	volumes := &listwatch.Table{Name: types.TableLonghornVolumes, Backoff: p.backoff, Status: p.statusOf(types.TableLonghornVolumes)}
	join.Doubts = volumes.Status.Doubts
	p.stops = append(p.stops, p.keep(p.conn, volumes, ofLonghorn(p.longhorn, longhorn.Volumes), storage.VolumeParts(join)))
	p.start(types.TableLonghornEngines, ofLonghorn(p.longhorn, longhorn.Engines), storage.EngineParts(join))
	p.start(types.TableLonghornReplicas, ofLonghorn(p.longhorn, longhorn.Replicas), storage.ReplicaParts(join))
	p.start(types.TableLonghornSnapshots, ofLonghorn(p.longhorn, longhorn.Snapshots), storage.SnapshotParts(join))
}

func (p *reports) start(name string, lw *cache.ListWatch, rows access.Store) {
	p.stops = append(p.stops, p.keep(p.conn, &listwatch.Table{Name: name, Backoff: p.backoff}, lw, rows))
}

// stop returns when none of the views writes any more.
func (p *reports) stop() {
	for _, stop := range p.stops {
		stop()
	}
	p.stops = nil
}

// appsGap is how far apart the tries for the tables of applications come to be.
// They have a back-off of their own, as KubeVirt may fail by itself for long and the
// other tables are not to wait for it; when those are had again, so are these.
const appsGap = time.Minute

// appViews keeps the tables of virtual machines and of replica sets, and
// returns what stops that.
func (r *run) appViews(conn *access.Connection) (stop []func()) {
	virtual := listwatch.NewGroup(conn, kubevirtv1.SchemeGroupVersion)
	start := func(name string, lw *cache.ListWatch, rows access.Store) {
		stop = append(stop, r.keep(conn, &listwatch.Table{Name: name, Holds: r.status.holds, Backoff: r.apps}, lw, rows))
	}
	start(viewVMIs, listwatch.Optional(virtual, listwatch.ListWatch(conn.Virt.VirtualMachineInstances(access.Namespace), ""),
		func(m metav1.ListMeta) runtime.Object { return &kubevirtv1.VirtualMachineInstanceList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &kubevirtv1.VirtualMachineInstance{ObjectMeta: m} }), access.RowsOf(r.VMIs, kubevirt.VMIOf, access.Name))
	start(viewVMISets, listwatch.Optional(virtual, listwatch.ListWatch(conn.Virt.VirtualMachineInstanceReplicaSets(access.Namespace), ""),
		func(m metav1.ListMeta) runtime.Object {
			return &kubevirtv1.VirtualMachineInstanceReplicaSetList{ListMeta: m}
		},
		func(m metav1.ObjectMeta) runtime.Object {
			return &kubevirtv1.VirtualMachineInstanceReplicaSet{ObjectMeta: m}
		}), setRows(r.Sets, types.KindVMIReplicaSet, kubevirt.VMISetOf))
	start(viewSets, listwatch.ListWatch(conn.Kube.AppsV1().ReplicaSets(access.Namespace), ""), setRows(r.Sets, types.KindReplicaSet, kubevirt.PodSetOf))
	return stop
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

// levels keeps the tables of what zedkube keeps in Longhorn: each watches one
// object. They have a back-off of their own, for nothing else is to wait for them.
type levels struct {
	*run
	conn    *access.Connection
	group   *listwatch.Group
	backoff *listwatch.SharedBackoff

	begun       bool // own and leads are known
	own         string
	leads       bool
	stopDisks   func()
	stopCluster func()
}

func (r *run) levels(conn *access.Connection, longhorn *listwatch.Group) *levels {
	return &levels{run: r, conn: conn, group: longhorn, backoff: listwatch.NewSharedBackoff(appsGap), stopDisks: func() {}, stopCluster: func() {}}
}

// want keeps the own disks once the own Node is known by its name, and the rest
// while this node leads.
func (l *levels) want(own string, leads bool) {
	if !l.begun || own != l.own {
		l.stopDisks()
		l.own, l.stopDisks = own, func() {}
		if own == "" { // no view keeps it, but an earlier connection may have left a row
			empty(l.run, types.TableLonghornNode, l.OwnDisks)
		} else {
			l.stopDisks = l.start(types.TableLonghornNode, chosenOfLonghorn(l.group, access.Kept[storage.Clients](l.conn).Nodes, byName(own)), access.RowsOf(l.OwnDisks, storage.LonghornNodeOf, access.Name))
		}
	}
	if !l.begun || leads != l.leads {
		l.stopCluster()
		l.leads, l.stopCluster = leads, func() {}
		if leads {
			policy := l.start(types.TableDrainPolicy, drainPolicyOn(l.conn, l.group), access.RowsOf(l.Settings, storage.SettingOf, access.Name))
			job := l.start(types.TableSnapshotJob, snapshotJobOn(l.conn, l.group), access.RowsOf(l.SnapshotJobs, storage.SnapshotJobOf, access.Name))
			l.stopCluster = func() { policy(); job() }
		} else {
			empty(l.run, types.TableDrainPolicy, l.Settings)
			empty(l.run, types.TableSnapshotJob, l.SnapshotJobs)
		}
	}
	l.begun = true
}

func (l *levels) stop() {
	l.stopDisks()
	l.stopCluster()
}

func (l *levels) start(name string, lw *cache.ListWatch, rows access.Store) (stop func()) {
	return l.keep(l.conn, &listwatch.Table{Name: name, Backoff: l.backoff}, lw, rows)
}

func byName(name string) string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
}

func drainPolicyOn(conn *access.Connection, g *listwatch.Group) *cache.ListWatch {
	return listwatch.Optional(g, listwatch.ListWatch(conn.Longhorn.Settings(access.LonghornNamespace), byName(types.LonghornDrainPolicy)),
		func(m metav1.ListMeta) runtime.Object { return &longhornv1.SettingList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &longhornv1.Setting{ObjectMeta: m} })
}

func snapshotJobOn(conn *access.Connection, g *listwatch.Group) *cache.ListWatch {
	return listwatch.Optional(g, listwatch.ListWatch(conn.Longhorn.RecurringJobs(access.LonghornNamespace), byName(types.SnapshotJobName)),
		func(m metav1.ListMeta) runtime.Object { return &longhornv1.RecurringJobList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &longhornv1.RecurringJob{ObjectMeta: m} })
}

// ofLonghorn is all that api has of a kind of Longhorn's, none without Longhorn.
func ofLonghorn[T any, P storage.SlimPart[T]](longhorn *listwatch.Group, api *gentype.ClientWithList[P, *storage.PartList[T]]) *cache.ListWatch {
	return chosenOfLonghorn(longhorn, api, "")
}

// chosenOfLonghorn is what the field selector on chooses of it.
func chosenOfLonghorn[T any, P storage.SlimPart[T]](longhorn *listwatch.Group, api *gentype.ClientWithList[P, *storage.PartList[T]], on string) *cache.ListWatch {
	return listwatch.Optional(longhorn, listwatch.ListWatch(api, on),
		func(m metav1.ListMeta) runtime.Object { return &storage.PartList[T]{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object {
			end := P(new(T))
			end.SetResourceVersion(m.ResourceVersion)
			end.SetAnnotations(m.Annotations)
			return end
		})
}
