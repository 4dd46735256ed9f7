//go:build linux

package devcluster

import (
	"context"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// annotationStart keeps our kubelets from starting a pod.
const annotationStart = "devcluster/hold-start"

// annotationProvisioner says on a claim who makes its volume.
const annotationProvisioner = "volume.kubernetes.io/storage-provisioner"

// LonghornDriver is the CSI driver of the volumes.
const LonghornDriver = "driver.longhorn.io"

// CreateClaim creates the claim <volume>-pvc-0 of a volume of CreateVolume, and
// the persistent volume that it is bound to. The controller manager makes and
// deletes its VolumeAttachments, as the pods on the nodes want it; a test plays
// the CSI driver that attaches them.
func (c *Cluster) CreateClaim(ctx context.Context, volume string) (claim string, err error) {
	claim = volume + "-pvc-0"
	class, mode := "", corev1.PersistentVolumeBlock
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claims, volumes := c.client.CoreV1().PersistentVolumeClaims(AppNamespace), c.client.CoreV1().PersistentVolumes()
	_, err = volumes.Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: once, VolumeMode: &mode, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: AppNamespace, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: LonghornDriver, VolumeHandle: volume}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create persistent volume %s: %w", volume, err)
	}
	// What the controller manager does not know yet when the claim comes, it binds
	// only 15 s later.
	err = poll(ctx, "persistent volume "+volume, func() bool {
		now, err := volumes.Get(ctx, volume, metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.VolumeAvailable
	})
	if err != nil {
		return "", err
	}
	_, err = claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim, Annotations: map[string]string{annotationProvisioner: LonghornDriver}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: once, VolumeMode: &mode, VolumeName: volume, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create claim %s: %w", claim, err)
	}
	return claim, poll(ctx, "claim "+claim+" to be bound", func() bool {
		now, err := claims.Get(ctx, claim, metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.ClaimBound
	})
}

// LetStart has a pod with claims start, as its kubelet does when its volumes are
// attached.
func (c *Cluster) LetStart(ctx context.Context, pod corev1.Pod) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:null}}}`, pod.UID, annotationStart)
	_, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("let pod %s start: %w", pod.Name, err)
	}
	return nil
}

// WaitsToStart says whether a pod is held until LetStart.
func WaitsToStart(pod corev1.Pod) bool { return pod.Annotations[annotationStart] != "" }

// ListenOn listens on host i, at a numeric address.
func (c *Cluster) ListenOn(i int, network, address string) (listener net.Listener, err error) {
	err = c.hosts[i].space.enter(func() error {
		var failed error
		listener, failed = net.Listen(network, address)
		return failed
	})
	return listener, err
}

func (a App) volumes() []corev1.Volume {
	var volumes []corev1.Volume
	for i, claim := range a.Claims {
		volumes = append(volumes, corev1.Volume{Name: fmt.Sprintf("disk%d", i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return volumes
}

// waits are the annotations that hold the pods of an application with claims.
func (a App) waits() map[string]string {
	if len(a.Claims) == 0 {
		return nil
	}
	return map[string]string{annotationStart: "true"}
}
