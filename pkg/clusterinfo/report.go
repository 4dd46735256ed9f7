package clusterinfo

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// nodes reports every node, by name.
func nodes(f facts) []types.KubeNodeInfo {
	out := make([]types.KubeNodeInfo, 0, len(f.nodes))
	for _, key := range slices.Sorted(maps.Keys(f.nodes)) {
		n := f.nodes[key]
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
			Admission:          admission(f, n),
			NodeID:             n.UUID,
			Conditions:         conditions(n.Conditions),
		})
	}
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

// admission is how far a node has come into the cluster, or out of it.
//
// A node has joined once it has a Ready condition, of whatever status: one that
// is not reachable now has not left. Without the condition its kubelet has not
// reported yet, and it is joining.
func admission(f facts, n types.Node) types.KubeNodeAdmission {
	own := n.UUID != "" && n.UUID == f.own
	switch {
	case own && f.membership == types.MembershipLeaving, n.Agent != nil && n.Agent.Leaving, slices.Contains(f.stale, n.Name):
		return types.KubeNodeAdmissionLeaving
	case own && (f.membership == types.MembershipNever || f.membership == types.MembershipLeft):
		return types.KubeNodeAdmissionNotClustered
	case n.Ready == "":
		return types.KubeNodeAdmissionJoining
	}
	return types.KubeNodeAdmissionJoined
}

// conditions are those that eve-api knows; Ready is the node's status.
func conditions(list []types.NodeCondition) []types.KubeNodeCondition {
	var out []types.KubeNodeCondition
	for _, c := range list {
		var kind types.KubeNodeConditionType
		switch c.Type {
		case "MemoryPressure":
			kind = types.KubeNodeConditionMemoryPressure
		case "DiskPressure":
			kind = types.KubeNodeConditionDiskPressure
		case "PIDPressure":
			kind = types.KubeNodeConditionPIDPressure
		case "NetworkUnavailable":
			kind = types.KubeNodeConditionNetworkUnavailable
		default:
			continue
		}
		// One that is Unknown, as all are of a lost node, is not known to hold.
		out = append(out, types.KubeNodeCondition{Type: kind, Set: c.Status == types.ConditionTrue, Since: c.Since.UTC()})
	}
	slices.SortFunc(out, func(a, b types.KubeNodeCondition) int { return cmp.Compare(a.Type, b.Type) })
	return out
}

// appPods reports the pods of the app namespace, by name, without the
// launchers of virtual machines: those are reported as what they launch. keys
// are those of the table, in order, as it was before; it returns those of now.
// Where pods are counted by the thousand most changes are of a row, and nothing
// has to be sorted.
func appPods(table map[string]types.Pod, keys []string) ([]types.KubePodInfo, []string) {
	if out, ok := inOrder(table, keys); ok {
		return out, keys
	}
	keys = slices.Sorted(maps.Keys(table)) // all of one namespace
	out, _ := inOrder(table, keys)
	return out, keys
}

// inOrder reports false where these are not the keys of the table.
func inOrder(table map[string]types.Pod, keys []string) ([]types.KubePodInfo, bool) {
	if len(keys) != len(table) {
		return nil, false
	}
	out := make([]types.KubePodInfo, 0, len(table))
	for _, key := range keys {
		p, ok := table[key]
		if !ok {
			return nil, false
		}
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
			Reason:            reason(p),
		})
	}
	return out, true
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

// reason is the pod's own, as Evicted; else that of the scheduler; else that of
// its first container that waits or has failed, as kubectl shows it. "" where
// all is well.
func reason(p types.Pod) string {
	switch {
	case p.Reason != "":
		return p.Reason
	case p.Unschedulable != "" && p.NodeName == "":
		return "Unschedulable"
	}
	for _, c := range p.Containers {
		failed := !c.Now.Finished.IsZero() && c.Now.ExitCode != 0
		switch {
		case c.Waiting == "PodInitializing":
			continue // one before it says why
		case c.Waiting != "":
			return c.Waiting
		case failed:
			return cmp.Or(c.Now.Reason, "Error")
		}
	}
	if slices.ContainsFunc(p.Containers, func(c types.Container) bool { return c.Waiting == "PodInitializing" }) {
		return "PodInitializing"
	}
	return ""
}

// vmis reports the virtual machine instances of the app namespace, by name.
func vmis(table map[string]types.VMI) []types.KubeVMIInfo {
	out := make([]types.KubeVMIInfo, 0, len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		v := table[key]
		out = append(out, types.KubeVMIInfo{
			Name:               v.Name,
			Status:             vmiStatus(v.Phase),
			CreationTime:       v.Created.UTC(),
			LastTransitionTime: v.PhaseSince.UTC(),
			IsReady:            v.Ready,
			NodeName:           v.NodeName,
		})
	}
	return out
}

func vmiStatus(phase types.VMIPhase) types.KubeVMIStatus {
	switch phase {
	case types.VMIUnset:
		return types.KubeVMIUnset
	case types.VMIPending:
		return types.KubeVMIPending
	case types.VMIScheduling:
		return types.KubeVMIScheduling
	case types.VMIScheduled:
		return types.KubeVMIScheduled
	case types.VMIRunning:
		return types.KubeVMIRunning
	case types.VMISucceeded:
		return types.KubeVMISucceeded
	case types.VMIFailed:
		return types.KubeVMIFailed
	}
	return types.KubeVMIUnknown // also a phase of a newer KubeVirt, such as WaitingForSync
}

// namespaces reports the pods of each namespace that has any, by name.
func namespaces(table map[string]types.PodCount) []types.KubePodNameSpaceInfo {
	var out []types.KubePodNameSpaceInfo
	for _, c := range table {
		out = append(out, types.KubePodNameSpaceInfo{
			Name: c.Namespace, PodCount: uint32(c.Pods), PodRunningCount: uint32(c.Running), PodPendingCount: uint32(c.Pending),
			PodFailedCount: uint32(c.Failed), PodSucceededCount: uint32(c.Succeeded),
		})
	}
	slices.SortFunc(out, func(a, b types.KubePodNameSpaceInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
