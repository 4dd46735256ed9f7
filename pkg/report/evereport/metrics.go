package evereport

import (
	"cmp"
	"math"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/metrics"

	"github.com/zedkube/zedkube/types"
)

const (
	milliPerCore = 1000
	nanoPerMilli = 1_000_000
	nanoPerCore  = milliPerCore * nanoPerMilli
)

// Metrics is the message of what the cluster's kubelets measure. What is not
// measured is zero there, since the message tells it from zero nowhere; and
// what does not fit into its 32 bits, as memory from 4 GiB on, is the largest
// number that does. MemoryUsage is the working set.
func Metrics(c types.KubeClusterMetrics, cluster uuid.UUID) *metrics.KubeClusterMetrics {
	return &metrics.KubeClusterMetrics{
		ClusterId: id(cluster), Nodes: each(c.Nodes, nodeMetrics),
		EvePodApps: each(c.Apps, appMetrics), EveVmiApps: each(c.VMIs, appMetrics),
	}
}

// nodeMetrics: CpuCores are those that the node has, in thousandths, and
// CpuUsage is the percentage of them that is used.
func nodeMetrics(n types.ClusterNodeMetrics) *metrics.KubeNodeMetrics {
	return &metrics.KubeNodeMetrics{
		Name: text(n.Name), CpuCores: saturate(uint64(max(n.Cores, 0)), milliPerCore),
		CpuUsage:    percent(n.CPU, uint64(max(n.Cores, 0)), nanoPerCore),
		MemoryUsage: saturate(value(n.Memory), 1), MemoryUsagePercentage: percent(n.Memory, value(n.Total), 1),
	}
}

// appMetrics: CpuCores are those that are used, in thousandths, since an
// application has no other field for it. Its name is that of the application,
// where it is known.
func appMetrics(a types.ClusterAppMetrics) *metrics.KubeAppMetrics {
	nano := value(a.CPU)
	milli := nano / nanoPerMilli
	if nano%nanoPerMilli >= nanoPerMilli/2 {
		milli++
	}
	return &metrics.KubeAppMetrics{Name: text(cmp.Or(a.App, a.Name)), CpuCores: saturate(milli, 1), MemoryUsage: saturate(value(a.Memory), 1)}
}

// value is zero for what is not measured.
func value(v *uint64) uint64 {
	if v == nil {
		return 0
	}
	return *v
}

// saturate is n times unit, or the most that a field holds.
func saturate(n, unit uint64) uint32 {
	if n > math.MaxUint32/unit {
		return math.MaxUint32
	}
	return uint32(n * unit)
}

// percent is how much of total units is used; zero where one of them is not
// known. It may be more than 100: the kubelet measures both at different times.
func percent(used *uint64, total, unit uint64) float32 {
	if used == nil || total == 0 {
		return 0
	}
	return float32(float64(*used) / (float64(total) * float64(unit)) * 100)
}
