package kubeapi

import (
	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/types"
)

// levels keeps the tables of what zedkube keeps in Longhorn: each watches one
// object. They have turns of their own, for nothing else is to wait for them.
type levels struct {
	*run
	conn  *connection
	group *group
	turns *turns

	begun       bool // own and leads are known
	own         string
	leads       bool
	stopDisks   func()
	stopCluster func()
}

func (r *run) levels(conn *connection, longhorn *group) *levels {
	return &levels{run: r, conn: conn, group: longhorn, turns: newTurns(appsGap), stopDisks: func() {}, stopCluster: func() {}}
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
			l.stopDisks = l.start(types.TableLonghornNode, chosenOfLonghorn(l.group, kept[longhornClients](l.conn).nodes, byName(own)), longhornNodeRows(l.OwnDisks))
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

func (l *levels) start(name string, lw *cache.ListWatch, rows rowStore) (stop func()) {
	return l.keep(l.conn, &view{name: name, turns: l.turns}, lw, rows)
}

func byName(name string) string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
}

func drainPolicyOn(conn *connection, g *group) *cache.ListWatch {
	return optional(g, listWatch(conn.longhorn.Settings(longhornNamespace), byName(types.LonghornDrainPolicy)),
		func(m metav1.ListMeta) runtime.Object { return &longhornv1.SettingList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &longhornv1.Setting{ObjectMeta: m} })
}

func snapshotJobOn(conn *connection, g *group) *cache.ListWatch {
	return optional(g, listWatch(conn.longhorn.RecurringJobs(longhornNamespace), byName(types.SnapshotJobName)),
		func(m metav1.ListMeta) runtime.Object { return &longhornv1.RecurringJobList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &longhornv1.RecurringJob{ObjectMeta: m} })
}
