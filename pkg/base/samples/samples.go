// Package samples keeps what kubelets measure, for those who ask them, and who wants that often.
package samples

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// Depth is how many samples a history has: what a kubelet says twice counts once.
	Depth = 8
)

// Merge is what is known of the pods after an answer of their kubelet: of those that are
// there. A history is of one instance of a pod or container. more is what the answer leaves
// out of containers; nil for nothing.
func Merge(old []types.PodMetrics, pods []types.PodStats, more map[types.ContainerID]types.ContainerSample) []types.PodMetrics {
	before := make(map[string]types.PodMetrics, len(old))
	for _, p := range old {
		before[p.UID] = p
	}
	out := make([]types.PodMetrics, 0, len(pods))
	for _, p := range pods {
		out = append(out, pod(before[p.UID], p, more))
	}
	slices.SortFunc(out, func(x, y types.PodMetrics) int {
		return cmp.Or(rank(x)-rank(y), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name), cmp.Compare(x.UID, y.UID))
	})
	return out
}

// rank puts applications first.
func rank(p types.PodMetrics) int {
	if p.Namespace == types.NamespaceApps {
		return 0
	}
	return 1
}

func pod(old types.PodMetrics, p types.PodStats, more map[types.ContainerID]types.ContainerSample) types.PodMetrics {
	out := types.PodMetrics{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Ephemeral: p.Ephemeral, Volumes: p.Volumes}
	s := p.Sample
	id := types.ContainerID{Namespace: p.Namespace, Pod: p.Name}
	network := more[id]
	s.NetworkReceived, s.NetworkSent = or(s.NetworkReceived, network.NetworkReceived), or(s.NetworkSent, network.NetworkSent)
	past := old.Samples
	if last := len(past) - 1; last >= 0 {
		b := past[last]
		if restarted(b.At, s.At, [][2]*uint64{{b.CPUSeconds, s.CPUSeconds}, {b.NetworkReceived, s.NetworkReceived}, {b.NetworkSent, s.NetworkSent}}) {
			past = nil
		} else {
			s.CPU = or(s.CPU, rate(b.At, s.At, b.CPUSeconds, s.CPUSeconds, b.CPU))
		}
	}
	out.Samples = push(past, s, func(s types.PodSample) time.Time { return s.At })
	for _, c := range p.Containers {
		id.Container = c.Name
		c.Sample.NetworkReceived, c.Sample.NetworkSent = s.NetworkReceived, s.NetworkSent
		i := slices.IndexFunc(old.Containers, func(o types.ContainerMetrics) bool { return o.Name == c.Name && o.Started.Equal(c.Started) })
		var past []types.ContainerSample
		if i >= 0 {
			past = old.Containers[i].Samples
		}
		out.Containers = append(out.Containers, container(past, c, more[id]))
	}
	return out
}

func container(past []types.ContainerSample, c types.ContainerStats, more types.ContainerSample) types.ContainerMetrics {
	s := c.Sample
	s.CPUSeconds, s.MemoryWorking = or(s.CPUSeconds, more.CPUSeconds), or(s.MemoryWorking, more.MemoryWorking)
	s.Swap, s.FSUsed = or(s.Swap, more.Swap), or(s.FSUsed, more.FSUsed)
	s.ReadBytes, s.WrittenBytes, s.IOBytes = more.ReadBytes, more.WrittenBytes, sum(more.ReadBytes, more.WrittenBytes)
	s.Reads, s.Writes, s.IOs = more.Reads, more.Writes, sum(more.Reads, more.Writes)
	if len(more.FileSystems) > 0 {
		s.FileSystems = more.FileSystems
	}
	if last := len(past) - 1; last >= 0 {
		b := past[last]
		if restarted(b.At, s.At, [][2]*uint64{{b.CPUSeconds, s.CPUSeconds}, {b.ReadBytes, s.ReadBytes}, {b.WrittenBytes, s.WrittenBytes}}) {
			past = nil
		} else {
			s.CPU = or(s.CPU, rate(b.At, s.At, b.CPUSeconds, s.CPUSeconds, b.CPU))
		}
	}
	return types.ContainerMetrics{
		Name: c.Name, Started: c.Started,
		Samples: push(past, s, func(s types.ContainerSample) time.Time { return s.At }),
	}
}

// restarted reports that what was measured then and now is not of one instance: its
// time or one of its counters ran backwards.
func restarted(then, now time.Time, counters [][2]*uint64) bool {
	return now.Before(then) || slices.ContainsFunc(counters, func(c [2]*uint64) bool { return c[0] != nil && c[1] != nil && *c[1] < *c[0] })
}

// push adds a sample to a new history; one of the same time as the last replaces that.
func push[T any](past []T, s T, at func(T) time.Time) []T {
	if last := len(past) - 1; last >= 0 && at(past[last]).Equal(at(s)) {
		past = past[:last]
	}
	return append(slices.Clone(Newest(past, Depth-1)), s)
}

// Newest are the newest samples, at most that number of them.
func Newest[T any](samples []T, most int) []T { return samples[max(len(samples)-most, 0):] }

// sum is what both say together; nil where one of them says nothing.
func sum(a, b *uint64) *uint64 {
	if a == nil || b == nil || *a > math.MaxUint64-*b {
		return nil
	}
	n := *a + *b
	return &n
}

// rate is nanocores from two readings of a counter of nanoseconds; of one moment
// it is what it was.
func rate(then, now time.Time, before, after, was *uint64) *uint64 {
	elapsed := now.Sub(then)
	switch {
	case elapsed == 0:
		return was
	case before == nil || after == nil:
		return nil
	}
	n := uint64(float64(*after-*before) / elapsed.Seconds())
	return &n
}

func or(a, b *uint64) *uint64 {
	if a != nil {
		return a
	}
	return b
}

// Next is what is known of a node after its kubelet was asked. A question that failed leaves what was known before.
func Next(out types.KubeNodeMetrics, node types.Node, stats types.KubeletStats, more map[types.ContainerID]types.ContainerSample, err error, now time.Time) types.KubeNodeMetrics {
	if out.Node != node.Name {
		out = types.KubeNodeMetrics{Node: node.Name}
	}
	if err != nil {
		out.Stale = err.Error()
		out.Stale = strings.ToValidUTF8(out.Stale[:min(len(out.Stale), maxText)], "")
		return out
	}
	out.Stale, out.At = "", now.UTC()
	out.Metrics = stats.Node
	out.Metrics.Cores = node.Cores
	if n := len(out.Samples); n > 0 && stats.NodeAt.Before(out.Samples[n-1].At) {
		out.Samples = nil // its clock was set back
	}
	out.Samples = push(out.Samples, types.NodeSample{At: stats.NodeAt, NodeMetrics: out.Metrics}, func(s types.NodeSample) time.Time { return s.At })
	out.Pods, out.Omitted = Merge(out.Pods, stats.Pods, more), stats.Omitted
	return out
}

// maxText bounds what is kept of an error.
const maxText = 300
