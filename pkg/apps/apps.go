// Package apps tells zedmanager where each configured application stands in
// the cluster.
//
//	reads:  AppInstanceConfig, nodes, app pods, APIStatus, EdgeNodeInfo
//	writes: ENClusterAppStatus
//
// It needs no cluster configuration: a single node is a cluster of one.
package apps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is only a safety net: everything that counts rings.
const period = time.Minute

// Component publishes one ENClusterAppStatus per AppInstanceConfig, under the
// key of the configuration: the UUID of the application.
type Component struct {
	Log     logrus.FieldLogger
	Pulse   *loop.Pulse
	Configs pubsub.Source[types.AppInstanceConfig]
	Nodes   pubsub.Reader[types.Node]
	AppPods pubsub.Reader[types.Pod]
	API     pubsub.Reader[types.APIStatus]
	Info    pubsub.Reader[types.EdgeNodeInfo]
	Status  pubsub.Writer[types.ENClusterAppStatus]

	blindSince time.Time // zero while the cluster, and this node in it, are in full view
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Configs, c.Nodes, c.AppPods, c.API, c.Info)
}

// Step looks once and publishes what changed.
func (c *Component) Step(context.Context) error { return c.apply(decide(c.look())) }

func (c *Component) look() facts {
	f := facts{now: time.Now(), configsKnown: c.Configs.Synced()}
	f.configs, f.statuses = c.Configs.All(), c.Status.All()
	// The state of the API is read before the tables: they can only be more
	// complete than it says.
	api, known := c.API.Get(types.Global)
	f.pods = slices.Collect(maps.Values(c.AppPods.All()))
	info, hasInfo := c.Info.Get(types.Global)
	node, _ := types.OwnNode(c.Nodes.All(), info)
	f.self = node.Name
	switch {
	case known && api.Answers() && api.Synced && hasInfo:
		c.blindSince = time.Time{}
	case c.blindSince.IsZero():
		c.blindSince = f.now
		if known && !api.Answers() && api.SilentSince.Before(f.now) {
			c.blindSince = api.SilentSince // the silence is older than the news of it
		}
	}
	f.blindSince = c.blindSince
	return f
}

func (c *Component) apply(a action) error {
	var errs []error
	for _, app := range slices.Sorted(maps.Keys(a.publish)) {
		old, _ := c.Status.Get(app)
		if err := c.Status.Publish(app, a.publish[app]); err != nil {
			errs = append(errs, fmt.Errorf("publish status of app %s: %w", app, err))
			continue
		}
		c.logChange(app, old, a.publish[app])
	}
	for _, app := range a.unpublish {
		if err := c.Status.Unpublish(app); err != nil {
			errs = append(errs, fmt.Errorf("unpublish status of app %s: %w", app, err))
			continue
		}
		c.Log.WithField("app", app).Info("application is not configured any more")
	}
	if len(errs) == 0 && a.again > 0 {
		return loop.After(a.again)
	}
	return errors.Join(errs...)
}

func (c *Component) logChange(app string, old, s types.ENClusterAppStatus) {
	if old.AppKubeStatus == s.AppKubeStatus && old.ScheduledOnThisNode == s.ScheduledOnThisNode {
		return
	}
	c.Log.WithFields(logrus.Fields{
		"app": app, "status": s.AppKubeStatus.String(), "here": s.ScheduledOnThisNode, "designated": s.IsDNidNode,
	}).Info("application status changed")
}
