package pods

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// UnschedulableText bounds what a row says of a scheduler's reasons, which name
// nodes by the dozen.
const UnschedulableText = 500

// AppPodOf is the row of a Pod of an application, which says more than PodOf.
func AppPodOf(p *corev1.Pod) types.Pod {
	row := PodOf(p)
	row.Grace = graceOf(p)
	row.Containers = containersOf(p)
	var claims []string
	for _, v := range p.Spec.Volumes {
		claims = append(claims, access.ClaimOf(p, v))
	}
	row.Claims = access.Sorted(claims)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && row.NodeName == "" {
			row.Unschedulable = access.Cut(c.Message, UnschedulableText)
		}
	}
	return row
}

// containersOf lists those of the spec: a status comes only with the kubelet.
func containersOf(p *corev1.Pod) []types.Container {
	var rows []types.Container
	add := func(c corev1.Container, statuses []corev1.ContainerStatus, ends bool) {
		row := types.Container{Name: c.Name, Init: ends}
		i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		if i >= 0 {
			fill(&row, statuses[i])
		}
		rows = append(rows, row)
	}
	for _, c := range p.Spec.InitContainers {
		add(c, p.Status.InitContainerStatuses, ptr.Deref(c.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways)
	}
	for _, c := range p.Spec.Containers {
		add(c, p.Status.ContainerStatuses, false)
	}
	return rows
}

// fill says of a container that waits to be started again what ran last, as a
// kubelet gives out the log of that.
func fill(row *types.Container, s corev1.ContainerStatus) {
	row.Restarts = s.RestartCount
	last := runOf(s.LastTerminationState.Terminated)
	switch {
	case s.State.Running != nil:
		row.Now, row.Last = types.ContainerRun{ID: s.ContainerID, Started: s.State.Running.StartedAt.Time}, last
	case s.State.Terminated != nil:
		row.Now, row.Last = runOf(s.State.Terminated), last
	default:
		row.Now = last
		if s.State.Waiting != nil {
			row.Waiting = s.State.Waiting.Reason
		}
	}
}

// runOf is zero for nil.
func runOf(t *corev1.ContainerStateTerminated) types.ContainerRun {
	if t == nil {
		return types.ContainerRun{}
	}
	return types.ContainerRun{
		ID: t.ContainerID, Started: t.StartedAt.Time, Finished: t.FinishedAt.Time, ExitCode: t.ExitCode, Reason: t.Reason,
	}
}

// PodOf is the row of a Pod.
func PodOf(p *corev1.Pod) types.Pod {
	row := types.Pod{
		Namespace: p.Namespace,
		Name:      p.Name,
		UID:       string(p.UID),
		NodeName:  p.Spec.NodeName,
		Phase:     types.PodPhase(p.Status.Phase),
		IP:        p.Status.PodIP,
		Created:   p.CreationTimestamp.Time,
		Deleted:   ptr.Deref(p.DeletionTimestamp, metav1.Time{}).Time,
		Owner:     access.OwnerOf(p),
		App:       p.Labels[access.LabelApp],
		AppDomain: p.Labels[access.LabelAppDomain],
		VMI:       p.Labels[access.LabelVMI],
		Reason:    p.Status.Reason,
	}
	row.Part, row.Version = systemPart(p)
	for _, s := range p.Status.ContainerStatuses {
		row.RestartCount += s.RestartCount
		if last := s.LastTerminationState.Terminated; s.RestartCount > 0 && last != nil && last.FinishedAt.After(row.RestartedAt) {
			row.RestartedAt = last.FinishedAt.Time
		}
	}
	return row
}

// systemPart is which part of the system a pod is, and of what version by the tag of
// its image. The pods on the own node are watched anyway.
func systemPart(p *corev1.Pod) (part, version string) {
	switch {
	case p.Namespace == types.NamespaceKubeVirt && p.Labels["kubevirt.io"] == "virt-handler":
		part = types.PartKubeVirt
	case p.Namespace == types.NamespaceLonghorn && p.Labels[access.LabelApp] == "longhorn-manager":
		part = types.PartLonghorn
	case p.Namespace == metav1.NamespaceSystem && p.Labels[access.LabelApp] == "multus":
		part = types.PartMultus
	}
	if part == "" || len(p.Spec.Containers) == 0 {
		return "", ""
	}
	return part, tagOf(p.Spec.Containers[0].Image)
}

// tagOf is the tag of an image, "" where it has none or is longer than a version.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, name, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !ok || len(name) > access.VersionLength {
		return ""
	}
	return name
}
