package kubeapi

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/types"
)

// appsGap is how far apart the tries for the tables of applications come to be.
// They have turns of their own, as KubeVirt may fail by itself for long and the
// other tables are not to wait for it; when those are had again, so are these.
const appsGap = time.Minute

// appViews keeps the tables of virtual machines and of replica sets, and
// returns what stops that.
func (r *run) appViews(conn *connection) (stop []func()) {
	kubevirt := newGroup(conn, kubevirtv1.SchemeGroupVersion)
	start := func(name string, lw *cache.ListWatch, rows rowStore) {
		stop = append(stop, r.keep(conn, &view{name: name, holds: r.status.holds, turns: r.apps}, lw, rows))
	}
	start(viewVMIs, optional(kubevirt, listWatch(conn.virt.VirtualMachineInstances(Namespace), ""),
		func(m metav1.ListMeta) runtime.Object { return &kubevirtv1.VirtualMachineInstanceList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &kubevirtv1.VirtualMachineInstance{ObjectMeta: m} }), vmiRows(r.VMIs))
	start(viewVMISets, optional(kubevirt, listWatch(conn.virt.VirtualMachineInstanceReplicaSets(Namespace), ""),
		func(m metav1.ListMeta) runtime.Object {
			return &kubevirtv1.VirtualMachineInstanceReplicaSetList{ListMeta: m}
		},
		func(m metav1.ObjectMeta) runtime.Object {
			return &kubevirtv1.VirtualMachineInstanceReplicaSet{ObjectMeta: m}
		}), vmiSetRows(r.Sets))
	start(viewSets, listWatch(conn.kube.AppsV1().ReplicaSets(Namespace), ""), podSetRows(r.Sets))
	return stop
}

func vmiRows(table Writer[types.VMI]) rowStore {
	return &rows[*kubevirtv1.VirtualMachineInstance, types.VMI]{table: table, row: vmiOf, slim: slimVMI, key: func(v types.VMI) string { return v.Name }}
}

func vmiSetRows(table Writer[types.AppSet]) rowStore {
	return &rows[*kubevirtv1.VirtualMachineInstanceReplicaSet, types.AppSet]{
		table: ofKind{Writer: table, kind: types.KindVMIReplicaSet}, row: vmiSetOf, slim: slimVMISet, key: setKey,
	}
}

func podSetRows(table Writer[types.AppSet]) rowStore {
	return &rows[*appsv1.ReplicaSet, types.AppSet]{
		table: ofKind{Writer: table, kind: types.KindReplicaSet}, row: podSetOf, slim: slimPodSet, key: setKey,
	}
}

func setKey(s types.AppSet) string {
	if s.Name == "" {
		return ""
	}
	return s.Key()
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
