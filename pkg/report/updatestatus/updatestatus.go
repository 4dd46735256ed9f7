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

// Step looks, decides and publishes once.
func (c *Component) Step(context.Context) error { return c.apply(decide(c.look())) }

func (c *Component) look() (f facts) {
	f.report, f.reported = c.Reported.Get(types.Global)
	return f
}

func (c *Component) apply(a action) error {
	if a.withdraw {
		if err := c.Status.Unpublish(types.Global); err != nil {
			return fmt.Errorf("withdraw update status: %w", err)
		}
	}
	if !a.publish {
		return nil
	}
	old, had := c.Status.Get(types.Global)
	if err := c.Status.Publish(types.Global, a.status); err != nil {
		return fmt.Errorf("publish update status: %w", err)
	}
	if !had || old.Component != a.status.Component || old.Status != a.status.Status {
		c.Log.WithFields(logrus.Fields{
			"node": a.status.CurrentNode, "of": a.status.Component.String(), "status": a.status.Status.String(),
			"version": a.status.DestinationKubeUpdateVersion,
		}).Info("kube container reports its update")
	}
	return nil
}
