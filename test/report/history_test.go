//go:build linux

package report

import (
	"sync"
	"time"
)

// thing is one entry of a report, or a part of an entry that comes from a source
// of its own.
type thing struct{ section, name string }

// gone is the value of what is not there.
const gone = ""

// span is a stretch of time; a zero end goes on.
type span struct{ from, to time.Time }

// past is when a thing had each of its values.
type past map[string][]span

// ends tells when s is over, as far as now knows.
func (s span) ends(now time.Time) time.Time {
	if s.to.IsZero() {
		return now
	}
	return s.to
}

// history is what every thing of the cluster was, and when, by the clock of who
// heard of it. What was never heard of was never there.
type history struct {
	mu    sync.Mutex
	begin time.Time
	all   map[thing]past
	now   map[thing]string
	count int // of changes
}

func newHistory(begin time.Time) *history {
	return &history{begin: begin, all: map[thing]past{}, now: map[thing]string{}}
}

// note takes down that a thing is something else, or gone, from a moment on.
func (h *history) note(t thing, value string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, known := h.now[t]
	if known && was == value || !known && value == gone {
		return
	}
	h.count++
	if h.all[t] == nil {
		h.all[t] = past{gone: {{from: h.begin}}}
	}
	spans := h.all[t][was]
	spans[len(spans)-1].to = at
	h.all[t][value] = append(h.all[t][value], span{from: at})
	h.now[t] = value
}

// past is that of one thing; the spans are not to be changed.
func (h *history) past(t thing) past {
	if p := h.all[t]; p != nil {
		return p
	}
	return past{gone: {{from: h.begin}}}
}

// present are the things that are there.
func (h *history) present() map[thing]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	there := map[thing]string{}
	for t, value := range h.now {
		if value != gone {
			there[t] = value
		}
	}
	return there
}

// changes counts them so far.
func (h *history) changes() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}
