package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zedkube/zedkube/types"
)

// Operations counts what is done on its way to the record of it.
type Operations struct {
	*prometheus.CounterVec
	to types.OperationLog
}

// NewOperations counts from nothing what to records.
func NewOperations(to types.OperationLog) *Operations {
	return &Operations{to: to, CounterVec: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "zedkube_operations_total",
		Help: "Operations on the cluster and the device that have ended, by the first word of what was done and by outcome.",
	}, []string{"op", "outcome"})}
}

// Begin implements types.OperationLog.
func (o *Operations) Begin(of types.Operation) func(types.OperationOutcome, error) {
	end := o.to.Begin(of)
	word, _, _ := strings.Cut(of.Op, " ")
	return func(outcome types.OperationOutcome, err error) {
		o.WithLabelValues(oneOf(word, operationVerbs), oneOf(outcome, outcomes)).Inc()
		end(outcome, err)
	}
}
