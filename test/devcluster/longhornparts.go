//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CreateDaemon creates a DaemonSet of Longhorn, with a pod on each node of
// Cluster.Nodes. Its pods run some seconds later, or wait for LetStart where they
// are held.
func (c *Cluster) CreateDaemon(ctx context.Context, name string, held bool) error {
	labels := map[string]string{labelApp: name}
	annotations := map[string]string{}
	if held {
		annotations[annotationStart] = "true"
	}
	_, err := c.client.AppsV1().DaemonSets(LonghornNamespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
					Containers:   []corev1.Container{{Name: "daemon", Image: "daemon"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create daemon set %s: %w", name, err)
	}
	return nil
}

// CreateSnapshot creates a snapshot of a volume of CreateVolume, as large as said.
func (c *Cluster) CreateSnapshot(ctx context.Context, volume, name string, bytes int64) error {
	err := c.createLonghorn(ctx, "lhsnap", "Snapshot", name, map[string]string{"longhornvolume": volume}, map[string]any{
		"spec": map[string]any{"volume": volume, "createSnapshot": true},
	})
	if err != nil {
		return err
	}
	return c.ResizeSnapshot(ctx, name, bytes)
}

// ResizeSnapshot has a snapshot take so many bytes.
func (c *Cluster) ResizeSnapshot(ctx context.Context, name string, bytes int64) error {
	return c.patchLonghorn(ctx, "lhsnap", name, map[string]any{"status": map[string]any{
		"readyToUse": true, "size": bytes,
	}}, "status")
}

// WaitVolume returns when a volume is in that state, and its engine runs or does not.
func (c *Cluster) WaitVolume(ctx context.Context, name, state string) error {
	instance := map[bool]string{true: "running", false: "stopped"}[state == "attached"]
	is := func(short, name, field, want string) bool {
		o, err := c.Custom(short).Namespace(LonghornNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		now, _, _ := unstructured.NestedString(o.Object, "status", field)
		return now == want
	}
	return poll(ctx, "volume "+name+" to be "+state, func() bool {
		return is("lhv", name, "state", state) && is("lhe", name+"-e-0", "currentState", instance)
	})
}

// FillVolume has a volume take so many bytes of its disks.
func (c *Cluster) FillVolume(ctx context.Context, name string, bytes int64) error {
	return c.patchLonghorn(ctx, "lhv", name, map[string]any{"status": map[string]any{"actualSize": bytes}}, "status")
}

// ReleaseVolume deletes the claim of a volume of CreateVolume and CreateClaim, and
// has Longhorn say that the volume is released; it stays.
func (c *Cluster) ReleaseVolume(ctx context.Context, name string) error {
	claim := name + "-pvc-0"
	err := c.client.CoreV1().PersistentVolumeClaims(AppNamespace).Delete(ctx, claim, metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("delete claim %s: %w", claim, err)
	}
	released := poll(ctx, "persistent volume "+name+" to be released", func() bool {
		now, err := c.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.VolumeReleased
	})
	return errors.Join(released, c.patchLonghorn(ctx, "lhv", name, map[string]any{"status": map[string]any{
		"kubernetesStatus": map[string]any{"pvStatus": "Released", "lastPVCRefAt": "2026-05-03T06:00:00Z"},
	}}, "status"))
}

// DropCustoms takes away what KubeVirt, Longhorn and Multus bring: the cluster
// never heard of them. The objects of these kinds go too.
func (c *Cluster) DropCustoms(ctx context.Context) error {
	definitions := c.dynamic.Resource(definitionsOf)
	for _, k := range customs {
		err := definitions.Delete(ctx, k.plural+"."+k.group, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the definition of %s of %s: %w", k.kind, k.group, err)
		}
	}
	return poll(ctx, "the kinds of KubeVirt, Longhorn and Multus to be gone", func() bool {
		groups, err := c.client.Discovery().ServerGroups()
		if err != nil {
			return false
		}
		for _, g := range groups.Groups {
			if strings.HasSuffix(g.Name, "kubevirt.io") || strings.HasSuffix(g.Name, "longhorn.io") || strings.HasSuffix(g.Name, "cni.cncf.io") {
				return false
			}
		}
		return true
	})
}
