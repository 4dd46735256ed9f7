package page

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a device, its page, and those who look.
type stage struct {
	t       *testing.T
	page    *Page
	metrics pubsub.Table[types.KubeNodeMetrics]
	configs pubsub.Table[types.AppInstanceConfig]
	pods    pubsub.Table[types.Pod]
	looks   pubsub.Table[types.MetricsLook]
	kube    kube
	local   net.Addr                        // where it is asked; nil for no matter where
	wrap    func(http.Handler) http.Handler // around the handlers; nil for nothing

	mu    sync.Mutex
	shown overview.Overview
	reads int
	hang  chan struct{} // nil for a disk that answers
	asked uint64
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t}
	log := logrus.New()
	log.SetOutput(io.Discard)
	s.page = &Page{
		Log: log, Overview: s.overview, Metrics: &s.metrics, Configs: &s.configs, AppPods: &s.pods, Kube: &s.kube,
		Looks: &s.looks,
	}
	return s
}

func (s *stage) overview(now time.Time) overview.Overview {
	s.mu.Lock()
	s.reads++
	o, hang := s.shown, s.hang
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	o.ReadAt = now
	return o
}

func (s *stage) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *stage) read() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// browser is someone who asks, in fake time.
type browser struct {
	head http.Header
	code int
	end  context.CancelFunc
	gone chan struct{} // closed when the handler has returned

	mu       sync.Mutex
	text     strings.Builder
	deadline time.Time
	asleep   bool // it takes nothing
}

// ask sends a request that goes on.
func (s *stage) ask(target string, asleep bool) *browser {
	s.t.Helper()
	ctx, end := context.WithCancel(context.WithValue(context.Background(), http.LocalAddrContextKey, s.local))
	b := &browser{head: http.Header{}, end: end, gone: make(chan struct{}), asleep: asleep}
	path, _, _ := strings.Cut(target, "?")
	h := s.page.Routes()[path].Handler
	if h == nil {
		s.t.Fatalf("nobody serves %s", path)
	}
	if s.wrap != nil {
		h = s.wrap(h)
	}
	go func() {
		defer close(b.gone)
		h.ServeHTTP(b, httptest.NewRequest(http.MethodGet, target, nil).WithContext(ctx))
	}()
	synctest.Wait()
	return b
}

func (b *browser) Header() http.Header { return b.head }

func (b *browser) WriteHeader(code int) { b.code = code }

func (b *browser) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asleep {
		if b.deadline.IsZero() {
			time.Sleep(time.Hour) // nobody ends it
		}
		time.Sleep(time.Until(b.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	return b.text.Write(p)
}

func (b *browser) FlushError() error { return nil }

func (b *browser) SetReadDeadline(time.Time) error { return nil }

func (b *browser) SetWriteDeadline(t time.Time) error {
	b.deadline = t
	return nil
}

// took is what it has got since it was last asked.
func (b *browser) took() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text.String()
	b.text.Reset()
	return text
}

func (b *browser) leave() {
	b.end()
	<-b.gone
}

// event is one message of an event stream.
type event struct{ name, data string }

// parse reads an event stream as a browser does.
func parse(t *testing.T, text string) (events []event, comments int) {
	t.Helper()
	if text != "" && !strings.HasSuffix(text, "\n\n") {
		t.Errorf("the stream ends within an event: %q", text[max(0, len(text)-80):])
	}
	for block := range strings.SplitSeq(text, "\n\n") {
		var e event
		for line := range strings.SplitSeq(block, "\n") {
			field, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimPrefix(value, " "); field {
			case "":
				if line != "" {
					comments++
				}
			case "event":
				e.name = value
			case "data":
				e.data += value
			case "retry":
			default:
				t.Errorf("no such field: %q", line)
			}
		}
		if e.data != "" {
			if !json.Valid([]byte(e.data)) {
				t.Errorf("event %s is no JSON: %s", e.name, e.data)
			}
			events = append(events, e)
		}
	}
	return events, comments
}

// order is the names of events, one after the other.
func order(events []event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.name)
	}
	return strings.Join(all, " ")
}
