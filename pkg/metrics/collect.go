package metrics

import "github.com/prometheus/client_golang/prometheus"

// collector reads the tables when it is asked.
type collector struct{ *Metrics }

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(prometheus.NewDesc("zedkube_build_info", "1, with the version of the agent.", []string{"version"}, nil), prometheus.GaugeValue, 1, c.Version)
}
