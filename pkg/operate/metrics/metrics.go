// Package metrics says in numbers how the agent and its node do, for
// Prometheus (docs/wire.md, "Metrics"). Nothing runs between two scrapes: the
// parts count as they work, and every other number is read from the tables when
// someone asks.
package metrics

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/semaphore"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Metrics is where the numbers come from. Every exported field is required.
type Metrics struct {
	Version    string
	Lease      string                 // name of the Lease of the node that reports
	Pulses     map[string]*loop.Pulse // of every loop, by component
	Bus        interface{ Stats() []pubsub.Stats }
	Requests   *Requests
	Operations *Operations

	Info       pubsub.Reader[types.EdgeNodeInfo]
	Nodes      pubsub.Reader[types.Node]
	API        pubsub.Reader[types.APIStatus]
	Leases     pubsub.Reader[types.Lease] // by name
	Leader     pubsub.Reader[types.KubeLeaderElectInfo]
	Progress   pubsub.Reader[types.NodeDrainProgress]
	Health     pubsub.Reader[types.KubeReportHealth]
	Conditions pubsub.Reader[types.KubeNodeConditions]
	Object     pubsub.Reader[types.ClusterObject]
	Lifecycle  pubsub.Reader[types.KubeLifecycle]

	Overview func(now time.Time) overview.Overview // what zedkube status shows, judged
}

const (
	// maxScrapes bounds the answers in the making. Others wait for their turn.
	maxScrapes = 2
	// scrapeTimeout is far beyond what an answer takes, and turnTimeout beyond what
	// those take that are before it.
	scrapeTimeout = 5 * time.Second
	turnTimeout   = 5 * time.Second
)

// Handler serves the metrics in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	r := prometheus.NewRegistry()
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), process, m.Requests.answers, m.Requests.took, m.Requests.watches, m.Operations, collector{m},
	} {
		_ = r.Register(watched{c}) // it fails where names clash, which the tests of this package would tell
	}
	return &limited{places: semaphore.NewWeighted(maxScrapes), next: promhttp.HandlerFor(r, promhttp.HandlerOpts{Timeout: scrapeTimeout, ErrorLog: raising{}})}
}

// Requests counts what is asked of the API server, as it happens.
type Requests struct {
	answers *prometheus.CounterVec
	took    *prometheus.HistogramVec
	watches prometheus.Gauge
	total   atomic.Uint64
}

// NewRequests counts from nothing.
func NewRequests() *Requests {
	return &Requests{
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zedkube_api_requests_total",
			Help: "Requests to the API server by verb and HTTP status; none if there was no answer.",
		}, []string{"verb", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "zedkube_api_request_duration_seconds",
			Help:    "Time from a request to the API server to the header of its response.",
			Buckets: []float64{0.01, 0.05, 0.25, 1, 5, 10},
		}, []string{"verb"}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "zedkube_api_watches",
			Help: "Open watches on the API server.",
		}),
	}
}

// Answered notes one request; code is 0 where no answer came.
func (r *Requests) Answered(verb string, code int, took time.Duration) {
	verb = oneOf(verb, verbs)
	r.total.Add(1)
	r.answers.WithLabelValues(verb, codeLabel(code)).Inc()
	r.took.WithLabelValues(verb).Observe(took.Seconds())
}

// Watching notes that a watch was opened (1) or has ended (-1).
func (r *Requests) Watching(change int) { r.watches.Add(float64(change)) }

// Total is how many there were.
func (r *Requests) Total() uint64 { return r.total.Load() }

// limited lets a few answers be made at once, and the others in the order in which
// they were asked for. Each is made whole before it is sent: who takes it slowly
// keeps nobody waiting.
type limited struct {
	places *semaphore.Weighted
	next   http.Handler
}

// ServeHTTP implements http.Handler.
func (t *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), turnTimeout)
	defer cancel()
	if t.places.Acquire(ctx, 1) != nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many requests for the metrics: try again soon", http.StatusServiceUnavailable)
		return // if the one who asked has gone nobody reads it
	}
	t.make(r).Send(w)
}

func (t *limited) make(r *http.Request) *boundedhttp.Buffered {
	defer t.places.Release(1)
	return boundedhttp.Buffer(t.next, r)
}
