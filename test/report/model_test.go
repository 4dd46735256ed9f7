//go:build linux

package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/types"
)

// What follows says once more, apart from the program, what docs/wire.md,
// "KubeClusterInfo" and "Services and ingresses", has a report tell of an object,
// as far as the change load needs it.

func nodeInfo(n *corev1.Node) types.KubeNodeInfo {
	info := types.KubeNodeInfo{
		Name: n.Name, Schedulable: !n.Spec.Unschedulable, NodeID: n.Labels["node-uuid"],
		IsMaster: n.Labels["node-role.kubernetes.io/control-plane"] == "true",
		UsesEtcd: n.Labels["node-role.kubernetes.io/etcd"] == "true", Admission: types.KubeNodeAdmissionJoining,
	}
	kinds := map[corev1.NodeConditionType]types.KubeNodeConditionType{
		corev1.NodeMemoryPressure: types.KubeNodeConditionMemoryPressure, corev1.NodeDiskPressure: types.KubeNodeConditionDiskPressure,
		corev1.NodePIDPressure: types.KubeNodeConditionPIDPressure, corev1.NodeNetworkUnavailable: types.KubeNodeConditionNetworkUnavailable,
	}
	for _, c := range n.Status.Conditions {
		if kind, ok := kinds[c.Type]; ok {
			info.Conditions = append(info.Conditions, types.KubeNodeCondition{
				Type: kind, Set: c.Status == corev1.ConditionTrue, Since: c.LastTransitionTime.Time,
			})
		}
		if c.Type != corev1.NodeReady {
			continue
		}
		info.Admission, info.LastTransitionTime = types.KubeNodeAdmissionJoined, c.LastTransitionTime.Time
		info.Status = map[corev1.ConditionStatus]types.KubeNodeStatus{
			corev1.ConditionTrue: types.KubeNodeReady, corev1.ConditionFalse: types.KubeNodeNotReady, corev1.ConditionUnknown: types.KubeNodeNotReachable,
		}[c.Status]
	}
	return info
}

func podInfo(p *corev1.Pod) types.KubePodInfo {
	info := types.KubePodInfo{Name: p.Name, PodIP: p.Status.PodIP, NodeName: p.Spec.NodeName, Status: podPhase(p), Reason: p.Status.Reason}
	for _, c := range p.Status.ContainerStatuses {
		info.RestartCount += uint32(c.RestartCount)
		if c.State.Waiting != nil && info.Reason == "" {
			info.Reason = c.State.Waiting.Reason
		}
	}
	return info
}

func podPhase(p *corev1.Pod) types.KubePodStatus {
	return map[corev1.PodPhase]types.KubePodStatus{
		corev1.PodPending: types.KubePodPending, corev1.PodRunning: types.KubePodRunning,
		corev1.PodSucceeded: types.KubePodSucceeded, corev1.PodFailed: types.KubePodFailed,
	}[p.Status.Phase]
}

// count adds a pod to those of its namespace.
func count(n *types.KubePodNameSpaceInfo, p *corev1.Pod) {
	n.Name = p.Namespace
	n.PodCount++
	switch p.Status.Phase {
	case corev1.PodPending:
		n.PodPendingCount++
	case corev1.PodRunning:
		n.PodRunningCount++
	case corev1.PodSucceeded:
		n.PodSucceededCount++
	case corev1.PodFailed:
		n.PodFailedCount++
	}
}

func vmiInfo(o *unstructured.Unstructured) types.KubeVMIInfo {
	phases := []string{"", "Pending", "Scheduling", "Scheduled", "Running", "Succeeded", "Failed", "Unknown"}
	info := types.KubeVMIInfo{Name: o.GetName(), NodeName: text(o, "status", "nodeName")}
	info.Status = types.KubeVMIStatus(slices.Index(phases, text(o, "status", "phase")))
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		info.IsReady = info.IsReady || c["type"] == "Ready" && c["status"] == "True"
	}
	return info
}

func serviceInfos(s *corev1.Service) []types.KubeUserService {
	var infos []types.KubeUserService
	if slices.Contains([]string{"kube-system", "default"}, s.Namespace) {
		return nil
	}
	for _, p := range s.Spec.Ports {
		infos = append(infos, types.KubeUserService{
			Name: s.Name, Namespace: s.Namespace, Protocol: string(p.Protocol), Port: p.Port, NodePort: p.NodePort,
			Type: string(s.Spec.Type), LoadBalancerIP: s.Spec.LoadBalancerIP,
		})
	}
	return infos
}

func ingressInfos(i *networkingv1.Ingress) []types.KubeUserIngress {
	var infos []types.KubeUserIngress
	for _, r := range i.Spec.Rules {
		for _, p := range r.HTTP.Paths {
			infos = append(infos, types.KubeUserIngress{
				Name: i.Name, Namespace: i.Namespace, Hostname: r.Host, Path: p.Path, PathType: string(*p.PathType), Protocol: "http",
				Service: p.Backend.Service.Name, ServicePort: p.Backend.Service.Port.Number, ServiceType: "NodePort",
			})
		}
	}
	return infos
}

// text is a string in a custom object, "" where there is none.
func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

func number(o *unstructured.Unstructured, path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, path...)
	return n
}
