// Package metrics says in numbers how the agent and its node do, for
// Prometheus (docs/wire.md, "Metrics"). Nothing is counted twice and nothing
// runs between two scrapes: counters are those that the parts keep anyway, and
// every other number is read from the tables when somebody asks.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Metrics is where the numbers come from. Every exported field is required.
type Metrics struct {
	Version  string
	Pulses   map[string]*loop.Pulse // of every loop, by component
	Bus      interface{ Stats() []pubsub.Stats }
	Requests *Requests

	Info     pubsub.Reader[types.EdgeNodeInfo]
	Nodes    pubsub.Reader[types.Node]
	API      pubsub.Reader[types.APIStatus]
	Leader   pubsub.Reader[types.KubeLeaderElectInfo]
	Leases   pubsub.Reader[types.Lease]
	Progress pubsub.Reader[types.NodeDrainProgress]
	Health   pubsub.Reader[types.KubeReportHealth]

	Conditions pubsub.Reader[types.KubeNodeConditions]
}

// maxScrapes bounds the answers in the making.
const maxScrapes = 2

// Handler serves the metrics in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.Requests,
		collector{m},
	)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: 5 * time.Second})
}
