package clusterinfo

import (
	"reflect"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// maxMessage bounds the JSON of Nodes and PodNsInfo together.
	maxMessage = pubsub.MaxMessage
	// maxLarge bounds the JSON of a part that travels by file.
	maxLarge = pubsub.MaxLarge
	// maxEntry is far more than any entry needs, in bytes of JSON.
	maxEntry = 12_000
)

// list is one list of the report: what there is, and what of it fits. The first
// entries by name stay, so that the same ones are reported every time.
type list[T any] struct {
	known   bool // seen whole, or in doubt, since this node leads
	updated time.Time
	all     []T
	sent    []T
	size    int    // of sent, bytes of JSON
	sizes   []int  // of all, as far as they are known; 0 for not
	limit   int    // that sent was cut to
	without string // what the entries of sent go without
}

// left counts what does not fit.
func (l list[T]) left() int { return len(l.all) - len(l.sent) }

// renew takes over what there is now, at most limit bytes of it; same compares
// entries. shorten, nil for none, makes entries that go without the field named
// without, which is tried before any entry is left out.
func (l list[T]) renew(all []T, same func(a, b T) bool, limit int, now time.Time, without string, shorten func(T) T) list[T] {
	if len(all) == 0 {
		all = nil // null in JSON, as in EVE
	}
	unchanged := slices.EqualFunc(l.all, all, same)
	if unchanged && l.limit == limit && l.known {
		return l
	}
	next := list[T]{known: true, updated: l.updated, all: all, sizes: make([]int, len(all)), limit: limit}
	if !unchanged || l.updated.IsZero() {
		next.updated = now.UTC()
	}
	next.sent, next.size = pubsub.Fit(all, limit, maxEntry, func(i int) int {
		// Most entries of a large cluster are as they were: that is seen faster.
		if i < len(l.sizes) && l.sizes[i] != 0 && same(l.all[i], all[i]) {
			next.sizes[i] = l.sizes[i]
		} else {
			next.sizes[i] = pubsub.EntrySize(all[i])
		}
		return next.sizes[i]
	})
	if next.left() > 0 && shorten != nil {
		reduced := slices.Clone(all)
		for i := range reduced {
			reduced[i] = shorten(reduced[i])
		}
		next.without = without
		next.sent, next.size = pubsub.Fit(reduced, limit, maxEntry, func(i int) int { return pubsub.EntrySize(reduced[i]) })
	}
	return next
}

// equal compares entries that hold no lists, at a tenth of the cost of deepEqual.
func equal[T comparable](a, b T) bool { return a == b }

// deepEqual compares entries that hold lists.
func deepEqual[T any](a, b T) bool { return reflect.DeepEqual(a, b) }

// refit is the same list within another limit.
func (l list[T]) refit(limit int) list[T] {
	l.limit = limit
	l.sent, l.size = pubsub.Fit(l.all, limit, maxEntry, func(i int) int { return pubsub.EntrySize(l.all[i]) })
	return l
}

// bare is a node without its conditions: those go first where nodes do not fit,
// because no agent of EVE reads them.
func bare(n types.KubeNodeInfo) types.KubeNodeInfo {
	n.Conditions = nil
	return n
}

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

func nodeDiffers(a, b types.KubeNodeInfo) difference {
	for _, n := range []*types.KubeNodeInfo{&a, &b} { // what zedagent does not read
		n.Conditions, n.ExternalIP, n.IsMaster, n.UsesEtcd = nil, "", false, false
	}
	same := deepEqual(a, b)
	a.LastTransitionTime = b.LastTransitionTime
	return degree(same, deepEqual(a, b))
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
	same := deepEqual(a, b)
	a.ProvisionedBytes, b.ProvisionedBytes = 0, 0
	return max(replicas, bytes, degree(same, deepEqual(a, b)))
}

func replicaDiffers(a, b types.KubeVolumeReplicaInfo) difference {
	same := a == b
	a.RebuildProgressPercentage = b.RebuildProgressPercentage
	return degree(same, a == b)
}
