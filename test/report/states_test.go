//go:build linux

package report

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
)

func container(n int64, state corev1.ContainerState) []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{Name: "app", RestartCount: int32(n), State: state}}
}

func waiting(why string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why}}
}

func running(n int64) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.42.%d.%d", n/250, n%250+1), ContainerStatuses: container(n, corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{},
	})}
}

func crashing(n int64) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: container(n, waiting("CrashLoopBackOff"))}
}

func creating(n int64) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: container(n, waiting("ContainerCreating"))}
}

func evicted(n int64) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", ContainerStatuses: container(n, corev1.ContainerState{})}
}

func ready(status corev1.ConditionStatus) corev1.NodeCondition {
	return condition(corev1.NodeReady, status)
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: status, Reason: "Test", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}
}

// createMachine makes a virtual machine instance without a launcher.
func createMachine(ctx context.Context, c *devcluster.Cluster, name, phase, node string) error {
	return c.CreateMachine(ctx, name, machineStatus(phase, node))
}

func machineStatus(phase, node string) map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	return map[string]any{
		"phase": phase, "nodeName": node,
		"phaseTransitionTimestamps": []any{map[string]any{"phase": phase, "phaseTransitionTimestamp": now}},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[phase == "Running"], "lastTransitionTime": now,
		}},
	}
}
