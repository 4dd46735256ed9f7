package page

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// maxPoints of a series are twenty minutes where someone looks all the time.
	maxPoints = 240
	// maxSeries bounds what one node with many pods costs.
	maxSeries = 66
	// countEvery is how far apart the requests are counted at least.
	countEvery = 5 * time.Second
)

// The kinds of series.
const (
	nodeCPU    = "node-cpu"    // cores
	nodeMemory = "node-memory" // bytes
	appCPU     = "app-cpu"     // cores
	appMemory  = "app-memory"  // bytes
	requests   = "requests"    // to the API server, per second
)

// measurements are what the page plots.
type measurements struct {
	Whole  bool     // this is all there is, not what came last
	Series []series // by kind, then by name
}

// series is one line of a plot.
type series struct {
	Kind   string
	Name   string  // the application's, "" for the node's
	Pod    string  // namespace/name, "" for the node's
	Max    float64 // what there is of it on the node, 0 for unknown
	Points []point // the oldest first
}

// point is [milliseconds since 1970, value].
type point [2]float64

// kept is a series as it is kept.
type kept struct {
	series
	rounds []uint64 // when each point came
}

// history is what was measured while someone looked.
type history struct {
	at    time.Time // of the newest measurements
	round uint64    // of the newest points
	lines map[string]*kept

	counted time.Time // when the requests were last counted
	total   uint64
}

// add takes what m has of samples that are newer than those it has.
func (h *history) add(m types.KubeNodeMetrics, names map[string]string) {
	h.at = m.At
	h.round++
	n := m.Metrics
	h.put(series{Kind: nodeCPU, Max: float64(n.Cores)}, m.At, n.CPU, 1e-9)
	h.put(series{Kind: nodeMemory, Max: total(n)}, m.At, n.MemoryWorking, 1)
	present := map[string]bool{key(nodeCPU, ""): true, key(nodeMemory, ""): true, key(requests, ""): true}
	for _, p := range m.Pods {
		pod := p.Namespace + "/" + p.Name
		name, ok := names[pod]
		if !ok && p.Namespace != types.NamespaceApps {
			continue
		}
		present[key(appCPU, pod)], present[key(appMemory, pod)] = true, true
		for _, s := range p.Samples {
			h.put(series{Kind: appCPU, Name: cmp.Or(name, p.Name), Pod: pod, Max: float64(n.Cores)}, s.At, s.CPU, 1e-9)
			h.put(series{Kind: appMemory, Name: cmp.Or(name, p.Name), Pod: pod, Max: total(n)}, s.At, s.MemoryWorking, 1)
		}
	}
	maps.DeleteFunc(h.lines, func(k string, _ *kept) bool { return !present[k] })
}

func key(kind, pod string) string { return kind + " " + pod }

// total is the memory of a node, 0 for unknown.
func total(n types.NodeMetrics) float64 {
	if n.MemoryWorking == nil || n.MemoryAvailable == nil {
		return 0
	}
	return float64(*n.MemoryWorking) + float64(*n.MemoryAvailable)
}

// put appends a point to its series, if it is newer than those.
func (h *history) put(s series, at time.Time, value *uint64, scale float64) {
	if value == nil || at.IsZero() {
		return
	}
	h.append(s, point{float64(at.UnixMilli()), float64(*value) * scale})
}

func (h *history) append(s series, p point) {
	k := key(s.Kind, s.Pod)
	l := h.lines[k]
	if l == nil {
		if len(h.lines) >= maxSeries {
			return
		}
		if h.lines == nil {
			h.lines = map[string]*kept{}
		}
		l = &kept{}
		h.lines[k] = l
	}
	s.Points = l.Points
	l.series = s
	if n := len(l.Points); n > 0 && l.Points[n-1][0] >= p[0] {
		return
	}
	l.Points, l.rounds = append(l.Points, p), append(l.rounds, h.round)
	if over := len(l.Points) - maxPoints; over > 0 {
		l.Points, l.rounds = slices.Delete(l.Points, 0, over), slices.Delete(l.rounds, 0, over)
	}
}

// count notes how many requests there were in all; the plot is their rate.
func (h *history) count(now time.Time, total uint64) {
	sent := now.Sub(h.counted)
	if sent >= 0 && sent < countEvery-slack {
		return
	}
	if sent > 0 && !h.counted.IsZero() && total >= h.total {
		h.round++
		h.append(series{Kind: requests}, point{float64(now.UnixMilli()), float64(total-h.total) / sent.Seconds()})
	}
	h.counted, h.total = now, total
}

// since are the points that came after a round; after 0 all there are.
func (h *history) since(round uint64) measurements {
	m := measurements{Whole: round == 0, Series: []series{}}
	for _, k := range slices.Sorted(maps.Keys(h.lines)) {
		l := h.lines[k]
		from, _ := slices.BinarySearch(l.rounds, round+1)
		if from == len(l.rounds) {
			continue
		}
		s := l.series
		s.Points = slices.Clone(l.Points[from:])
		m.Series = append(m.Series, s)
	}
	slices.SortStableFunc(m.Series, func(a, b series) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return m
}
