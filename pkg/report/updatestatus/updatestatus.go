// Package updatestatus passes on, in zedagent's name, what the kube container
// reports of its own update through the inline command.
//
//	reads:  zedkube-cli/KubeClusterUpdateStatus
//	writes: zedagent/KubeClusterUpdateStatus
package updatestatus

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is only a safety net: a report rings.
const period = time.Minute

// Component republishes the last report. The reporter itself is a command that
// ends at once, so its own socket would be gone before anyone had connected.
type Component struct {
	Log      logrus.FieldLogger
	Pulse    *loop.Pulse
	Reported pubsub.Source[types.KubeClusterUpdateStatus]
	Status   pubsub.Writer[types.KubeClusterUpdateStatus]
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Reported)
}

// Step passes on what was reported since boot. Without a report, what a boot before
// left stands.
func (c *Component) Step(context.Context) error {
	report, reported := c.Reported.Get(types.Global)
	if !reported {
		return nil
	}
	if Withdraws(report) {
		if err := c.Status.Unpublish(types.Global); err != nil {
			return fmt.Errorf("withdraw update status: %w", err)
		}
		return nil
	}
	old, had := c.Status.Get(types.Global)
	if err := c.Status.Publish(types.Global, report); err != nil {
		return fmt.Errorf("publish update status: %w", err)
	}
	if !had || old.Component != report.Component || old.Status != report.Status {
		c.Log.WithFields(logrus.Fields{
			"node": report.CurrentNode, "of": report.Component.String(), "status": report.Status.String(),
			"version": report.DestinationKubeUpdateVersion,
		}).Info("kube container reports its update")
	}
	return nil
}

// Withdraws reports whether a report takes the published one back: component
// and state are both unknown (docs/wire.md, "Process").
func Withdraws(r types.KubeClusterUpdateStatus) bool {
	return r.Component == types.KubeCompUnknown && r.Status == types.KubeCompUpdateUnknown
}
