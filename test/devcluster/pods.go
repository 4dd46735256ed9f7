//go:build linux

package devcluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// CreatePod creates a pod on a node, "" for none, whose status is what the test
// says, and stays so: no played kubelet starts it. A deleted one goes as others
// do.
func (c *Cluster) CreatePod(ctx context.Context, namespace, name, node string, status corev1.PodStatus) error {
	_, err := c.client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationStart: "true"}},
		Spec: corev1.PodSpec{
			NodeName: node, SchedulerName: "nobody", AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod %s/%s: %w", namespace, name, err)
	}
	return c.SetPodStatus(ctx, namespace, name, func(s *corev1.PodStatus) { *s = status })
}

// SetPodStatus changes the status of a pod of CreatePod, as its kubelet would.
func (c *Cluster) SetPodStatus(ctx context.Context, namespace, name string, change func(*corev1.PodStatus)) error {
	pods := c.client.CoreV1().Pods(namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&pod.Status)
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("set the status of pod %s/%s: %w", namespace, name, err)
	}
	return nil
}

// CreateMachine creates a virtual machine instance without an owner or a launcher,
// whose status is what the test says. Nobody plays one that is not Scheduled.
func (c *Cluster) CreateMachine(ctx context.Context, name string, status map[string]any) error {
	vmi := object(kubevirtAPI, "VirtualMachineInstance", metav1.ObjectMeta{Name: name}, map[string]any{
		"spec": map[string]any{"domain": map[string]any{"devices": map[string]any{}}}, "status": status,
	})
	if _, err := c.Custom("vmi").Namespace(AppNamespace).Create(ctx, vmi, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create virtual machine %s: %w", name, err)
	}
	return nil
}

// CreateNode registers a Node that nobody plays: its status is what the test
// says, until the controller manager misses its heartbeat. It may be called again.
func (c *Cluster) CreateNode(ctx context.Context, name string, conditions ...corev1.NodeCondition) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: conditions}}
	_, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create node %s: %w", name, err)
	}
	return nil
}

// SetNodeConditions writes conditions of a Node beside those it has.
func (c *Cluster) SetNodeConditions(ctx context.Context, name string, conditions ...corev1.NodeCondition) error {
	nodes := c.client.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, cond := range conditions {
			setCondition(&node.Status, cond)
		}
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("set the conditions of node %s: %w", name, err)
	}
	return nil
}

func setCondition(status *corev1.NodeStatus, cond corev1.NodeCondition) {
	for i, old := range status.Conditions {
		if old.Type == cond.Type {
			status.Conditions[i] = cond
			return
		}
	}
	status.Conditions = append(status.Conditions, cond)
}
