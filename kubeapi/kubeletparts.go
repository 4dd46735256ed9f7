package kubeapi

import (
	"math"
	"strconv"
	"time"

	"github.com/zedkube/zedkube/types"
)

// An amount is a number of the kubelet's; nil if it is none that can be.
type amount struct{ n *uint64 }

// UnmarshalJSON implements json.Unmarshaler.
func (a *amount) UnmarshalJSON(data []byte) error {
	if n, err := strconv.ParseUint(string(data), 10, 63); err == nil {
		a.n = &n
	}
	return nil
}

// A moment is a time of the kubelet's; zero if it is none.
type moment struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (m *moment) UnmarshalJSON(data []byte) error {
	m.Time, _ = time.Parse(`"`+time.RFC3339Nano+`"`, string(data))
	return nil
}

// The parts of a Summary that are read.
type (
	summaryNode struct {
		NodeName string
		CPU      summaryCPU
		Memory   summaryMemory
		Network  summaryNetwork
		FS       *summaryFS
	}
	summaryPod struct {
		PodRef struct{ Namespace, Name, UID string }

		CPU              summaryCPU
		Memory           summaryMemory
		Network          summaryNetwork
		EphemeralStorage *summaryFS `json:"ephemeral-storage"`
		Volume           []summaryVolume
		Containers       []summaryContainer
	}
	summaryVolume struct {
		summaryFS
		Name   string
		PVCRef struct{ Name string }
	}
	summaryContainer struct {
		Name      string
		StartTime moment
		CPU       summaryCPU
		Memory    summaryMemory
		Rootfs    summaryFS
		Swap      struct{ SwapUsageBytes amount }
	}
	summaryCPU struct {
		Time                                 moment
		UsageNanoCores, UsageCoreNanoSeconds amount
	}
	summaryMemory struct {
		Time                                        moment
		AvailableBytes, UsageBytes, WorkingSetBytes amount
	}
	summaryNetwork struct {
		RxBytes, TxBytes amount
		Interfaces       []struct{ RxBytes, TxBytes amount }
	}
	summaryFS struct{ AvailableBytes, CapacityBytes, UsedBytes amount }
)

func (c summaryContainer) stats(now time.Time) types.ContainerStats {
	started := c.StartTime.Time.UTC()
	if started.After(now.Add(skew)) || started.Year() < firstYear {
		started = time.Time{}
	}
	return types.ContainerStats{Name: c.Name, Started: started, Sample: types.ContainerSample{
		At: near(now, c.CPU.Time, c.Memory.Time), CPU: c.CPU.UsageNanoCores.n, CPUSeconds: c.CPU.UsageCoreNanoSeconds.n,
		MemoryWorking: c.Memory.WorkingSetBytes.n, Swap: c.Swap.SwapUsageBytes.n, FSUsed: c.Rootfs.UsedBytes.n,
	}}
}

// sum is what the kubelet says of the interface it takes for the main one, else
// the sum of all: on a node a bridge and its port would count twice.
func (n summaryNetwork) sum() (received, sent *uint64) {
	received, sent = n.RxBytes.n, n.TxBytes.n
	if received != nil || sent != nil {
		return received, sent
	}
	for _, i := range n.Interfaces {
		received, sent = plus(received, i.RxBytes.n), plus(sent, i.TxBytes.n)
	}
	return received, sent
}

func plus(a, b *uint64) *uint64 {
	switch {
	case a == nil:
		return b
	case b == nil || *a > math.MaxInt64-min(*b, math.MaxInt64):
		return a
	}
	sum := *a + *b
	return &sum
}

func (f *summaryFS) metrics() *types.FSMetrics {
	if f == nil {
		return nil
	}
	return &types.FSMetrics{Available: f.AvailableBytes.n, Capacity: f.CapacityBytes.n, Used: f.UsedBytes.n}
}

const (
	// skew is how far a time of the kubelet's may be off: both run on one device,
	// or on devices of one cluster, and it measures every ten seconds or so.
	skew = 5 * time.Minute
	// firstYear is before any container was started.
	firstYear = 2000
	// nameSize is the longest name Kubernetes allows.
	nameSize = 253
)

// near is the first of the times that can be that of a measurement, else now.
func near(now time.Time, times ...moment) time.Time {
	for _, t := range times {
		if d := now.Sub(t.Time); d < skew && d > -skew {
			return t.UTC()
		}
	}
	return now.UTC().Truncate(time.Second)
}

func nameable(name string) bool { return name != "" && len(name) <= nameSize }
