package kubeapi

import (
	"cmp"
	"context"
	"time"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubeconfigs"
	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/kubeapi/network"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/kubeapi/pods"
	"github.com/zedkube/zedkube/kubeapi/storage"
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
	longhorn, levels := listwatch.NewGroup(conn, longhornv1.SchemeGroupVersion), listwatch.NewSharedBackoff(appsGap)
	none := viewSet{run: r, conn: conn}
	always, ofNode, ofLeader, ofNames, ofMounts := none, none, none, none, none
	always.nodesAndPods()
	always.applications()
	always.services()
	always.keep(listwatch.NewSharedBackoff(appsGap), types.TableKubeconfigs, // nothing else waits for it
		listwatch.Labelled(conn.Kube.RbacV1().ClusterRoleBindings(), "", kubeconfigs.Selector), kubeconfigs.Rows(r.Issued))
	own, leads, begun, natively, mounts := "", false, false, false, ""
	tick := time.NewTicker(viewsRest)
	defer tick.Stop()
	pulse := conn.Pulses[access.LoopViews]
	for {
		pulse.Begin()
		// A Node that is gone leaves its last name in use: this device gets no other.
		if node, ok := r.ownNode(); ok && node.Name != own {
			ofNode.stop()
			own = node.Name
			ofNode.keep(r.backoff, viewNodePods, listPods(conn, "", own), access.RowsOf(r.NodePods, pods.OwnPodOf, access.NamespacedName))
			disks := ofLonghorn(longhorn, access.Kept[storage.Clients](conn).Nodes, byName(own))
			ofNode.keep(levels, types.TableLonghornNode, disks, longhornNodeRows(r.OwnDisks))
		}
		if own == "" { // no view keeps them
			empty(r, viewNodePods, r.NodePods)
			empty(r, types.TableLonghornNode, r.OwnDisks)
		}
		now, member := r.leads(), r.Membership.All()[types.Global]
		if native := member.NativeOrchestration(); !begun || now != leads || native != natively {
			natively = native
			ofNames.stop()
			ofNames.names(native, now)
		}
		if !begun || now != leads {
			begun, leads = true, now
			ofLeader.stop()
			if leads {
				ofLeader.levels(longhorn, levels)
				ofLeader.reports(longhorn)
			} else {
				r.emptyReports()
			}
		}
		switch m, _ := r.Mounts.Get(types.Global); {
		case !m.Watch || own == "":
			ofMounts.stop()
			mounts = ""
			empty(r, types.TableOwnAttachments, r.OwnAttachments)
			empty(r, types.TableOwnVolumes, r.OwnVolumes)
		case own != mounts:
			ofMounts.stop()
			mounts = own
			ofMounts.mounts(own, longhorn, levels)
		}
		pulse.End(viewsRest, false)
		select {
		case <-conn.Ctx.Done():
			always.stop()
			ofNode.stop()
			ofLeader.stop()
			ofNames.stop()
			ofMounts.stop()
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

// viewSet are the views that are kept for the same time.
type viewSet struct {
	*run
	conn  *access.Connection
	stops []func() // each waits for the end of what it stops
}

// keep keeps a table until stop.
func (s *viewSet) keep(backoff *listwatch.SharedBackoff, name string, lw *cache.ListWatch, rows access.Store) {
	s.start(&listwatch.Table{Name: name, Holds: s.status.holds, Backoff: backoff}, lw, rows)
}

// start keeps a table until stop, and says under v.Name in Client.Tables how it is. A
// view that ends with its connection leaves that to the one of the next.
func (s *viewSet) start(v *listwatch.Table, lw *cache.ListWatch, rows access.Store) {
	ctx, cancel := context.WithCancel(s.conn.Ctx)
	done := make(chan struct{})
	v.Log, v.Liveness = s.Log, s.silence
	if v.Status == nil {
		v.Status = s.statusOf(v.Name)
	}
	go func() {
		defer close(done)
		v.Run(ctx, lw, rows)
		v.Status.End(s.conn.Ctx.Err() != nil)
	}()
	s.stops = append(s.stops, func() {
		cancel()
		<-done
	})
}

// stop returns when none of the views writes any more.
func (s *viewSet) stop() {
	for _, stop := range s.stops {
		stop()
	}
	s.stops = nil
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

// nodesAndPods keeps the tables of nodes, of the pods of Namespace and of its Leases.
func (s *viewSet) nodesAndPods() {
	kube, seen := s.conn.Kube, access.Kept[leases.Observations](s.conn)
	s.keep(s.backoff, viewNodes, listwatch.ListWatch(kube.CoreV1().Nodes(), ""), nodeRows(s.Nodes, s.EdgeNodes, s.clocks, &s.Stamps))
	s.keep(s.backoff, viewAppPods, listPods(s.conn, access.Namespace, ""), appPodRows(s.appPods))
	s.start(
		&listwatch.Table{Name: viewLeases, Holds: seen.Holds, Backoff: listwatch.NewSharedBackoff(leasesGap), Strict: true},
		listwatch.ListWatch(kube.CoordinationV1().Leases(access.Namespace), ""),
		access.RowsOf(leases.ObservedTable{Writer: s.Leases, Seen: seen}, leases.LeaseOf, access.Name),
	)
}

// listPods is every pod of namespace, "" for all, on node, "" for all and none.
func listPods(conn *access.Connection, namespace, node string) *cache.ListWatch {
	on := ""
	if node != "" {
		on = access.OnNode(node)
	}
	return listwatch.ListWatch(conn.Kube.CoreV1().Pods(namespace), on)
}

func nodeRows(table, edge access.Writer[types.Node], clocks *nodes.Clocks, stamps *nodes.Stamps) access.Store {
	rows := access.RowsOf(nodes.Table{Writer: table, Clocks: clocks, Stamps: stamps}, nodes.NodeOf, access.Name)
	rows.Seen, rows.Drops, rows.Aside = clocks.Sees, access.IsEdge, edge
	return rows
}

func appPodRows(table access.Writer[types.Pod]) access.Store {
	return access.RowsOf(table, pods.AppPodOf, access.NamespacedName)
}

// mounts keeps the tables of the volumes that are attached to the node. Neither kind can
// be selected by it.
func (s *viewSet) mounts(node string, longhorn *listwatch.Group, backoff *listwatch.SharedBackoff) {
	attachments := access.RowsOf(s.OwnAttachments, storage.AttachmentOf, access.Name[*storagev1.VolumeAttachment])
	attachments.Drops = func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName != node || !a.Status.Attached }
	volumes := access.RowsOf(s.OwnVolumes, storage.VolumeOf, access.Name[*storage.VolumePart])
	volumes.Drops = func(v *storage.VolumePart) bool { return v.Status.CurrentNodeID != node }
	s.keep(backoff, types.TableOwnAttachments, listwatch.ListWatch(s.conn.Kube.StorageV1().VolumeAttachments(), ""), attachments)
	s.keep(backoff, types.TableOwnVolumes, ofLonghorn(longhorn, access.Kept[storage.Clients](s.conn).Volumes, ""), volumes)
}

// services keeps the tables of services, of ingresses, of kube-vip's configuration
// and of CDI's version. They have a back-off of their own, for nothing else is to wait for them.
func (s *viewSet) services() {
	kube, all := s.conn.Kube, metav1.NamespaceAll
	ingresses := listwatch.Optional(listwatch.NewGroup(s.conn, networkingv1.SchemeGroupVersion),
		listwatch.ListWatch(kube.NetworkingV1().Ingresses(all), ""), &networkingv1.IngressList{}, &networkingv1.Ingress{})
	kubeVIP := listwatch.ListWatch(kube.CoreV1().ConfigMaps(kubeVIPNamespace), byName(kubeVIPName))
	s.keep(s.served, types.TableServices, listwatch.ListWatch(kube.CoreV1().Services(all), ""),
		access.RowsOf(s.Services, serviceOf, access.NamespacedName))
	s.keep(s.served, types.TableIngresses, ingresses, access.RowsOf(s.Ingresses, ingressOf, access.NamespacedName))
	s.keep(s.served, types.TableKubeVIP, kubeVIP,
		access.RowsOf(s.KubeVIP, kubeVIPOf, func(*corev1.ConfigMap) string { return types.Global }))
	s.keep(listwatch.NewSharedBackoff(appsGap), types.TableCDI, listwatch.ListWatch(kube.AppsV1().Deployments(types.NamespaceCDI), byName(types.CDIDeployment)),
		access.RowsOf(s.CDI, pods.DeployedVersionOf, access.Name))
}

// names keeps the addresses of workloads on networks, and the leader's view of CoreDNS.
func (s *viewSet) names(native, leads bool) {
	maps, on := s.conn.Kube.CoreV1().ConfigMaps, types.NamespaceSystem
	keepIf(s, native, types.TableAllocations, listwatch.Labelled(maps(access.Namespace), "", network.AllocationsLabel), s.Allocations, network.AllocationsOf)
	keepIf(s, native && leads, types.TableDNSServer, listwatch.ListWatch(maps(on), byName(types.DNSConfigMap)), s.DNSServer, network.DNSServerOf)
	keepIf(s, native && leads, types.TableDNSRollout, listwatch.ListWatch(s.conn.Kube.AppsV1().Deployments(on), byName(types.DNSDeployment)),
		s.DNSRollout, network.DNSRolloutOf)
}

// keepIf keeps a table of one namespace, or has it empty.
func keepIf[O metav1.Object, T any](s *viewSet, wanted bool, name string, lw *cache.ListWatch, table access.Writer[T], row func(O) T) {
	if wanted {
		s.keep(s.served, name, lw, access.RowsOf(table, row, access.Name))
	} else {
		empty(s.run, name, table)
	}
}

func byName(name string) string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
}

// vipsAnnotation is where kube-vip keeps the addresses that it gave a service.
const vipsAnnotation = "kube-vip.io/loadbalancerIPs"

// The ConfigMap of kube-vip and its keys (docs/wire.md, "Objects read").
const (
	kubeVIPNamespace = metav1.NamespaceSystem
	kubeVIPName      = "kubevip"
	kubeVIPCIDR      = "cidr-global"
	kubeVIPInterface = "interface-global"
)

// serviceOf is the row of a Service.
func serviceOf(s *corev1.Service) types.Service {
	row := types.Service{
		Namespace: s.Namespace, Name: s.Name, Type: string(s.Spec.Type),
		LoadBalancerIP: s.Spec.LoadBalancerIP, ExternalIPs: s.Spec.ExternalIPs, VIPs: s.Annotations[vipsAnnotation],
	}
	for _, p := range s.Spec.Ports {
		row.Ports = append(row.Ports, types.ServicePort{Name: p.Name, Protocol: string(p.Protocol), Port: p.Port, NodePort: p.NodePort})
	}
	return row
}

// ingressOf is the row of an Ingress. A path that leads to something else than
// a service is left out.
func ingressOf(i *networkingv1.Ingress) types.Ingress {
	row := types.Ingress{Namespace: i.Namespace, Name: i.Name}
	for _, rule := range i.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, p := range rule.HTTP.Paths {
			if p.Backend.Service == nil {
				continue
			}
			row.Rules = append(row.Rules, types.IngressPath{
				Host: rule.Host, Path: p.Path, PathType: string(ptr.Deref(p.PathType, "")),
				Service: p.Backend.Service.Name, Port: p.Backend.Service.Port.Number, PortName: p.Backend.Service.Port.Name,
			})
		}
	}
	for _, tls := range i.Spec.TLS {
		row.TLSHosts = append(row.TLSHosts, tls.Hosts...)
		if len(tls.Hosts) == 0 {
			row.TLSHosts = append(row.TLSHosts, "")
		}
	}
	for _, at := range i.Status.LoadBalancer.Ingress {
		if address := cmp.Or(at.IP, at.Hostname); address != "" {
			row.Addresses = append(row.Addresses, address)
		}
	}
	return row
}

// kubeVIPOf is the row of the ConfigMap of kube-vip.
func kubeVIPOf(m *corev1.ConfigMap) types.KubeVIP {
	return types.KubeVIP{CIDR: m.Data[kubeVIPCIDR], Interface: m.Data[kubeVIPInterface]}
}
