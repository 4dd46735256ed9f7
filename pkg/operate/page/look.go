package page

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

const (
	// often is how seldom the files are read, however many people look.
	often = time.Second
	// slack is for tickers that are early by a little.
	slack = often / 10
	// askEvery is how often measurements are asked for: a wish holds for 15 s.
	askEvery = 5 * time.Second
	// maxOverview is what a browser is sent at once.
	maxOverview = 4 << 20
	// lookKey is the page's row of MetricsLook.
	lookKey = "page"
)

// snapshot is what was last read of the files.
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

// read makes the next sight of the last one.
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

// viewers counts who looks.
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
