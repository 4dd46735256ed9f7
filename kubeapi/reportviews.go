package kubeapi

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/types"
)

// reportsGap is how far apart the tries for the tables of a report come to be.
// They have turns of their own: one that cannot be had for long is not to hold
// up those that a drain or an application waits for.
const reportsGap = 30 * time.Second

// reports keeps the tables that only the node needs that reports for the
// cluster.
type reports struct {
	*run
	conn     *connection
	longhorn *group
	turns    *turns

	begun bool // leads is known
	leads bool
	stops []func()
}

func (r *run) reports(conn *connection, longhorn *group) *reports {
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
		p.standing(parts).end(false)
	}
}

func (p *reports) begin() {
	kube, longhorn := p.conn.kube, kept[longhornClients](p.conn)
	if err := p.appPods.begin(p.PodCounts); err != nil {
		p.Log.WithError(err).Error("pods of the applications cannot be counted")
	}
	p.stops = append(p.stops, p.appPods.end)
	p.start(types.TablePodCounts, countedPods(kube.CoreV1().Pods(metav1.NamespaceAll)), newPodCounts(p.PodCounts, Namespace))
	p.start(types.TableClaims, listWatch(kube.CoreV1().PersistentVolumeClaims(Namespace), ""), claimRows(p.Claims))
	p.start(types.TableLonghornDaemons, listWatch(kube.AppsV1().DaemonSets(longhornNamespace), ""), daemonRows(p.Daemons))
	p.start(types.TableLonghornNodes, ofLonghorn(p.longhorn, longhorn.nodes), longhornNodeRows(p.LonghornNodes))

	join := newVolumeJoin(p.Volumes)
	p.stops = append(p.stops, join.stop)
	volumes := &view{name: types.TableLonghornVolumes, turns: p.turns, stands: p.standing(types.TableLonghornVolumes)}
	join.doubts = volumes.stands.doubts
	p.stops = append(p.stops, p.keep(p.conn, volumes, ofLonghorn(p.longhorn, longhorn.volumes), volumeParts(join)))
	p.start(types.TableLonghornEngines, ofLonghorn(p.longhorn, longhorn.engines), engineParts(join))
	p.start(types.TableLonghornReplicas, ofLonghorn(p.longhorn, longhorn.replicas), replicaParts(join))
	p.start(types.TableLonghornSnapshots, ofLonghorn(p.longhorn, longhorn.snapshots), snapshotParts(join))
}

func (p *reports) start(name string, lw *cache.ListWatch, rows rowStore) {
	p.stops = append(p.stops, p.keep(p.conn, &view{name: name, turns: p.turns}, lw, rows))
}

// stop returns when none of the views writes any more.
func (p *reports) stop() {
	for _, stop := range p.stops {
		stop()
	}
	p.stops = nil
}
