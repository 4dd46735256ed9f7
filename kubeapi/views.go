package kubeapi

import (
	"context"
	"time"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

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
// turns of their own: nothing waits for that table, and a server that refuses it
// to us is not to be asked for it as often as for the others.
const leasesGap = time.Minute

// views keeps the tables that are wanted until the connection is retired: the
// pods of this node as soon as its name is known, those of reports while it
// leads.
func (r *run) views(conn *connection) {
	stop := []func(){
		r.start(conn, viewNodes, listNodes(conn), nodeRows(r.Nodes, r.clocks, &r.stamps)),
		r.start(conn, viewAppPods, listPods(conn, Namespace, ""), appPodRows(r.appPods)),
		r.keep(conn, &view{name: viewLeases, holds: kept[sightings](conn).holds, turns: newTurns(leasesGap), strict: true}, listLeases(conn),
			leaseRows(sighted{Writer: r.Leases, seen: kept[sightings](conn)})),
	}
	stop = append(stop, r.appViews(conn)...)
	stop = append(stop, r.serviceViews(conn)...)
	longhorn := newGroup(conn, longhornv1.SchemeGroupVersion)
	levels, reports := r.levels(conn, longhorn), r.reports(conn, longhorn)
	own, stopOwn := "", func() {}
	tick := time.NewTicker(viewsRest)
	defer tick.Stop()
	pulse := conn.pulses[loopViews]
	for {
		pulse.Begin()
		// A Node that is gone leaves its last name in use: this device gets no other.
		if node, ok := r.ownNode(); ok && node.Name != own {
			stopOwn()
			own = node.Name
			stopOwn = r.start(conn, viewNodePods, listPods(conn, "", own), podRows(r.NodePods))
		}
		if own == "" { // no view keeps them
			empty(r, viewNodePods, r.NodePods)
		}
		leads := r.leads()
		levels.want(own, leads)
		reports.want(leads)
		pulse.End(viewsRest, false)
		select {
		case <-conn.ctx.Done():
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
func (r *run) start(conn *connection, name string, lw *cache.ListWatch, rows rowStore) (stop func()) {
	return r.keep(conn, &view{name: name, holds: r.status.holds, turns: r.turns}, lw, rows)
}

// keep keeps a table and says under v.name in Client.Tables how it stands. A
// view that ends with its connection leaves that to the one of the next.
func (r *run) keep(conn *connection, v *view, lw *cache.ListWatch, rows rowStore) (stop func()) {
	ctx, cancel := context.WithCancel(conn.ctx)
	done := make(chan struct{})
	v.log, v.silence = r.Log, r.silence
	if v.stands == nil {
		v.stands = r.standing(v.name)
	}
	go func() {
		defer close(done)
		v.run(ctx, lw, rows)
		v.stands.end(conn.ctx.Err() != nil)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (r *run) standing(view string) *standing {
	return &standing{log: r.Log, table: r.Tables, name: view}
}

// empty drops the rows of a table that no view keeps, and what is said of it: an
// earlier connection may have left them.
func empty[T any](r *run, view string, table Writer[T]) {
	if err := retain(table, nil); err != nil {
		r.Log.WithError(err).WithField("table", view).Error("table cannot be cleared")
	}
	r.standing(view).end(false)
}

// lister is a client for one kind of object.
type lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// listWatch is all that api has, or what the field selector on chooses of it.
func listWatch[L runtime.Object](api lister[L], on string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = on
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = on
			return api.Watch(ctx, o)
		},
	}
}

func listNodes(conn *connection) *cache.ListWatch { return listWatch(conn.kube.CoreV1().Nodes(), "") }

func listLeases(conn *connection) *cache.ListWatch {
	return listWatch(conn.kube.CoordinationV1().Leases(Namespace), "")
}

// listPods is every pod of namespace, "" for all, on node, "" for all and none.
func listPods(conn *connection, namespace, node string) *cache.ListWatch {
	on := ""
	if node != "" {
		on = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}
	return listWatch(conn.kube.CoreV1().Pods(namespace), on)
}
