package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zedkube/zedkube/pkg/base/caught"
)

// watched is a collector whose panic is an error of the gathering. The library
// calls collectors in goroutines of its own, and would show who asks the stack.
type watched struct{ prometheus.Collector }

// Collect implements prometheus.Collector.
func (c watched) Collect(out chan<- prometheus.Metric) {
	if fault := caught.In(func() { c.Collector.Collect(out) }); fault != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(fault), fault)
	}
}

// raising hears of what went wrong in the gathering, in the goroutine that asked
// for it, and panics there where a collector did.
type raising struct{}

// Println implements promhttp.Logger.
func (raising) Println(what ...any) {
	for _, w := range what {
		err, ok := w.(error)
		if !ok {
			continue
		}
		all := prometheus.MultiError{err}
		_ = errors.As(err, &all)
		for _, one := range all {
			if fault := (*caught.Fault)(nil); errors.As(one, &fault) {
				fault.Raise()
			}
		}
	}
}
