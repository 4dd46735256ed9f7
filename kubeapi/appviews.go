package kubeapi

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/types"
)

// appsGap is how far apart the tries for the tables of applications come to be.
// They have turns of their own, as KubeVirt may fail by itself for long and the
// other tables are not to wait for it; when those are had again, so are these.
const appsGap = time.Minute

// appViews keeps the tables of virtual machines and of replica sets, and
// returns what stops that.
func (r *run) appViews(conn *connection) (stop []func()) {
	kubevirt := conn.group(kubevirtVersion())
	start := func(name string, lw *cache.ListWatch, rows rowStore) {
		stop = append(stop, r.keep(conn, &view{name: name, holds: r.status.holds, turns: r.apps}, lw, rows))
	}
	start(viewVMIs, optional(kubevirt, listWatch(conn.apps.vmis, ""),
		func(m metav1.ListMeta) runtime.Object { return &vmiList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &vmi{ObjectMeta: m} }), vmiRows(r.VMIs))
	start(viewVMISets, optional(kubevirt, listWatch(conn.apps.sets[types.KindVMIReplicaSet], ""),
		func(m metav1.ListMeta) runtime.Object { return &appSetList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &appSet{ObjectMeta: m} }), appSetRows(r.Sets, types.KindVMIReplicaSet))
	start(viewSets, listWatch(conn.apps.sets[types.KindReplicaSet], ""), appSetRows(r.Sets, types.KindReplicaSet))
	return stop
}

func vmiRows(table Writer[types.VMI]) rowStore {
	return &rows[*vmi, types.VMI]{table: table, row: vmiOf, slim: slimVMI, key: func(v types.VMI) string { return v.Name }}
}

// appSetRows keeps the rows of one kind in a table of several.
func appSetRows(table Writer[types.AppSet], kind string) rowStore {
	return &rows[*appSet, types.AppSet]{
		table: ofKind{Writer: table, kind: kind}, row: appSetOf(kind), slim: slimAppSet,
		key: func(s types.AppSet) string {
			if s.Name == "" {
				return ""
			}
			return s.Key()
		},
	}
}

// ofKind is the part of a table that one view fills.
type ofKind struct {
	Writer[types.AppSet]
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
