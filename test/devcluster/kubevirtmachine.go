//go:build linux

package devcluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// launched returns the name of the launcher pod that virt-controller has made for
// the youngest machine of a replica set.
func (c *Cluster) launched(ctx context.Context, set metav1.Object) (string, error) {
	var name string
	err := poll(ctx, "the launcher pod of "+set.GetName(), func() bool {
		vmis, err := c.Custom("vmi").Namespace(AppNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		machines := map[types.UID]bool{}
		for _, vmi := range vmis.Items {
			machines[vmi.GetUID()] = vmi.GetDeletionTimestamp() == nil && metav1.IsControlledBy(&vmi, set)
		}
		pods, err := c.client.CoreV1().Pods(AppNamespace).List(ctx, metav1.ListOptions{LabelSelector: "kubevirt.io=virt-launcher"})
		if err != nil {
			return false
		}
		var youngest metav1.Time
		for _, pod := range pods.Items {
			owner := metav1.GetControllerOf(&pod)
			if owner == nil || !machines[owner.UID] || pod.DeletionTimestamp != nil || pod.CreationTimestamp.Before(&youngest) {
				continue
			}
			name, youngest = pod.Name, pod.CreationTimestamp
		}
		return name != ""
	})
	if err != nil {
		return "", fmt.Errorf("create virtual machine %s: %w", set.GetName(), err)
	}
	return name, nil
}
