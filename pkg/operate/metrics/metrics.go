// Package metrics says in numbers how the agent and its node do, for
// Prometheus (docs/wire.md, "Metrics"). Nothing runs between two scrapes: the
// parts count as they work, and every other number is read from the tables when
// someone asks.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/zedkube/zedkube/pkg/base/loop"
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
	for _, c := range []prometheus.Collector{collectors.NewGoCollector(), process, m.Requests, m.Operations, collector{m}} {
		_ = r.Register(watched{c}) // it fails where names clash, which the tests of this package would tell
	}
	return &limited{places: make(chan struct{}, maxScrapes), next: promhttp.HandlerFor(r, promhttp.HandlerOpts{Timeout: scrapeTimeout, ErrorLog: raising{}})}
}
