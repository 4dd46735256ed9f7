package clusterinfo

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// minQuiet is the least time between two messages without a change of state.
	minQuiet = 10 * time.Second
	// bytesOnly is the same where nothing but AllocatedBytes has changed.
	bytesOnly = time.Minute
)

// difference is how much two reports, or two entries of them, differ for
// zedagent (docs/wire.md, "zedagent: cluster information").
type difference int

const (
	none    difference = iota // in fields that it does not read
	inBytes                   // in AllocatedBytes too
	inCount                   // in how often, since when and how far
	inState                   // in what there is and how it does
)

// Pause says how long after its last message zedagent is left with one report
// while there is another: it sends the whole report to the controller at every
// message, whatever has changed. Less than 0 is until there is more to say.
func Pause(told, now types.KubeClusterInfo) time.Duration {
	d := max(
		lists(told.Nodes, now.Nodes, nodeDiffers), lists(told.AppPods, now.AppPods, podDiffers),
		lists(told.AppVMIs, now.AppVMIs, vmiDiffers), storageDiffers(told.Storage, now.Storage),
	)
	switch d {
	case none:
		return -1
	case inBytes:
		return bytesOnly
	case inCount:
		return minQuiet
	}
	return 0
}

// lists compares lists entry by entry: they are sorted by name.
func lists[T any](a, b []T, differs func(a, b T) difference) difference {
	if len(a) != len(b) {
		return inState
	}
	most := none
	for i := range a {
		if most = max(most, differs(a[i], b[i])); most == inState {
			break
		}
	}
	return most
}

// degree tells how much two entries differ of which it is known whether they are the
// same in all, and in all but counts.
func degree(same, exceptCounts bool) difference {
	switch {
	case same:
		return none
	case exceptCounts:
		return inCount
	}
	return inState
}

// plainNode is a node without its list, to be compared at once.
type plainNode struct {
	name, version, internalIP, id string
	status                        types.KubeNodeStatus
	admission                     types.KubeNodeAdmission
	schedulable                   bool
	created, changed              time.Time
}

func nodeDiffers(a, b types.KubeNodeInfo) difference {
	x, y := plain(a), plain(b)
	same := x == y
	x.changed, y.changed = time.Time{}, time.Time{}
	return degree(same, x == y)
}

func plain(n types.KubeNodeInfo) plainNode {
	return plainNode{
		name: n.Name, version: n.KubeletVersion, internalIP: n.InternalIP, id: n.NodeID, status: n.Status, admission: n.Admission,
		schedulable: n.Schedulable, created: n.CreationTime, changed: n.LastTransitionTime,
	}
}

func podDiffers(a, b types.KubePodInfo) difference {
	a.Reason, b.Reason = "", ""
	same := a == b
	a.RestartCount, a.RestartTimestamp, a.PodIP = b.RestartCount, b.RestartTimestamp, b.PodIP
	return degree(same, a == b)
}

func vmiDiffers(a, b types.KubeVMIInfo) difference {
	same := a == b
	a.LastTransitionTime = b.LastTransitionTime
	return degree(same, a == b)
}

func storageDiffers(a, b types.KubeStorageInfo) difference {
	if a.Health != b.Health {
		return inState
	}
	return max(degree(a.TransitionTime.Equal(b.TransitionTime), true), lists(a.Volumes, b.Volumes, volumeDiffers))
}

func volumeDiffers(a, b types.KubeVolumeInfo) difference {
	replicas := lists(a.Replicas, b.Replicas, replicaDiffers)
	bytes := none
	if a.AllocatedBytes != b.AllocatedBytes {
		bytes = inBytes
	}
	a.Replicas, b.Replicas, a.AllocatedBytes, b.AllocatedBytes = nil, nil, 0, 0
	same := sameExceptTimes(a, b)
	a.ProvisionedBytes, b.ProvisionedBytes = 0, 0
	return max(replicas, bytes, degree(same, sameExceptTimes(a, b)))
}

func replicaDiffers(a, b types.KubeVolumeReplicaInfo) difference {
	same := a == b
	a.RebuildProgressPercentage = b.RebuildProgressPercentage
	return degree(same, a == b)
}
