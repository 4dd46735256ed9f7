//go:build linux

package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MoveVolume has a volume of CreateVolume attached to node, "" for detached:
// its engine and its replicas run or stop with it, some moments later. All
// replicas are RW where the engine starts anew.
func (c *Cluster) MoveVolume(ctx context.Context, name, node string) error {
	desired := "running"
	if node == "" {
		desired = "stopped"
	}
	engine := map[string]any{"desireState": desired}
	if node != "" {
		engine["nodeID"] = node
	}
	errs := []error{
		c.patchLonghorn(ctx, "lhe", name+"-e-0", map[string]any{"spec": engine}),
		c.patchLonghorn(ctx, "lhv", name, map[string]any{"spec": map[string]any{"nodeID": node}}),
	}
	list, err := c.Custom("lhr").Namespace(LonghornNamespace).List(ctx, metav1.ListOptions{LabelSelector: "longhornvolume=" + name})
	if err != nil {
		return fmt.Errorf("list the replicas of volume %s: %w", name, err)
	}
	for _, r := range list.Items {
		errs = append(errs, c.patchLonghorn(ctx, "lhr", r.GetName(), map[string]any{"spec": map[string]any{"desireState": desired}}))
	}
	return errors.Join(errs...)
}

// SetReplicaMode has the engine of a volume say RW, WO or ERR of a replica, ""
// nothing, and of one that is WO how many percent of it are rebuilt. The
// robustness of the volume becomes healthy for RW and else degraded. The engine
// has to run: when it starts it says RW of all.
func (c *Cluster) SetReplicaMode(ctx context.Context, volume, replica, mode string, percent int) error {
	o, err := c.Custom("lhr").Namespace(LonghornNamespace).Get(ctx, replica, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("look at replica %s: %w", replica, err)
	}
	spec, _ := o.Object["spec"].(map[string]any)
	node, _ := spec["nodeID"].(string)
	url := "tcp://" + c.nodeIP(node) + ":10000"
	modes, rebuilds := map[string]any{replica: mode}, map[string]any{url: nil}
	if mode == "" {
		modes[replica] = nil
	}
	robustness := "degraded"
	switch mode {
	case "RW":
		robustness = "healthy"
	case "WO":
		rebuilds[url] = map[string]any{"isRebuilding": true, "progress": percent, "state": "in_progress", "error": ""}
	}
	return errors.Join(
		c.patchLonghorn(ctx, "lhe", volume+"-e-0", map[string]any{"status": map[string]any{"replicaModeMap": modes, "rebuildStatus": rebuilds}}, "status"),
		c.SetRobustness(ctx, volume, robustness),
	)
}

// SetRobustness has a volume be healthy, degraded, faulted or unknown.
func (c *Cluster) SetRobustness(ctx context.Context, volume, robustness string) error {
	return c.patchLonghorn(ctx, "lhv", volume, map[string]any{"status": map[string]any{"robustness": robustness}}, "status")
}

// FailReplica notes on a replica that it has failed just now, or has not.
func (c *Cluster) FailReplica(ctx context.Context, replica string, failed bool) error {
	at := ""
	if failed {
		at = time.Now().UTC().Format(time.RFC3339)
	}
	return c.patchLonghorn(ctx, "lhr", replica, map[string]any{"spec": map[string]any{"failedAt": at}})
}

// SetDrainPolicy sets Longhorn's setting node-drain-policy.
func (c *Cluster) SetDrainPolicy(ctx context.Context, policy string) error {
	return c.patchLonghorn(ctx, "lhs", "node-drain-policy", map[string]any{"value": policy})
}

func (c *Cluster) patchLonghorn(ctx context.Context, short, name string, content map[string]any, subresource ...string) error {
	patch, err := json.Marshal(content)
	if err == nil {
		_, err = c.Custom(short).Namespace(LonghornNamespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, subresource...)
	}
	if err != nil {
		return fmt.Errorf("change %s %s of Longhorn: %w", short, name, err)
	}
	return nil
}

// AttachClaim creates the VolumeAttachment <volume>-<node> and has it attached
// to node. It stays until DetachClaim: no controller looks after it.
func (c *Cluster) AttachClaim(ctx context.Context, volume, node string) error {
	api := c.client.StorageV1().VolumeAttachments()
	a, err := api.Create(ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "driver.longhorn.io", NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		a.Status.Attached = true
		_, err = api.UpdateStatus(ctx, a, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("attach volume %s to node %s: %w", volume, node, err)
	}
	return nil
}

// DetachClaim deletes what AttachClaim made, if it is there.
func (c *Cluster) DetachClaim(ctx context.Context, volume, node string) error {
	err := c.client.StorageV1().VolumeAttachments().Delete(ctx, volume+"-"+node, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("detach volume %s from node %s: %w", volume, node, err)
	}
	return nil
}

// DetachAfter waits until the pod is gone from the API, and then does what
// follows for a volume that only it used: its claim is detached from the pod's
// node, and the volume of Longhorn too. It returns when it has told them.
func (c *Cluster) DetachAfter(ctx context.Context, pod corev1.Pod, volume string) error {
	err := poll(ctx, "pod "+pod.Name+" to be gone", func() bool {
		now, err := c.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID
	})
	if err != nil {
		return err
	}
	return errors.Join(c.DetachClaim(ctx, volume, pod.Spec.NodeName), c.MoveVolume(ctx, volume, ""))
}
