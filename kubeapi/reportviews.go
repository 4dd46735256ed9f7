package kubeapi

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
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
func (s *viewSet) reports(longhorn *listwatch.Group) {
	kube, client := s.conn.Kube, access.Kept[storage.Clients](s.conn)
	keep := func(name string, lw *cache.ListWatch, rows access.Store) { s.keep(s.reported, name, lw, rows) }
	if err := s.appPods.begin(s.PodCounts); err != nil {
		s.Log.WithError(err).Error("pods of the applications cannot be counted")
	}
	s.stops = append(s.stops, s.appPods.end)
	keep(types.TablePodCounts, countedPods(kube.CoreV1().Pods(metav1.NamespaceAll)), countedRows(s.PodCounts, access.Namespace))
	keep(types.TableClaims, listwatch.ListWatch(kube.CoreV1().PersistentVolumeClaims(access.Namespace), ""),
		access.RowsOf(s.Claims, storage.ClaimRow, access.Name))
	keep(types.TableLonghornDaemons, listwatch.ListWatch(kube.AppsV1().DaemonSets(types.NamespaceLonghorn), ""),
		access.RowsOf(s.Daemons, storage.DaemonOf, access.Name))
	keep(types.TableLonghornNodes, ofLonghorn(longhorn, client.Nodes, ""), longhornNodeRows(s.LonghornNodes))

	join := storage.NewVolumeJoin(s.Volumes)
	s.stops = append(s.stops, join.Stop)
	volumes := &listwatch.Table{Name: types.TableLonghornVolumes, Backoff: s.reported, Status: s.statusOf(types.TableLonghornVolumes)}
	join.Doubts = volumes.Status.Doubts
	s.start(volumes, ofLonghorn(longhorn, client.Volumes, ""), storage.VolumeParts(join))
	keep(types.TableLonghornEngines, ofLonghorn(longhorn, client.Engines, ""), storage.EngineParts(join))
	keep(types.TableLonghornReplicas, ofLonghorn(longhorn, client.Replicas, ""), storage.ReplicaParts(join))
	keep(types.TableLonghornSnapshots, ofLonghorn(longhorn, client.Snapshots, ""), storage.SnapshotParts(join))
}

// emptyReports drops what an earlier connection may have left while this node led.
func (r *run) emptyReports() {
	empty(r, types.TableDrainPolicy, r.Settings)
	empty(r, types.TableSnapshotJob, r.SnapshotJobs)
	empty(r, types.TablePodCounts, r.PodCounts)
	empty(r, types.TableClaims, r.Claims)
	empty(r, types.TableLonghornNodes, r.LonghornNodes)
	empty(r, types.TableLonghornDaemons, r.Daemons)
	empty(r, types.TableLonghornVolumes, r.Volumes)
	for _, parts := range []string{types.TableLonghornEngines, types.TableLonghornReplicas, types.TableLonghornSnapshots} {
		r.statusOf(parts).End(false)
	}
}

// appsGap is how far apart the tries for the tables of applications come to be.
// They have a back-off of their own, as KubeVirt may fail by itself for long and the
// other tables are not to wait for it; when those are had again, so are these.
const appsGap = time.Minute

// applications keeps the tables of virtual machines and of replica sets.
func (s *viewSet) applications() {
	virtual := listwatch.NewGroup(s.conn, kubevirtv1.SchemeGroupVersion)
	machines := listwatch.Optional(virtual, listwatch.ListWatch(s.conn.Virt.VirtualMachineInstances(access.Namespace), ""),
		&kubevirtv1.VirtualMachineInstanceList{}, &kubevirtv1.VirtualMachineInstance{})
	sets := listwatch.Optional(virtual, listwatch.ListWatch(s.conn.Virt.VirtualMachineInstanceReplicaSets(access.Namespace), ""),
		&kubevirtv1.VirtualMachineInstanceReplicaSetList{}, &kubevirtv1.VirtualMachineInstanceReplicaSet{})
	s.keep(s.apps, viewVMIs, machines, access.RowsOf(s.VMIs, kubevirt.VMIOf, access.Name))
	s.keep(s.apps, viewVMISets, sets, setRows(s.Sets, types.KindVMIReplicaSet, kubevirt.VMISetOf))
	s.keep(s.apps, viewSets, listwatch.ListWatch(s.conn.Kube.AppsV1().ReplicaSets(access.Namespace), ""),
		setRows(s.Sets, types.KindReplicaSet, kubevirt.PodSetOf))
	owners := listwatch.Optional(virtual, listwatch.ListWatch(s.conn.Virt.VirtualMachines(metav1.NamespaceAll), ""),
		&kubevirtv1.VirtualMachineList{}, &kubevirtv1.VirtualMachine{})
	s.keep(s.apps, types.TableMachines, owners, access.RowsOf(s.Machines, kubevirt.MachineOf, access.NamespacedName))
	s.keep(s.apps, types.TableDisabled, listwatch.ListWatch(s.conn.Kube.CoreV1().ConfigMaps(access.Namespace), byName(kubevirt.DisabledName)),
		access.RowsOf(s.Disabled, kubevirt.DisabledOf, access.Name))
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

func (k ofKind) All() map[string]types.AppSet {
	all := map[string]types.AppSet{}
	for key, s := range k.Writer.All() {
		if s.Kind == k.kind {
			all[key] = s
		}
	}
	return all
}

// Replace leaves alone what other views fill.
func (k ofKind) Replace(rows map[string]types.AppSet) error { return access.ReplaceEach(k, rows) }

// levels keeps the tables of what zedkube keeps in Longhorn for the cluster: each watches
// one object. They share a back-off with that of the own disks, for nothing else is to
// wait for them.
func (s *viewSet) levels(longhorn *listwatch.Group, backoff *listwatch.SharedBackoff) {
	settings := s.conn.Longhorn.Settings(types.NamespaceLonghorn)
	policy := listwatch.Optional(longhorn, listwatch.ListWatch(settings, byName(types.LonghornDrainPolicy)),
		&longhornv1.SettingList{}, &longhornv1.Setting{})
	jobs := s.conn.Longhorn.RecurringJobs(types.NamespaceLonghorn)
	job := listwatch.Optional(longhorn, listwatch.ListWatch(jobs, byName(types.SnapshotJobName)),
		&longhornv1.RecurringJobList{}, &longhornv1.RecurringJob{})
	s.keep(backoff, types.TableDrainPolicy, policy, access.RowsOf(s.Settings, storage.SettingOf, access.Name))
	s.keep(backoff, types.TableSnapshotJob, job, access.RowsOf(s.SnapshotJobs, storage.SnapshotJobOf, access.Name))
}

// ofLonghorn is what the field selector on chooses of a kind of Longhorn's, "" for all;
// none without Longhorn.
func ofLonghorn[S, T any](longhorn *listwatch.Group, api *storage.PartClient[S, T], on string) *cache.ListWatch {
	return listwatch.Optional(longhorn, listwatch.ListWatch(api, on), &storage.PartList[S, T]{}, &storage.Part[S, T]{})
}

func longhornNodeRows(table access.Writer[types.LonghornNode]) access.Store {
	return access.RowsOf(table, storage.LonghornNodeOf, access.Name)
}

// podCounts counts the pods of each namespace, which come by their phases. Of a pod it
// keeps the name and the phase: a cluster has them by the ten thousand.
type podCounts struct {
	table access.Writer[types.KubePodNameSpaceInfo]
	but   string                   // a namespace that is counted elsewhere; "" for none
	pods  map[string]*podNamespace // the namespaces that have pods, by name
}

type podNamespace struct {
	phases map[string]podPhase // by name of a pod
	counts [phases]uint32
}

type podPhase uint8

const (
	phaseOther podPhase = iota // unknown or none
	phaseRunning
	phasePending
	phaseFailed
	phaseSucceeded
	phases
)

// countedRows has the pods of every namespace but that one counted into table.
func countedRows(table access.Writer[types.KubePodNameSpaceInfo], but string) access.Store {
	return &access.Rows[*corev1.Pod, podPhase]{
		To:  &podCounts{table: table, but: but, pods: map[string]*podNamespace{}},
		Row: func(p *corev1.Pod) podPhase { return phaseOf(p.Status.Phase) },
		Key: access.NamespacedName[*corev1.Pod],
	}
}

func phaseOf(p corev1.PodPhase) podPhase {
	switch p {
	case corev1.PodRunning:
		return phaseRunning
	case corev1.PodPending:
		return phasePending
	case corev1.PodFailed:
		return phaseFailed
	case corev1.PodSucceeded:
		return phaseSucceeded
	}
	return phaseOther
}

func (c *podCounts) Publish(key string, phase podPhase) error {
	namespace, name, _ := strings.Cut(key, "/")
	if namespace == c.but {
		return nil
	}
	c.put(namespace, name, phase)
	return c.publish(namespace)
}

func (c *podCounts) Unpublish(key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	if namespace == c.but {
		return nil
	}
	c.remove(namespace, name)
	return c.publish(namespace)
}

// Replace implements access.Sink. Each row goes from the one count to the other in
// one step.
func (c *podCounts) Replace(listed map[string]podPhase) error {
	clear(c.pods)
	for key, phase := range listed {
		if namespace, name, _ := strings.Cut(key, "/"); namespace != c.but {
			c.put(namespace, name, phase)
		}
	}
	var errs []error
	for namespace := range c.table.All() {
		if namespace != c.but && c.pods[namespace] == nil {
			errs = append(errs, c.table.Unpublish(namespace))
		}
	}
	for namespace := range c.pods {
		errs = append(errs, c.publish(namespace))
	}
	return errors.Join(errs...)
}

func (c *podCounts) put(namespace, name string, phase podPhase) {
	c.remove(namespace, name)
	ns := c.pods[namespace]
	if ns == nil {
		ns = &podNamespace{phases: map[string]podPhase{}}
		c.pods[namespace] = ns
	}
	ns.phases[name] = phase
	ns.counts[phase]++
}

func (c *podCounts) remove(namespace, name string) {
	ns := c.pods[namespace]
	if ns == nil {
		return
	}
	if phase, ok := ns.phases[name]; ok {
		delete(ns.phases, name)
		ns.counts[phase]--
	}
	if len(ns.phases) == 0 {
		delete(c.pods, namespace)
	}
}

func (c *podCounts) publish(namespace string) error {
	ns := c.pods[namespace]
	if ns == nil {
		return c.table.Unpublish(namespace)
	}
	return c.table.Publish(namespace, types.KubePodNameSpaceInfo{
		Name: namespace, PodCount: uint32(len(ns.phases)), //nolint:gosec // a number of pods
		PodRunningCount: ns.counts[phaseRunning], PodPendingCount: ns.counts[phasePending],
		PodFailedCount: ns.counts[phaseFailed], PodSucceededCount: ns.counts[phaseSucceeded],
	})
}

// countedPods is every pod but those of Namespace. What does not count of those in
// a list that is not streamed is let go page by page.
func countedPods(api listwatch.Lister[*corev1.PodList]) *cache.ListWatch {
	others := fields.OneTermNotEqualSelector("metadata.namespace", access.Namespace).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = others
			list, err := api.List(ctx, o)
			if err != nil {
				return nil, err
			}
			for i, p := range list.Items {
				list.Items[i] = corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, ResourceVersion: p.ResourceVersion},
					Status:     corev1.PodStatus{Phase: p.Status.Phase},
				}
			}
			return list, nil
		},
		WatchFuncWithContext: listwatch.ListWatch(api, others).WatchFuncWithContext,
	}
}

// appCounts is the table of the pods of Namespace, and while somebody counts pods
// it counts these as they come: a second watch of the pods that change most would
// bring each change of them twice.
type appCounts struct {
	access.Writer[types.Pod]

	mu     sync.Mutex
	counts *podCounts // nil while nobody counts
}

// begin counts what there is, and what changes from now on, into table.
func (a *appCounts) begin(table access.Writer[types.KubePodNameSpaceInfo]) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts = &podCounts{table: table, pods: map[string]*podNamespace{}}
	return a.recount(a.All())
}

// recount is called with mu held, while somebody counts.
func (a *appCounts) recount(rows map[string]types.Pod) error {
	clear(a.counts.pods)
	for _, p := range rows {
		a.counts.put(access.Namespace, p.Name, phaseOf(corev1.PodPhase(p.Phase)))
	}
	return a.counts.publish(access.Namespace)
}

func (a *appCounts) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts = nil
}

func (a *appCounts) Publish(key string, p types.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Writer.Publish(key, p); err != nil || a.counts == nil {
		return err
	}
	return a.counts.Publish(access.Namespace+"/"+p.Name, phaseOf(corev1.PodPhase(p.Phase)))
}

func (a *appCounts) Replace(rows map[string]types.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Writer.Replace(rows); err != nil || a.counts == nil {
		return err
	}
	return a.recount(rows)
}

func (a *appCounts) Unpublish(key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Writer.Unpublish(key); err != nil || a.counts == nil {
		return err
	}
	_, name, _ := strings.Cut(key, "/")
	return a.counts.Unpublish(access.Namespace + "/" + name)
}
