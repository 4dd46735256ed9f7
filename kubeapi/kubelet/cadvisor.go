package kubelet

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/zedkube/zedkube/types"
)

// series are the families of metrics/cadvisor that are read, by what becomes of
// them. There are some eighty, and the parser of Prometheus holds whole families
// at once; so the text is read line by line, and of most lines only the name.
var series = map[string]measure{
	"container_cpu_usage_seconds_total":      cpuSeconds,
	"container_memory_working_set_bytes":     memoryWorking,
	"container_memory_swap":                  swap,
	"container_network_receive_bytes_total":  networkReceived,
	"container_network_transmit_bytes_total": networkSent,
	"container_fs_reads_bytes_total":         readBytes,
	"container_fs_writes_bytes_total":        writtenBytes,
	"container_fs_reads_total":               readOps,
	"container_fs_writes_total":              writeOps,
	"container_fs_usage_bytes":               fsUsed,
	"container_start_time_seconds":           startedAt,
}

type measure int

const (
	cpuSeconds measure = iota
	memoryWorking
	swap
	networkReceived
	networkSent
	readBytes
	writtenBytes
	readOps
	writeOps
	fsUsed
	startedAt
	measures
)

const (
	// lineSize bounds a line; of a longer one nothing is taken.
	lineSize = 16 << 10
	// maxCgroups bounds what is held of one answer: the containers of a summary,
	// their pods, and the instances before a restart.
	maxCgroups = 4096
	// maxDevices bounds the file systems of a container.
	maxDevices = 8
)

// cgroup is what was read of one instance of a container, or of the sandbox that
// has the network of a pod. What several lines say, such as one for each device,
// is added up.
type cgroup struct {
	of     types.ContainerID
	at     int64 // milliseconds since 1970, of the newest line
	values [measures]float64
	said   [measures]bool
	used   []types.DeviceUsage // by device, of fsUsed
}

// decodeCadvisor reads what a kubelet's metrics/cadvisor says of containers. Of
// two instances of a container the one that started last counts.
func decodeCadvisor(body io.Reader, now time.Time) (map[types.ContainerID]types.ContainerSample, error) {
	found := map[string]*cgroup{}
	if err := readLines(body, func(line []byte) { take(found, line) }); err != nil {
		return nil, fmt.Errorf("read its measurements of containers: %w", err)
	}
	newest := map[types.ContainerID]*cgroup{}
	for _, g := range found {
		other := newest[g.of]
		if other == nil || cmp.Or(cmp.Compare(other.values[startedAt], g.values[startedAt]), cmp.Compare(other.at, g.at)) < 0 {
			newest[g.of] = g
		}
	}
	samples := make(map[types.ContainerID]types.ContainerSample, len(newest))
	for id, g := range newest {
		samples[id] = g.sample(now)
	}
	return samples, nil
}

// readLines hands out the lines of a text that are not too long. A text that
// ends within a line is not whole.
func readLines(text io.Reader, do func(line []byte)) error {
	lines := bufio.NewReaderSize(text, lineSize)
	if start, _ := lines.Peek(1); string(start) == "<" {
		return errors.New("their format is not the expected one")
	}
	for long := false; ; {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = true
		case errors.Is(err, io.EOF) && len(line) == 0 && !long:
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case long:
			long = false
		default:
			do(line[:len(line)-1])
		}
	}
}

// take adds a line to what was found, by cgroup.
func take(found map[string]*cgroup, line []byte) {
	name, rest, ok := bytes.Cut(line, []byte("{"))
	if !ok {
		return
	}
	m, ok := series[string(name)]
	if !ok {
		return
	}
	l, rest, ok := readLabels(rest)
	if !ok || !nameable(l.of.Namespace) || !nameable(l.of.Pod) || len(l.of.Container) > nameSize {
		return
	}
	if network := m == networkReceived || m == networkSent; network != (l.of.Container == "") {
		return // of the pod's own cgroup, or of its sandbox
	}
	value, at, ok := number(rest)
	if !ok {
		return
	}
	g := found[l.cgroup]
	if g == nil {
		if len(found) >= maxCgroups {
			return
		}
		g = &cgroup{of: l.of}
		found[l.cgroup] = g
	}
	if g.of == l.of {
		g.values[m] += value
		g.said[m], g.at = true, max(g.at, at)
		if device := string(l.device); m == fsUsed && nameable(device) && len(g.used) < maxDevices {
			g.used = append(g.used, types.DeviceUsage{Device: device, Used: uint64(value)})
		}
	}
}

// labelled is what of a line's labels is read.
type labelled struct {
	of     types.ContainerID
	cgroup string
	device []byte // valid as long as the line is
}

// readLabels reads them, and returns what follows the brace.
func readLabels(text []byte) (l labelled, rest []byte, ok bool) {
	for len(text) > 0 && text[0] != '}' {
		name, after, ok := bytes.Cut(text, []byte(`="`))
		if !ok {
			return l, nil, false
		}
		end := quoted(after)
		if end < 0 {
			return l, nil, false
		}
		switch value := after[:end]; string(name) {
		case "namespace":
			l.of.Namespace = string(value)
		case "pod":
			l.of.Pod = string(value)
		case "container":
			if string(value) != "POD" { // what some runtimes call the sandbox
				l.of.Container = string(value)
			}
		case "id":
			l.cgroup = string(value)
		case "device":
			l.device = value
		}
		text = bytes.TrimPrefix(after[end+1:], []byte(","))
	}
	return l, bytes.TrimPrefix(text, []byte("}")), len(text) > 0
}

// quoted is where the quote ends, below 0 for nowhere. None of the names that are
// read has anything to escape.
func quoted(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

// number reads the value, and the time in milliseconds, 0 for none.
func number(text []byte) (value float64, at int64, ok bool) {
	fields := bytes.Fields(text)
	if len(fields) < 1 || len(fields) > 2 {
		return 0, 0, false
	}
	value, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil || !(value >= 0 && value < math.MaxInt64) { // which NaN is not
		return 0, 0, false
	}
	if len(fields) == 2 {
		at, err = strconv.ParseInt(string(fields[1]), 10, 64)
	}
	return value, at, err == nil
}

func (g *cgroup) sample(now time.Time) types.ContainerSample {
	g.values[cpuSeconds] *= float64(time.Second)
	return types.ContainerSample{
		At: near(now, moment{time.UnixMilli(g.at)}), CPUSeconds: g.value(cpuSeconds), MemoryWorking: g.value(memoryWorking), Swap: g.value(swap),
		NetworkReceived: g.value(networkReceived), NetworkSent: g.value(networkSent),
		ReadBytes: g.value(readBytes), WrittenBytes: g.value(writtenBytes), Reads: g.value(readOps), Writes: g.value(writeOps), FSUsed: g.value(fsUsed),
		FileSystems: g.used,
	}
}

// value is nil where nothing was said, or what cannot be.
func (g *cgroup) value(m measure) *uint64 {
	if v := g.values[m]; g.said[m] && v < math.MaxInt64 {
		n := uint64(v)
		return &n
	}
	return nil
}
