package kubeapi

import (
	"time"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// reportsGap is how far apart the tries for the tables of a report come to be.
// They have turns of their own: one that cannot be had for long is not to hold
// up those that a drain or an application waits for.
const reportsGap = 30 * time.Second

// reports keeps the tables that only the node needs that reports for the
// cluster.
type reports struct {
	*run
	conn     *access.Connection
	longhorn *listwatch.Group
	turns    *listwatch.Turns

	begun bool // leads is known
	leads bool
	stops []func()
}

func (r *run) reports(conn *access.Connection, longhorn *listwatch.Group) *reports {
	return &reports{run: r, conn: conn, longhorn: longhorn, turns: r.reported}
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
		p.standing(parts).End(false)
	}
}

func (p *reports) begin() {
	kube, longhorn := p.conn.Kube, access.Kept[storage.Clients](p.conn)
	if err := p.appPods.begin(p.PodCounts); err != nil {
		p.Log.WithError(err).Error("pods of the applications cannot be counted")
	}
	p.stops = append(p.stops, p.appPods.end)
	p.start(types.TablePodCounts, countedPods(kube.CoreV1().Pods(metav1.NamespaceAll)), newPodCounts(p.PodCounts, access.Namespace))
	p.start(types.TableClaims, listwatch.ListWatch(kube.CoreV1().PersistentVolumeClaims(access.Namespace), ""), claimRows(p.Claims))
	p.start(types.TableLonghornDaemons, listwatch.ListWatch(kube.AppsV1().DaemonSets(access.LonghornNamespace), ""), daemonRows(p.Daemons))
	p.start(types.TableLonghornNodes, ofLonghorn(p.longhorn, longhorn.Nodes), longhornNodeRows(p.LonghornNodes))

	join := storage.NewVolumeJoin(p.Volumes)
	p.stops = append(p.stops, join.Stop)
	volumes := &listwatch.Table{Name: types.TableLonghornVolumes, Turns: p.turns, Stands: p.standing(types.TableLonghornVolumes)}
	join.Doubts = volumes.Stands.Doubts
	p.stops = append(p.stops, p.keep(p.conn, volumes, ofLonghorn(p.longhorn, longhorn.Volumes), storage.VolumeParts(join)))
	p.start(types.TableLonghornEngines, ofLonghorn(p.longhorn, longhorn.Engines), storage.EngineParts(join))
	p.start(types.TableLonghornReplicas, ofLonghorn(p.longhorn, longhorn.Replicas), storage.ReplicaParts(join))
	p.start(types.TableLonghornSnapshots, ofLonghorn(p.longhorn, longhorn.Snapshots), storage.SnapshotParts(join))
}

func (p *reports) start(name string, lw *cache.ListWatch, rows access.Store) {
	p.stops = append(p.stops, p.keep(p.conn, &listwatch.Table{Name: name, Turns: p.turns}, lw, rows))
}

// stop returns when none of the views writes any more.
func (p *reports) stop() {
	for _, stop := range p.stops {
		stop()
	}
	p.stops = nil
}
