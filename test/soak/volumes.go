//go:build linux

package main

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// giveVolume gives a device an application with a volume, which is on every node: it
// moves when the device drains, and its volume with it. All devices know it, and the one
// on which it is says so.
func (r *drainRun) giveVolume(ctx context.Context, m *player.Member) error {
	var nodes []string
	for _, n := range r.Cluster.Nodes {
		if n.Name != r.TieBreaker {
			nodes = append(nodes, n.Name)
		}
	}
	if err := r.Cluster.InstallLonghorn(ctx); err != nil {
		return err
	}
	volume := "disk-" + m.Name
	if err := r.Cluster.CreateVolume(ctx, volume, "", nodes...); err != nil {
		return err
	}
	claim, err := r.Cluster.CreateClaim(ctx, volume)
	if err != nil {
		return err
	}
	config := types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte("moves "+m.Name)), Version: "1"}, DisplayName: "moves-" + m.Name,
		FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper}, Activate: true,
	}
	app := devcluster.App{Name: config.KubeName(), Domain: config.UUIDandVersion.UUID.String() + ".1.1", Node: m.Name, Claims: []string{claim}}
	for _, other := range r.Fleet.Members {
		err := other.Send(func(d *eveapi.Document) error { d.SetApp(config, m.Info.DeviceID); return nil })
		if err != nil {
			return err
		}
	}
	r.named(app)
	if err := r.Cluster.CreateApp(ctx, app); err != nil {
		return err
	}
	r.CanRun(app.Name, nodes...)
	return nil
}

// attachVolumes does what a CSI driver does for the attachments that the controller
// manager asks for, and a kubelet for pods that waited for that or that count as not Ready, until ctx is done.
// What fails, while etcd restarts for example, is tried again.
func (s *Stage) attachVolumes(ctx context.Context) {
	api := s.Cluster.Client()
	for ; ctx.Err() == nil; wait(ctx, 200*time.Millisecond) {
		attachments, err := api.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		at := map[string]string{} // nodes, by claim
		for _, a := range attachments.Items {
			if !a.Status.Attached {
				a.Status.Attached = true
				_, err = api.StorageV1().VolumeAttachments().UpdateStatus(ctx, &a, metav1.UpdateOptions{})
			}
			if volume := a.Spec.Source.PersistentVolumeName; err == nil && volume != nil {
				at[*volume+"-pvc-0"] = a.Spec.NodeName
			}
		}
		pods, err := api.CoreV1().Pods(devcluster.AppNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, p := range pods.Items {
			is := func(claim string) bool { return at[claim] == p.Spec.NodeName }
			if devcluster.WaitsToStart(p) && p.Spec.NodeName != "" && slices.ContainsFunc(claimsOf(&p), is) {
				_ = s.Cluster.LetStart(ctx, p)
			}
			_ = s.readyAgain(ctx, &p)
		}
	}
}

// readyAgain does what a kubelet does that was not heard of for some time, and a simulated one does not: a pod
// that runs counts as Ready again.
func (s *Stage) readyAgain(ctx context.Context, p *corev1.Pod) error {
	not := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue }
	if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Status.Conditions, not) {
		return nil
	}
	n, err := s.Cluster.Client().CoreV1().Nodes().Get(ctx, p.Spec.NodeName, metav1.GetOptions{})
	if err != nil || !ready(n) {
		return err
	}
	return s.Cluster.SetPodStatus(ctx, p.Namespace, p.Name, func(status *corev1.PodStatus) {
		for i := range status.Conditions {
			if not(status.Conditions[i]) {
				status.Conditions[i].Status, status.Conditions[i].LastTransitionTime = corev1.ConditionTrue, metav1.Now()
			}
		}
	})
}

// claimsOf are what a pod mounts.
func claimsOf(p *corev1.Pod) (names []string) {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}
