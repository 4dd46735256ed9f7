//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/history"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

const (
	cordonMark = "zedkube.github.io/cordon" // docs/wire.md, "Nodes"
	drainLease = "zedkube-node-drain"       // docs/wire.md, "Drain lock"
)

// follow records what the devices publish and what the API server has, until ctx
// is done.
func (s *Stage) follow(ctx context.Context) error {
	for _, m := range s.Fleet.Members {
		s.recording.Go(func() { s.followMember(ctx, m) })
	}
	factory := informers.NewSharedInformerFactory(s.Cluster.Client(), 0)
	apps := informers.NewSharedInformerFactoryWithOptions(s.Cluster.Client(), 0, informers.WithNamespace(devcluster.AppNamespace))
	for informer, see := range map[cache.SharedIndexInformer]func(o any, gone bool){
		factory.Core().V1().Nodes().Informer():                s.seeNode(ctx),
		factory.Storage().V1().VolumeAttachments().Informer(): s.seeAttachment,
		apps.Core().V1().Pods().Informer():                    s.seePod,
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { see(o, false) }, UpdateFunc: func(_, o any) { see(o, false) },
			DeleteFunc: func(o any) {
				if last, is := o.(cache.DeletedFinalStateUnknown); is {
					o = last.Obj
				}
				see(o, true)
			},
		})
		if err != nil {
			return err
		}
	}
	for _, f := range []informers.SharedInformerFactory{factory, apps} {
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		s.recording.Go(func() { <-ctx.Done(); f.Shutdown() })
	}
	return nil
}

// seeNode records a Node when something of it that matters has changed. Where we
// have cordoned it, it is looked who holds the lock.
func (s *Stage) seeNode(ctx context.Context) func(o any, gone bool) {
	last := map[string]history.Object{}
	return func(o any, gone bool) {
		n := o.(*corev1.Node)
		is := history.Object{Gone: gone, Mark: s.mark(n), Unschedulable: n.Spec.Unschedulable, Ready: ready(n), Voter: voter(n)}
		was := last[n.Name]
		if last[n.Name] = is; reflect.DeepEqual(was, is) {
			return
		}
		s.History.Add(history.Event{Kind: history.NodeIs, Node: n.Name, Object: &is})
		s.mu.Lock()
		s.cordons[n.Name] = is.Mark
		s.mu.Unlock()
		if was.Mark == "" && is.Mark != "" {
			s.recording.Go(func() { s.lookAtLock(ctx, n.Name, is.Mark) })
		}
	}
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// voter reports whether the node has joined and has a member of etcd that votes.
func voter(n *corev1.Node) bool {
	_, etcd := n.Labels["node-role.kubernetes.io/etcd"]
	return etcd && n.Labels["node.etcd.io/learner"] == ""
}

// mark is our annotation on a node that is cordoned, "" for none.
func (s *Stage) mark(n *corev1.Node) string {
	if !n.Spec.Unschedulable || n.Name == s.TieBreaker {
		return ""
	}
	return n.Annotations[cordonMark]
}

func (s *Stage) seePod(o any, gone bool) {
	p := o.(*corev1.Pod)
	is := history.Object{
		Name: p.Name, Gone: gone, App: p.Labels["app"], Domain: s.domain(p.Labels["app"]),
		Ending: p.DeletionTimestamp != nil,
	}
	for _, c := range p.Status.Conditions {
		is.Ready = is.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	is.Claims = claimsOf(p)
	s.History.Add(history.Event{Kind: history.PodIs, Node: p.Spec.NodeName, Object: &is})
}

func (s *Stage) seeAttachment(o any, gone bool) {
	a := o.(*storagev1.VolumeAttachment)
	is := history.Object{Name: a.Name, Gone: gone, Attached: a.Status.Attached}
	if a.Spec.Source.PersistentVolumeName != nil {
		is.Volume = *a.Spec.Source.PersistentVolumeName
	}
	s.History.Add(history.Event{Kind: history.VolumeIs, Node: a.Spec.NodeName, Object: &is})
}

// followMember records what a device publishes.
func (s *Stage) followMember(ctx context.Context, m *player.Member) {
	bell := make(chan struct{}, 1)
	m.Watch.Drain.Notify(bell)
	m.Watch.Progress.Notify(bell)
	m.Watch.Leader.Notify(bell)
	m.Watch.Report.Notify(bell)
	m.Watch.Apps.Notify(bell)
	said := saying{}
	for {
		said = s.hear(ctx, m, said)
		select {
		case <-ctx.Done():
			return
		case <-bell:
		}
	}
}

// saying is what a device said last.
type saying struct {
	drain  types.NodeDrainStatus
	why    string
	leader types.KubeLeaderElectInfo
	report bool
	claims map[string]bool
}

// hear records what is new.
func (s *Stage) hear(ctx context.Context, m *player.Member, was saying) saying {
	is := was // what is no longer there, after a reboot, was not taken back
	is.claims = map[string]bool{}
	if progress, ok := m.Watch.Progress.Get(types.Global); ok {
		is.why = progress.Reason
	}
	if leader, ok := m.Watch.Leader.Get(types.Global); ok {
		is.leader = leader
	}
	_, is.report = m.Watch.Report.Get(types.Global)
	for _, app := range m.Watch.Apps.All() {
		is.claims[app.AppUUID.String()] = app.ScheduledOnThisNode
	}
	if drain, ok := m.Watch.Drain.Get(types.Global); ok {
		is.drain = drain
	}
	if is.why != was.why {
		s.History.Add(history.Event{Kind: history.Why, Node: m.Name, Text: is.why})
	}
	if is.leader != was.leader {
		since := time.Since(s.History.Began())
		if !is.leader.LatestChange.IsZero() {
			since = is.leader.LatestChange.Sub(s.History.Began())
		}
		s.History.Add(history.Event{Kind: history.Leader, Node: m.Name, On: is.leader.IsStatsLeader, Text: is.leader.LeaderIdentity, Since: since})
	}
	if is.report != was.report {
		s.History.Add(history.Event{Kind: history.Reports, Node: m.Name, On: is.report})
	}
	for app, on := range is.claims {
		if on != was.claims[app] {
			s.History.Add(history.Event{Kind: history.Claim, Node: m.Name, App: app, On: on})
		}
	}
	for app, on := range was.claims {
		if _, still := is.claims[app]; on && !still {
			s.History.Add(history.Event{Kind: history.Claim, Node: m.Name, App: app})
		}
	}
	if is.drain != was.drain {
		s.History.Add(history.Event{Kind: history.Drain, Node: m.Name, Drain: &is.drain})
		s.note(m.Name, is.drain.Status)
		if is.drain.Status == types.DrainComplete && was.drain.Status != types.DrainComplete {
			s.recording.Go(func() { s.lookAtNode(ctx, m.Name) })
		}
	}
	return is
}

// lookAtNode records whether a node is empty. What cannot be seen for looksFor is not judged,
// and that is told.
func (s *Stage) lookAtNode(ctx context.Context, node string) {
	for end := time.Now().Add(looksFor); ; wait(ctx, 200*time.Millisecond) {
		look, err := s.look(ctx, node)
		switch {
		case err == nil:
			s.History.Add(history.Event{Kind: history.Looked, Node: node, Look: look})
			return
		case ctx.Err() != nil:
			return
		case time.Now().After(end):
			s.told(node, "soak", "it could not be looked at: "+err.Error())
			return
		}
	}
}

// looksFor is for how long it is tried to look at a node.
const looksFor = 5 * time.Second

func (s *Stage) look(ctx context.Context, node string) (*history.Look, error) {
	look := &history.Look{From: time.Since(s.History.Began())}
	pods, err := s.Cluster.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
		if !mirror && !slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" }) {
			look.Pods = append(look.Pods, p.Name)
		}
	}
	if look.Volumes, err = s.volumesOn(ctx, node); err != nil {
		return nil, err
	}
	n, err := s.Cluster.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	look.Unschedulable = n.Spec.Unschedulable
	return look, nil
}

// volumesOn are the volumes that are attached to a node, and those of Longhorn with a replica
// there that are whole on no other one.
func (s *Stage) volumesOn(ctx context.Context, node string) ([]string, error) {
	attachments, err := s.Cluster.Client().StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, a := range attachments.Items {
		if a.Spec.NodeName == node && a.Status.Attached {
			found[a.Name] = true
		}
	}
	engines, err := s.Cluster.Custom("lhe").Namespace(devcluster.LonghornNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	replicas, err := s.Cluster.Custom("lhr").Namespace(devcluster.LonghornNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, volume := range onlyOn(node, engines.Items, replicas.Items) {
		found[volume] = true
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// onlyOn are the volumes with a replica on a node and no whole one elsewhere. An engine that runs says which
// are whole (RW); where none does it is what was so when the volume was detached.
func onlyOn(node string, engines, replicas []unstructured.Unstructured) (volumes []string) {
	field := func(o unstructured.Unstructured, path ...string) string {
		v, _, _ := unstructured.NestedString(o.Object, path...)
		return v
	}
	modes := map[string]map[string]string{} // by volume whose engine runs
	for _, e := range engines {
		if field(e, "status", "currentState") == "running" {
			of, _, _ := unstructured.NestedStringMap(e.Object, "status", "replicaModeMap")
			modes[field(e, "spec", "volumeName")] = of
		}
	}
	here, elsewhere := map[string]bool{}, map[string]bool{}
	for _, r := range replicas {
		volume := field(r, "spec", "volumeName")
		of, runs := modes[volume]
		whole := field(r, "spec", "healthyAt") != "" && field(r, "spec", "failedAt") == ""
		if runs {
			whole = of[r.GetName()] == "RW"
		}
		here[volume] = here[volume] || field(r, "spec", "nodeID") == node
		elsewhere[volume] = elsewhere[volume] || whole && field(r, "spec", "nodeID") != node
	}
	for volume, is := range here {
		if is && !elsewhere[volume] {
			volumes = append(volumes, volume)
		}
	}
	return volumes
}

// lookAtLock records who holds the lock while a node is cordoned. The node is
// looked at last: an uncordon is followed by the release.
func (s *Stage) lookAtLock(ctx context.Context, node, cordon string) {
	look := &history.Look{From: time.Since(s.History.Began())}
	var err error
	if look.Holder, err = s.lockHolder(ctx); err != nil {
		return
	}
	n, err := s.Cluster.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err == nil && s.mark(n) == cordon {
		s.History.Add(history.Event{Kind: history.LockIs, Node: node, Look: look})
	}
}

// lockHolder is the node that holds the drain lock, or "".
func (s *Stage) lockHolder(ctx context.Context) (string, error) {
	lease, err := s.Cluster.Client().CoordinationV1().Leases(devcluster.AppNamespace).Get(ctx, drainLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && lease.Spec.HolderIdentity == nil:
		return "", nil
	case err != nil:
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// calls adds what the agents asked of the API server.
func (s *Stage) calls() error {
	all, err := s.Cluster.Calls()
	if err != nil {
		return err
	}
	node := map[string]string{}
	for _, n := range s.Cluster.Nodes {
		node[n.IP] = n.Name
	}
	var events []history.Event
	for _, c := range all {
		if strings.HasPrefix(c.UserAgent, "zedkube") {
			text := strings.TrimRight(fmt.Sprintf("%s %s/%s %s", c.Verb, c.Resource, c.Subresource, c.Name), " /")
			events = append(events, history.Event{
				At: c.At.Sub(s.History.Began()), Kind: history.Called, Node: node[c.From], Text: fmt.Sprintf("%s: %d", text, c.Code),
			})
		}
	}
	s.History.Insert(events...)
	return nil
}
