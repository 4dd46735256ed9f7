package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

const (
	often       = time.Second     // how seldom the files are read, however many people look
	slack       = often / 10      // for tickers that are early by a little
	askEvery    = 5 * time.Second // how often measurements are asked for: a wish holds for 15 s
	maxOverview = 4 << 20         // what a browser is sent at once
	lookKey     = "page"          // the page's row of MetricsLook
)

type snapshot struct {
	at      time.Time          // when the reading began; zero before the first
	read    overview.Overview  // without the time of reading
	steady  *overview.Overview // read, without what changes by itself; nil for none
	json    []byte             // of read, with the time at which it last changed; nil for none
	err     error              // why there is no overview
	version uint64             // grows when anything has changed but what does so by itself, such as ages
	moment  uint64             // grows with these too
	asked   time.Time          // when measurements were last asked for
}

// look reads the files, where that was not done within a second. While someone
// else reads them, the answer is what was read before: who hangs on a broken
// disk keeps nobody else from saying so.
func (p *Page) look(now time.Time) snapshot {
	p.mu.Lock()
	seen := p.seen
	p.mu.Unlock()
	if now.Sub(seen.at).Abs() < often-slack || !p.reading.TryLock() {
		return seen
	}
	defer p.reading.Unlock()
	seen = p.read(seen, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = seen
	if p.viewers.looking() {
		p.measure(now)
	}
	return seen
}

func (p *Page) read(seen snapshot, now time.Time) snapshot {
	seen.at = now
	if p.Looks != nil && now.Sub(seen.asked).Abs() >= askEvery && p.viewers.looking() {
		seen.asked = now
		if err := p.Looks.Publish(lookKey, types.MetricsLook{At: now.UTC()}); err != nil {
			p.Log.WithError(err).Debug("cannot ask for measurements")
		}
	}
	o := p.Overview(now)
	readAt := o.ReadAt
	o.ReadAt = time.Time{}
	if seen.json != nil && reflect.DeepEqual(o, seen.read) {
		return seen
	}
	seen.read = o
	o.ReadAt = readAt
	content, err := encode(o)
	if err != nil {
		if seen.err == nil || seen.err.Error() != err.Error() {
			seen.version, seen.moment = seen.version+1, seen.moment+1
		}
		seen.err, seen.json, seen.steady = err, nil, nil
		return seen
	}
	steady := overview.Steady(o)
	if seen.steady == nil || !reflect.DeepEqual(steady, *seen.steady) {
		seen.version++
	}
	seen.err, seen.json, seen.steady = nil, content, &steady
	seen.moment++
	return seen
}

// encode is an overview as JSON, if a browser can take it.
func encode(o overview.Overview) ([]byte, error) {
	content, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode overview: %w", err)
	}
	if n := len(content); n > maxOverview {
		return nil, fmt.Errorf("the overview has %d kB, more than the %d kB that a page can show: see zedkube status", n>>10, maxOverview>>10)
	}
	return content, nil
}

// measure adds the newest measurements to the history. The caller holds mu.
func (p *Page) measure(now time.Time) {
	if metrics, _ := p.Metrics.Get(types.Global); !metrics.At.Equal(p.history.at) {
		p.history.add(metrics, p.podNames())
	}
	if p.Requests != nil {
		p.history.count(now, p.Requests())
	}
}

// podNames are what the pods of applications are called, by namespace/name.
func (p *Page) podNames() map[string]string {
	names := map[string]string{}
	for key, pod := range p.AppPods.All() {
		for _, c := range p.Configs.All() {
			if c.OwnsAny(pod) {
				names[key] = c.DisplayName
			}
		}
	}
	return names
}

type viewers struct {
	mu    sync.Mutex
	count int
	leave *time.Timer // runs while nobody looks
}

func (c *viewers) looking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count > 0
}

// enter lets one more look; false where there are as many as may be.
func (c *viewers) enter(most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count >= most {
		return false
	}
	c.count++
	if c.leave != nil {
		c.leave.Stop()
		c.leave = nil
	}
	return true
}

// exit calls empty, if there is such, when nobody has looked for a while.
func (c *viewers) exit(after time.Duration, empty func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count--; c.count == 0 && empty != nil {
		c.leave = time.AfterFunc(after, empty)
	}
}

// forget drops what is kept for those who look. One who came meanwhile is shown
// a history that begins now.
func (p *Page) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history = history{}
	p.seen = snapshot{version: p.seen.version, moment: p.seen.moment}
	if p.Looks != nil {
		_ = p.Looks.Unpublish(lookKey) // it is in memory, and else it ends by itself
	}
}

const (
	// maxPoints of a series are twenty minutes where someone looks all the time.
	maxPoints  = 240
	maxSeries  = 66              // bounds what one node with many pods costs
	countEvery = 5 * time.Second // how far apart the requests are counted at least
)

// The kinds of series.
const (
	nodeCPU    = "node-cpu"    // cores
	nodeMemory = "node-memory" // bytes
	appCPU     = "app-cpu"     // cores
	appMemory  = "app-memory"  // bytes
	requests   = "requests"    // to the API server, per second
)

type measurements struct {
	Whole  bool     // this is all there is, not what came last
	Series []series // by kind, then by name
}

type series struct {
	Kind   string
	Name   string  // the application's, "" for the node's
	Pod    string  // namespace/name, "" for the node's
	Max    float64 // what there is of it on the node, 0 for unknown
	Points []point // the oldest first
}

// point is [milliseconds since 1970, value].
type point [2]float64

type kept struct {
	series
	rounds []uint64 // when each point came
}

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
	for _, s := range m.Samples {
		h.put(series{Kind: nodeCPU, Max: float64(n.Cores)}, s.At, s.CPU, 1e-9)
		h.put(series{Kind: nodeMemory, Max: total(n)}, s.At, s.MemoryWorking, 1)
	}
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
