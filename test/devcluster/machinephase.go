//go:build linux

package devcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

// followLaunchers does what no stage can, because it takes two objects, and
// what virt-controller does elsewhere: it tells each virtual machine how far its
// launcher pod is. It returns when it has begun; stop ends it.
func (c *Cluster) followLaunchers() (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 5*time.Second, informers.WithNamespace(AppNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "kubevirt.io=virt-launcher" }))
	follow := func(o any) {
		if err := c.followLauncher(ctx, o.(*corev1.Pod)); err != nil && ctx.Err() == nil {
			fmt.Fprintln(c.log, "devcluster:", err) // once more in five seconds
		}
	}
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: follow, UpdateFunc: func(_, now any) { follow(now) },
	})
	factory.Start(ctx.Done())
	return func() { cancel(); factory.Shutdown() }, err
}

func (c *Cluster) followLauncher(ctx context.Context, pod *corev1.Pod) error {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "VirtualMachineInstance" {
		return nil
	}
	vmis := c.Custom("vmi").Namespace(AppNamespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		vmi, err := vmis.Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil || vmi.GetUID() != owner.UID || !advance(vmi, pod) {
			return err
		}
		if _, err := vmis.Update(ctx, vmi, metav1.UpdateOptions{}); err != nil {
			return err
		}
		return c.countMachine(ctx, vmi)
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("tell virtual machine %s of its launcher: %w", owner.Name, err)
	}
	return nil
}

// advance says whether a virtual machine has come further, and writes down how
// far. What comes after Scheduled is its node's affair.
func advance(vmi *unstructured.Unstructured, pod *corev1.Pod) bool {
	phase, _, _ := unstructured.NestedString(vmi.Object, "status", "phase")
	if vmi.GetDeletionTimestamp() != nil || !slices.Contains([]string{"", "Pending", "Scheduling"}, phase) {
		return false
	}
	if !podReady(*pod) {
		vmi.Object["status"] = map[string]any{"phase": "Scheduling"}
		return phase != "Scheduling"
	}
	vmi.SetFinalizers([]string{vmiFinalizer})
	labels := vmi.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubevirt.io/nodeName"] = pod.Spec.NodeName
	vmi.SetLabels(labels)
	vmi.Object["status"] = map[string]any{
		"phase": "Scheduled", "nodeName": pod.Spec.NodeName,
		"activePods": map[string]any{string(pod.UID): pod.Spec.NodeName},
		"interfaces": []any{map[string]any{"name": "default", "ipAddress": pod.Status.PodIP}},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "GuestNotRunning",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}},
	}
	return true
}

// countMachine tells the replica set of its one machine.
func (c *Cluster) countMachine(ctx context.Context, vmi *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(vmi)
	if phase, _, _ := unstructured.NestedString(vmi.Object, "status", "phase"); owner == nil || phase != "Scheduled" {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"replicas": 1, "readyReplicas": 1, "labelSelector": labelDomain + "=" + vmi.GetLabels()[labelDomain],
	}})
	if err != nil {
		return err
	}
	_, err = c.Custom("vmirs").Namespace(AppNamespace).Patch(ctx, owner.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
