package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// sink takes numbers as they are found.
type sink chan<- prometheus.Metric

// gauge puts one value of a metric that goes up and down. Labels are pairs of a
// name and a value.
func (s sink) gauge(name, help string, value float64, labels ...string) {
	s.put(prometheus.GaugeValue, name, help, value, labels)
}

// counter puts one value of a metric that only grows.
func (s sink) counter(name, help string, value float64, labels ...string) {
	s.put(prometheus.CounterValue, name, help, value, labels)
}

func (s sink) put(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	var names, values []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	desc := prometheus.NewDesc(name, help, names, nil)
	metric, err := prometheus.NewConstMetric(desc, kind, value, values...)
	if err != nil {
		metric = prometheus.NewInvalidMetric(desc, err)
	}
	s <- metric
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// since is how long ago a time was, in seconds; 0 for no time, and for one to
// come, as another clock may have it.
func since(now, then time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(0, now.Sub(then).Seconds())
}
