package kubelet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// An amount is a number of the kubelet's; nil if it cannot be one.
type amount struct{ n *uint64 }

func (a *amount) UnmarshalJSON(data []byte) error {
	if n, err := strconv.ParseUint(string(data), 10, 63); err == nil {
		a.n = &n
	}
	return nil
}

// A moment is a time of the kubelet's; zero if it is none.
type moment struct{ time.Time }

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
		Logs      summaryFS
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
		MemoryUsage: c.Memory.UsageBytes.n, MemoryWorking: c.Memory.WorkingSetBytes.n,
		Swap: c.Swap.SwapUsageBytes.n, FSUsed: c.Rootfs.UsedBytes.n, FileSystems: c.fileSystems(),
	}}
}

// fileSystems are those that the kubelet measures for every container, whose devices
// it does not name.
func (c summaryContainer) fileSystems() (all []types.DeviceUsage) {
	if used := c.Rootfs.UsedBytes.n; used != nil {
		all = append(all, types.DeviceUsage{Device: "rootfs", Used: *used})
	}
	if used := c.Logs.UsedBytes.n; used != nil {
		all = append(all, types.DeviceUsage{Device: "logs", Used: *used})
	}
	return all
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

// What is taken of one answer: a kubelet runs 110 pods unless it is told to run
// more. Of a node that lies there is no more either.
const (
	maxAppPods         = 512 // of Namespace
	maxOtherPods       = 256
	maxAppContainers   = 1024 // of those pods together
	maxOtherContainers = 512
	maxVolumes         = 32     // of one pod
	maxListed          = 10_000 // pods, also those that are left out; more are no node's
)

// decodeSummary reads what a kubelet's stats/summary says of its node, pod by
// pod, so that only one of them is held as it came.
func decodeSummary(body io.Reader, node string, now time.Time) (types.KubeletStats, error) {
	s := summary{now: now, uids: map[string]bool{}}
	if err := s.read(json.NewDecoder(body)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return types.KubeletStats{}, fmt.Errorf("read its summary: %w", err)
	}
	if s.node != node {
		return types.KubeletStats{}, fmt.Errorf("read its summary: it is that of node %q", access.Cut(s.node, nameSize))
	}
	return s.stats, nil
}

// summary is what was read so far.
type summary struct {
	now   time.Time
	node  string
	stats types.KubeletStats
	uids  map[string]bool
	taken [2]struct{ pods, containers int } // of Namespace, and of all others
}

func (s *summary) read(d *json.Decoder) error {
	if err := opens(d, '{'); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "node":
			err = s.readNode(d)
		case "pods":
			err = s.readPods(d)
		default:
			err = d.Decode(&struct{}{})
			err = untyped(err)
		}
		if err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func opens(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err == nil && token != want {
		err = errors.New("its format is not the expected one")
	}
	return err
}

// untyped is err unless the JSON is well and only not what was expected.
func untyped(err error) error {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return nil
	}
	return err
}

func (s *summary) readNode(d *json.Decoder) error {
	var n summaryNode
	if err := d.Decode(&n); err != nil {
		return err
	}
	rx, tx := n.Network.sum()
	s.node, s.stats.NodeAt = n.NodeName, near(s.now, n.CPU.Time, n.Memory.Time)
	s.stats.Node = types.NodeMetrics{
		CPU: n.CPU.UsageNanoCores.n, CPUSeconds: n.CPU.UsageCoreNanoSeconds.n,
		MemoryUsage: n.Memory.UsageBytes.n, MemoryWorking: n.Memory.WorkingSetBytes.n, MemoryAvailable: n.Memory.AvailableBytes.n,
		NetworkReceived: rx, NetworkSent: tx, FS: n.FS.metrics(),
	}
	return nil
}

func (s *summary) readPods(d *json.Decoder) error {
	if err := opens(d, '['); err != nil {
		return err
	}
	for n := 0; d.More(); n++ {
		if n == maxListed {
			return errors.New("it lists too many pods")
		}
		var p summaryPod
		err := d.Decode(&p)
		switch {
		case untyped(err) != nil:
			return err
		case err == nil && nameable(p.PodRef.Namespace) && nameable(p.PodRef.Name) && nameable(p.PodRef.UID) && !s.uids[p.PodRef.UID]:
			s.take(p)
		}
	}
	_, err := d.Token()
	return err
}

// take keeps a pod if there is room.
func (s *summary) take(p summaryPod) {
	taken, pods, containers := &s.taken[0], maxAppPods, maxAppContainers
	if p.PodRef.Namespace != access.Namespace {
		taken, pods, containers = &s.taken[1], maxOtherPods, maxOtherContainers
	}
	if taken.pods++; taken.pods > pods {
		s.stats.Omitted++
		return
	}
	s.uids[p.PodRef.UID] = true
	rx, tx := p.Network.sum()
	out := types.PodStats{
		Namespace: p.PodRef.Namespace, Name: p.PodRef.Name, UID: p.PodRef.UID,
		Sample: types.PodSample{
			At: near(s.now, p.CPU.Time, p.Memory.Time), CPU: p.CPU.UsageNanoCores.n, CPUSeconds: p.CPU.UsageCoreNanoSeconds.n,
			MemoryUsage: p.Memory.UsageBytes.n, MemoryWorking: p.Memory.WorkingSetBytes.n, NetworkReceived: rx, NetworkSent: tx,
		},
		Ephemeral: p.EphemeralStorage.metrics(),
	}
	for _, v := range p.Volume[:min(len(p.Volume), maxVolumes)] {
		if nameable(v.Name) {
			out.Volumes = append(out.Volumes, types.VolumeMetrics{Name: v.Name, Claim: access.Cut(v.PVCRef.Name, nameSize), FSMetrics: *v.metrics()})
		}
	}
	slices.SortFunc(out.Volumes, func(a, b types.VolumeMetrics) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range p.Containers {
		if taken.containers++; taken.containers > containers {
			s.stats.Omitted++
			continue
		}
		if nameable(c.Name) && !slices.ContainsFunc(out.Containers, func(o types.ContainerStats) bool { return o.Name == c.Name }) {
			out.Containers = append(out.Containers, c.stats(s.now))
		}
	}
	slices.SortFunc(out.Containers, func(a, b types.ContainerStats) int { return cmp.Compare(a.Name, b.Name) })
	s.stats.Pods = append(s.stats.Pods, out)
}
