package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
			Help: "Requests to the API server by verb and HTTP status; none where no answer came.",
		}, []string{"verb", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "zedkube_api_request_duration_seconds",
			Help:    "Time from a request to the API server to the head of its answer.",
			Buckets: []float64{0.01, 0.05, 0.25, 1, 5, 10},
		}, []string{"verb"}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "zedkube_api_watches",
			Help: "Watches on the API server that are open.",
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

// Describe implements prometheus.Collector.
func (r *Requests) Describe(out chan<- *prometheus.Desc) {
	r.answers.Describe(out)
	r.took.Describe(out)
	r.watches.Describe(out)
}

// Collect implements prometheus.Collector.
func (r *Requests) Collect(out chan<- prometheus.Metric) {
	r.answers.Collect(out)
	r.took.Collect(out)
	r.watches.Collect(out)
}
