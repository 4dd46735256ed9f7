package kubeapi

import (
	"context"
	"time"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/kubeapi/pods"
	"github.com/zedkube/zedkube/types"
)

// The views, as the status and the log name them.
const (
	viewNodes    = types.TableNodes
	viewAppPods  = types.TableAppPods
	viewNodePods = "own pods"
	viewLeases   = "leases"
	viewVMIs     = types.TableVMIs
	viewVMISets  = "replica sets of virtual machine instances"
	viewSets     = "replica sets"
)

// leasesGap is how far apart the tries for the Leases come to be. They have
// a back-off of their own: nothing waits for that table, and a server that refuses it
// to us is not to be asked for it as often as for the others.
const leasesGap = time.Minute

// views keeps the tables that are wanted until the connection is retired: the
// pods of this node as soon as its name is known, those of reports while it
// leads.
func (r *run) views(conn *access.Connection) {
	stop := []func(){
		r.start(conn, viewNodes, listNodes(conn), nodeRows(r.Nodes, r.clocks, &r.Stamps)),
		r.start(conn, viewAppPods, listPods(conn, access.Namespace, ""), appPodRows(r.appPods)),
		r.keep(conn, &listwatch.Table{Name: viewLeases, Holds: access.Kept[leases.Observations](conn).Holds, Backoff: listwatch.NewSharedBackoff(leasesGap), Strict: true}, listLeases(conn),
			access.RowsOf(leases.ObservedTable{Writer: r.Leases, Seen: access.Kept[leases.Observations](conn)}, leases.LeaseOf, access.Name)),
	}
	stop = append(stop, r.appViews(conn)...)
	stop = append(stop, r.serviceViews(conn)...)
	longhorn := listwatch.NewGroup(conn, longhornv1.SchemeGroupVersion)
	levels, reports := r.levels(conn, longhorn), r.reports(conn, longhorn)
	own, stopOwn := "", func() {}
	tick := time.NewTicker(viewsRest)
	defer tick.Stop()
	pulse := conn.Pulses[access.LoopViews]
	for {
		pulse.Begin()
		// A Node that is gone leaves its last name in use: this device gets no other.
		if node, ok := r.ownNode(); ok && node.Name != own {
			stopOwn()
			own = node.Name
			stopOwn = r.start(conn, viewNodePods, listPods(conn, "", own), access.RowsOf(r.NodePods, pods.PodOf, access.NamespacedName))
		}
		if own == "" { // no view keeps them
			empty(r, viewNodePods, r.NodePods)
		}
		leads := r.leads()
		levels.want(own, leads)
		reports.want(leads)
		pulse.End(viewsRest, false)
		select {
		case <-conn.Ctx.Done():
			for _, s := range append(stop, stopOwn, levels.stop, reports.stop) {
				s()
			}
			return
		case <-r.bell:
		case <-tick.C: // there is no news; it shows that this loop turns
		}
	}
}

func (r *run) ownNode() (types.Node, bool) {
	info, ok := r.Info.Get(types.Global)
	if !ok {
		return types.Node{}, false
	}
	return types.OwnNode(r.Nodes.All(), info)
}

func (r *run) leads() bool {
	info, _ := r.Leader.Get(types.Global)
	return info.IsStatsLeader
}

// start keeps a table on which the status depends, and returns what stops that
// and waits for its end; stopping twice is fine.
func (r *run) start(conn *access.Connection, name string, lw *cache.ListWatch, rows access.Store) (stop func()) {
	return r.keep(conn, &listwatch.Table{Name: name, Holds: r.status.holds, Backoff: r.backoff}, lw, rows)
}

// keep keeps a table and says under v.name in Client.Tables how it stands. A
// view that ends with its connection leaves that to the one of the next.
func (r *run) keep(conn *access.Connection, v *listwatch.Table, lw *cache.ListWatch, rows access.Store) (stop func()) {
	ctx, cancel := context.WithCancel(conn.Ctx)
	done := make(chan struct{})
	v.Log, v.Liveness = r.Log, r.silence
	if v.Status == nil {
		v.Status = r.statusOf(v.Name)
	}
	go func() {
		defer close(done)
		v.Run(ctx, lw, rows)
		v.Status.End(conn.Ctx.Err() != nil)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (r *run) statusOf(view string) *listwatch.Status {
	return &listwatch.Status{Log: r.Log, Table: r.Tables, Name: view}
}

// empty drops the rows of a table that no view keeps, and what is said of it: an
// earlier connection may have left them.
func empty[T any](r *run, view string, table access.Writer[T]) {
	if err := access.Retain(table, nil); err != nil {
		r.Log.WithError(err).WithField("table", view).Error("table cannot be cleared")
	}
	r.statusOf(view).End(false)
}

func listNodes(conn *access.Connection) *cache.ListWatch {
	return listwatch.ListWatch(conn.Kube.CoreV1().Nodes(), "")
}

func listLeases(conn *access.Connection) *cache.ListWatch {
	return listwatch.ListWatch(conn.Kube.CoordinationV1().Leases(access.Namespace), "")
}

// listPods is every pod of namespace, "" for all, on node, "" for all and none.
func listPods(conn *access.Connection, namespace, node string) *cache.ListWatch {
	on := ""
	if node != "" {
		on = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}
	return listwatch.ListWatch(conn.Kube.CoreV1().Pods(namespace), on)
}

func nodeRows(table access.Writer[types.Node], clocks *nodes.Clocks, stamps *nodes.Stamps) access.Store {
	clocked := nodes.ClockedTable{Writer: nodes.StampedTable{Writer: table, Stamps: stamps}, Clocks: clocks}
	rows := access.RowsOf(clocked, nodes.NodeOf, access.Name)
	rows.Seen, rows.Drops = clocks.Sees, access.IsEdge
	return rows
}

func appPodRows(table access.Writer[types.Pod]) access.Store {
	return access.RowsOf(table, pods.AppPodOf, access.NamespacedName)
}

// serviceViews keeps the tables of services, of ingresses and of kube-vip's
// configuration, and returns what stops that. They have a back-off of their own, for
// nothing else is to wait for them.
func (r *run) serviceViews(conn *access.Connection) (stop []func()) {
	start := func(name string, lw *cache.ListWatch, rows access.Store) {
		stop = append(stop, r.keep(conn, &listwatch.Table{Name: name, Backoff: r.served}, lw, rows))
	}
	start(types.TableServices, listwatch.ListWatch(conn.Kube.CoreV1().Services(metav1.NamespaceAll), ""), access.RowsOf(r.Services, serviceOf, access.NamespacedName))
	start(types.TableIngresses, listIngresses(conn), access.RowsOf(r.Ingresses, ingressOf, access.NamespacedName))
	start(types.TableKubeVIP, listwatch.ListWatch(conn.Kube.CoreV1().ConfigMaps(kubeVIPNamespace),
		fields.OneTermEqualSelector(metav1.ObjectNameField, kubeVIPName).String()), access.RowsOf(r.KubeVIP, kubeVIPOf, func(*corev1.ConfigMap) string { return types.Global }))
	return stop
}

func listIngresses(conn *access.Connection) *cache.ListWatch {
	return listwatch.Optional(listwatch.NewGroup(conn, networkingv1.SchemeGroupVersion), listwatch.ListWatch(conn.Kube.NetworkingV1().Ingresses(metav1.NamespaceAll), ""),
		func(m metav1.ListMeta) runtime.Object { return &networkingv1.IngressList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &networkingv1.Ingress{ObjectMeta: m} })
}
