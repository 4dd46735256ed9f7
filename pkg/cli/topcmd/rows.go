package topcmd

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// From which age a value is marked: a node's after three of the agent's looks.
// Of pods and containers it is the kubelet's own measurement that has the age,
// which it takes every 10 to 15 s; a mark on a healthy node would mean nothing.
const (
	topOld    = 15 * time.Second
	topOldPod = 25 * time.Second
)

// topSamples is how many samples a sparkline has.
const topSamples = 8

// What rows are sorted by.
const (
	sortCPU    = "cpu"
	sortMemory = "memory"
	sortName   = "name"
)

type topTable struct {
	At       time.Time
	Of       string // nodes, pods or containers
	Node     string // this one; "" for unknown
	Cluster  bool   `json:",omitempty"` // the pods or containers are of all nodes
	Edge     bool   `json:",omitempty"` // only edge nodes and what is of them
	Agent    device.AgentLife
	Problems []string
	Rows     []topRow `json:"Items"`
	Hidden   int      // rows of other namespaces

	OldRows []topRow `json:"Rows"` // what Items was called before
}

// topRow is a node, a pod or a container. What nobody knows is nil.
type topRow struct {
	Name     string // of a pod with its namespace, of a container behind its pod
	Node     string `json:",omitempty"` // where it runs, of the pods of all nodes
	Edge     bool   `json:",omitempty"` // of an edge node
	At       time.Time
	Old      bool      // older than 15 s, or without a time
	Cores    int       `json:",omitempty"`
	CPU      *uint64   `json:",omitempty"` // nanocores
	Memory   *uint64   `json:",omitempty"` // bytes in the working set
	Usage    *uint64   `json:",omitempty"` // bytes with the caches that can be given up
	Total    *uint64   `json:",omitempty"` // bytes of memory
	Swap     *uint64   `json:",omitempty"` // bytes
	Received *uint64   `json:",omitempty"` // bytes a second, as all that follow
	Sent     *uint64   `json:",omitempty"`
	Read     *uint64   `json:",omitempty"`
	Written  *uint64   `json:",omitempty"`
	IOs      *uint64   `json:",omitempty"` // reads and writes
	Disk     *uint64   `json:",omitempty"` // bytes used
	DiskSize *uint64   `json:",omitempty"` // bytes
	CPUs     []*uint64 // the oldest first, at most eight; nil for unknown
	Memories []*uint64
	Stale    string `json:",omitempty"` // why there is nothing newer

	// For programs: everything that is known of it. Counters are since it began.
	Samples []types.ContainerSample `json:",omitempty"` // those of CPUs and Memories, with their times
	FS      *types.FSMetrics        `json:",omitempty"` // of a node; of a pod its ephemeral storage
	Volumes []types.VolumeMetrics   `json:",omitempty"` // of a pod
}

// age marks what is old, and what comes from a clock that was set back.
func (r *topRow) age(now time.Time, old time.Duration) { r.Old = now.Sub(r.At).Abs() > old }

// sortRows brings the largest, or the first by name, to the top; what is
// unknown comes last.
func sortRows(rows []topRow, by string) {
	largest := func(a, b *uint64) int {
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return 1
		case b == nil:
			return -1
		}
		return cmp.Compare(*b, *a)
	}
	slices.SortStableFunc(rows, func(a, b topRow) int {
		order := 0
		switch by {
		case sortCPU:
			order = largest(a.CPU, b.CPU)
		case sortMemory:
			order = largest(a.Memory, b.Memory)
		}
		return cmp.Or(order, strings.Compare(a.Name, b.Name))
	})
}

// sortByColumn sorts rows that are in another order by any other column, the largest first too.
func (t *topTable) sortByColumn(by string) {
	columns := topLook{now: t.At}.all(*t)
	at := slices.IndexFunc(columns, func(c topColumn) bool { return c.Title != "" && strings.EqualFold(c.Title, by) })
	if at < 0 || by == sortCPU || by == sortMemory {
		return
	}
	text := columns[at].text
	slices.SortStableFunc(t.Rows, func(a, b topRow) int {
		x, y := strings.TrimSuffix(text(a), "!"), strings.TrimSuffix(text(b), "!")
		if columns[at].Right && x != terminal.Unknown && y != terminal.Unknown {
			x, y = y, x
		}
		return terminal.ByText(x, y)
	})
}

// perSecond is how fast a counter grew; nil where one of both is unknown or it
// began at 0 again.
func perSecond(before, after *uint64, took time.Duration) *uint64 {
	if before == nil || after == nil || *after < *before || took <= 0 {
		return nil
	}
	v := uint64(float64(*after-*before) / took.Seconds())
	return &v
}

// lastOf returns the newest samples, as many as a sparkline has.
func lastOf[T any](samples []T) []T { return samples[max(0, len(samples)-topSamples):] }

// podRows are the pods of a node, or their containers; of other namespaces only where all
// are wanted.
func podRows(m types.KubeNodeMetrics, o topOptions, now time.Time) (rows []topRow, hidden int) {
	for _, p := range m.Pods {
		name := p.Name
		if o.all {
			name = p.Namespace + "/" + name
		}
		var list []topRow
		if o.of == topPods {
			list = append(list, podRow(name, p, now))
		} else {
			for _, c := range p.Containers {
				list = append(list, containerRow(name+"/"+c.Name, c, now))
			}
		}
		for i := range list {
			if o.cluster {
				list[i].Node = m.Node
			}
		}
		if o.all || p.Namespace == kubeapi.Namespace {
			rows = append(rows, list...)
		} else {
			hidden += len(list)
		}
	}
	return rows, hidden
}

func podRow(name string, p types.PodMetrics, now time.Time) topRow {
	var whole types.ContainerMetrics // what a pod has of the samples of a container
	for _, s := range p.Samples {
		whole.Samples = append(whole.Samples, types.ContainerSample{
			At: s.At, CPU: s.CPU, CPUSeconds: s.CPUSeconds, MemoryUsage: s.MemoryUsage, MemoryWorking: s.MemoryWorking,
			NetworkReceived: s.NetworkReceived, NetworkSent: s.NetworkSent,
		})
	}
	r := containerRow(name, whole, now)
	r.FS, r.Volumes = p.Ephemeral, p.Volumes
	if p.Ephemeral != nil {
		r.Disk = p.Ephemeral.Used
	}
	return r
}

func containerRow(name string, c types.ContainerMetrics, now time.Time) topRow {
	r := topRow{Name: name}
	var before types.ContainerSample
	for _, s := range lastOf(c.Samples) {
		r.At, r.CPU, r.Memory, r.Usage, r.Swap, r.Disk = s.At, s.CPU, s.MemoryWorking, s.MemoryUsage, s.Swap, s.FSUsed
		r.CPUs, r.Memories = append(r.CPUs, s.CPU), append(r.Memories, s.MemoryWorking)
		took := s.At.Sub(before.At)
		r.Received, r.Sent = perSecond(before.NetworkReceived, s.NetworkReceived, took), perSecond(before.NetworkSent, s.NetworkSent, took)
		r.Read, r.Written = perSecond(before.ReadBytes, s.ReadBytes, took), perSecond(before.WrittenBytes, s.WrittenBytes, took)
		r.IOs = perSecond(before.IOs, s.IOs, took)
		before = s
	}
	r.Samples = lastOf(c.Samples)
	r.age(now, topOldPod)
	return r
}

// sum adds two numbers that may be unknown, and stays at the largest number.
func sum(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return nil
	}
	v, over := bits.Add64(*a, *b, 0)
	if over != 0 {
		v = 1<<64 - 1
	}
	return &v
}
