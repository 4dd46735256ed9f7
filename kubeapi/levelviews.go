package kubeapi

import (
	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/tools/cache"
)

// levels keeps the tables of what zedkube keeps in Longhorn: each watches one
// object. They have turns of their own, for nothing else is to wait for them.
type levels struct {
	*run
	conn  *access.Connection
	group *listwatch.Group
	turns *listwatch.Turns

	begun       bool // own and leads are known
	own         string
	leads       bool
	stopDisks   func()
	stopCluster func()
}

func (r *run) levels(conn *access.Connection, longhorn *listwatch.Group) *levels {
	return &levels{run: r, conn: conn, group: longhorn, turns: listwatch.NewTurns(appsGap), stopDisks: func() {}, stopCluster: func() {}}
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
			l.stopDisks = l.start(types.TableLonghornNode, chosenOfLonghorn(l.group, access.Kept[storage.Clients](l.conn).Nodes, byName(own)), longhornNodeRows(l.OwnDisks))
		}
	}
	if !l.begun || leads != l.leads {
		l.stopCluster()
		l.leads, l.stopCluster = leads, func() {}
		if leads {
			policy := l.start(types.TableDrainPolicy, drainPolicyOn(l.conn, l.group), settingRows(l.Settings))
			job := l.start(types.TableSnapshotJob, snapshotJobOn(l.conn, l.group), snapshotJobRows(l.SnapshotJobs))
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
	return l.keep(l.conn, &listwatch.Table{Name: name, Turns: l.turns}, lw, rows)
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

func claimRows(table access.Writer[types.Claim]) access.Store {
	return &listwatch.Rows[*corev1.PersistentVolumeClaim, types.Claim]{
		Table: table, Row: storage.ClaimRow, Slim: storage.SlimClaim,
		Key: func(c types.Claim) string { return c.Name },
	}
}

func daemonRows(table access.Writer[types.DaemonSet]) access.Store {
	return &listwatch.Rows[*appsv1.DaemonSet, types.DaemonSet]{
		Table: table, Row: storage.DaemonOf, Slim: storage.SlimDaemon,
		Key: func(d types.DaemonSet) string { return d.Name },
	}
}

func settingRows(table access.Writer[types.LonghornSetting]) access.Store {
	return &listwatch.Rows[*longhornv1.Setting, types.LonghornSetting]{
		Table: table, Row: storage.SettingOf, Slim: storage.AsIs[longhornv1.Setting],
		Key: func(s types.LonghornSetting) string { return s.Name },
	}
}

func snapshotJobRows(table access.Writer[types.SnapshotJob]) access.Store {
	return &listwatch.Rows[*longhornv1.RecurringJob, types.SnapshotJob]{
		Table: table, Row: storage.SnapshotJobOf, Slim: storage.AsIs[longhornv1.RecurringJob],
		Key: func(j types.SnapshotJob) string { return j.Name },
	}
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

func longhornNodeRows(table access.Writer[types.LonghornNode]) access.Store {
	return &listwatch.Rows[*storage.NodePart, types.LonghornNode]{
		Table: table, Row: storage.LonghornNodeOf, Slim: storage.SlimNodePart,
		Key: func(n types.LonghornNode) string { return n.Name },
	}
}
