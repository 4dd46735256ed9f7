package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	maxViewers = 8                // how many may look at once
	pingEvery  = 15 * time.Second // how often a page is told that the agent lives
	patience   = 10 * time.Second // how long a browser may take to take what it is sent
	// lasts is how long a browser is told without asking again: the kernel takes
	// what is sent also where nobody reads it.
	lasts = 10 * time.Minute
	// keptFor is how long measurements are kept after the last one has gone: a
	// page that is loaded again goes on with them.
	keptFor = time.Minute
)

// enter counts one more who looks, or says that there are too many.
func (p *Page) enter(w http.ResponseWriter, r *http.Request) bool {
	if p.viewers.enter(share(r, maxViewers)) {
		return true
	}
	tooMany(w, "%d other viewers are connected: close one of their pages", share(r, maxViewers))
	return false
}

func tooMany(w http.ResponseWriter, why string, most int) {
	w.Header().Set("Retry-After", "10")
	http.Error(w, fmt.Sprintf(why, most), http.StatusServiceUnavailable)
}

// share is how many of most places there are for who asks as r does: half of them
// over the cluster's network, so that other nodes leave some for this one.
func share(r *http.Request, most int) int {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if ok && !at.IP.IsLoopback() {
		return most / 2
	}
	return most
}

func (p *Page) exit() { p.viewers.exit(keptFor, p.forget) }

// serveEvents sends what has changed, at most once a second, and ages alone with
// the heartbeat. It ends when the browser goes or takes nothing for a while,
// after some minutes, for the browser to ask again, and with the server.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	if !p.enter(w, r) {
		return
	}
	defer p.exit()
	e := &events{page: p, out: lowPriority(w)}
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return
	}
	e.text.WriteString("retry: 2000\n\n")
	seconds := time.NewTicker(often)
	defer seconds.Stop()
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		e.collect(time.Now())
		if err := e.out.send(e.text.Bytes()); err != nil {
			return // nobody takes it
		}
		e.text.Reset()
		select {
		case <-r.Context().Done():
			return
		case <-seconds.C:
		}
	}
}

type events struct {
	page     *Page
	out      *stream
	text     bytes.Buffer // not sent yet
	version  uint64       // of the overview that it was told
	moment   uint64       // the same
	round    uint64       // of the measurements that it was told
	lastPing time.Time    // when it was last told that the agent lives
}

// beat is the content of the event of that name.
type beat struct {
	Now    time.Time // by the device's clock
	ReadAt time.Time // when the files were last read
}

func (e *events) collect(now time.Time) {
	s := e.page.look(now)
	beats := now.Sub(e.lastPing).Abs() >= pingEvery-slack
	if beats {
		e.lastPing = now
		e.text.WriteString(": alive\n")
		e.event("beat", beat{Now: now.UTC(), ReadAt: s.at.UTC()})
	}
	if s.version != e.version || beats && s.moment != e.moment {
		e.version, e.moment = s.version, s.moment
		if s.err != nil {
			e.event("trouble", s.err.Error())
		} else {
			e.event("overview", json.RawMessage(s.json))
		}
	}
	e.page.mu.Lock()
	news := e.page.history.since(e.round)
	e.round = e.page.history.round
	e.page.mu.Unlock()
	if len(news.Series) > 0 {
		e.event("metrics", news)
	}
}

// event is one message; JSON has no line breaks.
func (e *events) event(name string, v any) {
	content, err := json.Marshal(v)
	if err != nil {
		name, content = "trouble", []byte(`"this cannot be shown"`)
	}
	fmt.Fprintf(&e.text, "event: %s\ndata: %s\n\n", name, content)
}

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// lowPriority takes an answer out of the server's deadlines; each piece of it has
// its own.
func lowPriority(w http.ResponseWriter) *stream {
	s := &stream{w: w, control: http.NewResponseController(w)}
	_ = s.control.SetReadDeadline(time.Time{}) // where that is not available, the server has none
	return s
}

// send fails where the browser does not take it in time.
func (s *stream) send(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(patience))
	if _, err := s.w.Write(text); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}
