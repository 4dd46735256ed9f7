package clusterinfo

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// nodes reports every node, by name.
func nodes(table map[string]types.Node) []types.KubeNodeInfo {
	var out []types.KubeNodeInfo
	for _, n := range table {
		out = append(out, types.KubeNodeInfo{
			Name:               n.Name,
			Status:             nodeStatus(n.Ready),
			IsMaster:           n.ControlPlane || n.Master,
			UsesEtcd:           n.Etcd,
			CreationTime:       n.Created.UTC(),
			LastTransitionTime: n.ReadySince.UTC(),
			KubeletVersion:     n.KubeletVersion,
			InternalIP:         n.InternalIP,
			ExternalIP:         n.ExternalIP,
			Schedulable:        !n.Unschedulable,
			Admission:          admission(n.Ready),
			NodeID:             n.UUID,
		})
	}
	slices.SortFunc(out, func(a, b types.KubeNodeInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func nodeStatus(ready types.ConditionStatus) types.KubeNodeStatus {
	switch ready {
	case types.ConditionTrue:
		return types.KubeNodeReady
	case types.ConditionFalse:
		return types.KubeNodeNotReady
	case types.ConditionUnknown:
		return types.KubeNodeNotReachable
	}
	return types.KubeNodeUnknown
}

// admission takes a node for joined once it has a Ready condition, of whatever
// status: a node that is not reachable now has not left. Without the condition
// its kubelet has not reported yet, and it is joining.
func admission(ready types.ConditionStatus) types.KubeNodeAdmission {
	if ready == "" {
		return types.KubeNodeAdmissionJoining
	}
	return types.KubeNodeAdmissionJoined
}

// appPods reports the pods of the app namespace, by name, without the
// launchers of virtual machines: those are reported as what they launch.
func appPods(table map[string]types.Pod) []types.KubePodInfo {
	var out []types.KubePodInfo
	for _, p := range table {
		if launcher(p) {
			continue
		}
		out = append(out, types.KubePodInfo{
			Name:              p.Name,
			Status:            podStatus(p.Phase),
			RestartCount:      uint32(max(p.RestartCount, 0)),
			RestartTimestamp:  p.RestartedAt.UTC(),
			CreationTimestamp: p.Created.UTC(),
			PodIP:             p.IP,
			NodeName:          p.NodeName,
		})
	}
	slices.SortFunc(out, func(a, b types.KubePodInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// launcher knows a launcher pod by its label or owner, and by its name because
// that is the rule of the wire (docs/wire.md, "KubeClusterInfo").
func launcher(p types.Pod) bool {
	return p.VMI != "" || p.Owner.Kind == "VirtualMachineInstance" || strings.HasPrefix(p.Name, "virt-launcher-")
}

func podStatus(phase types.PodPhase) types.KubePodStatus {
	switch phase {
	case types.PodPending:
		return types.KubePodPending
	case types.PodRunning:
		return types.KubePodRunning
	case types.PodSucceeded:
		return types.KubePodSucceeded
	case types.PodFailed:
		return types.KubePodFailed
	}
	return types.KubePodUnknown
}

// namespaces counts all pods by namespace and phase, by name.
func namespaces(table map[string]types.Pod) []types.KubePodNameSpaceInfo {
	counts := map[string]types.KubePodNameSpaceInfo{}
	for _, p := range table {
		n := counts[p.Namespace]
		n.Name = p.Namespace
		n.PodCount++
		switch p.Phase {
		case types.PodRunning:
			n.PodRunningCount++
		case types.PodPending:
			n.PodPendingCount++
		case types.PodFailed:
			n.PodFailedCount++
		case types.PodSucceeded:
			n.PodSucceededCount++
		}
		counts[p.Namespace] = n
	}
	return slices.SortedFunc(maps.Values(counts), func(a, b types.KubePodNameSpaceInfo) int {
		return cmp.Compare(a.Name, b.Name)
	})
}
