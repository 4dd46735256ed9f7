package kubeapi

import (
	"time"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubevirt"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/types"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// appsGap is how far apart the tries for the tables of applications come to be.
// They have turns of their own, as KubeVirt may fail by itself for long and the
// other tables are not to wait for it; when those are had again, so are these.
const appsGap = time.Minute

// appViews keeps the tables of virtual machines and of replica sets, and
// returns what stops that.
func (r *run) appViews(conn *access.Connection) (stop []func()) {
	virtual := listwatch.NewGroup(conn, kubevirtv1.SchemeGroupVersion)
	start := func(name string, lw *cache.ListWatch, rows access.Store) {
		stop = append(stop, r.keep(conn, &listwatch.Table{Name: name, Holds: r.status.holds, Turns: r.apps}, lw, rows))
	}
	start(viewVMIs, listwatch.Optional(virtual, listwatch.ListWatch(conn.Virt.VirtualMachineInstances(access.Namespace), ""),
		func(m metav1.ListMeta) runtime.Object { return &kubevirtv1.VirtualMachineInstanceList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &kubevirtv1.VirtualMachineInstance{ObjectMeta: m} }), vmiRows(r.VMIs))
	start(viewVMISets, listwatch.Optional(virtual, listwatch.ListWatch(conn.Virt.VirtualMachineInstanceReplicaSets(access.Namespace), ""),
		func(m metav1.ListMeta) runtime.Object {
			return &kubevirtv1.VirtualMachineInstanceReplicaSetList{ListMeta: m}
		},
		func(m metav1.ObjectMeta) runtime.Object {
			return &kubevirtv1.VirtualMachineInstanceReplicaSet{ObjectMeta: m}
		}), vmiSetRows(r.Sets))
	start(viewSets, listwatch.ListWatch(conn.Kube.AppsV1().ReplicaSets(access.Namespace), ""), podSetRows(r.Sets))
	return stop
}

func vmiRows(table access.Writer[types.VMI]) access.Store {
	return &listwatch.Rows[*kubevirtv1.VirtualMachineInstance, types.VMI]{Table: table, Row: kubevirt.VmiOf, Slim: kubevirt.SlimVMI, Key: func(v types.VMI) string { return v.Name }}
}

func vmiSetRows(table access.Writer[types.AppSet]) access.Store {
	return &listwatch.Rows[*kubevirtv1.VirtualMachineInstanceReplicaSet, types.AppSet]{
		Table: ofKind{Writer: table, kind: types.KindVMIReplicaSet}, Row: kubevirt.VmiSetOf, Slim: kubevirt.SlimVMISet, Key: setKey,
	}
}

func podSetRows(table access.Writer[types.AppSet]) access.Store {
	return &listwatch.Rows[*appsv1.ReplicaSet, types.AppSet]{
		Table: ofKind{Writer: table, kind: types.KindReplicaSet}, Row: kubevirt.PodSetOf, Slim: kubevirt.SlimPodSet, Key: setKey,
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
